"""The result of a run, as tables, and as one line to quote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tests.chaos.run import KINDS, Outcome


def tables(outcome: Outcome) -> str:
    happened = Counter(h.kind for h in outcome.happened)
    parts = [
        _table("faults", [*((kind, happened[kind]) for kind in KINDS), ("(nothing to hit)", outcome.missed.total())]),
        _table("drivers that ended with", sorted(outcome.exits.items())),
        _table("producers", sorted(outcome.produced.items())),
        _table("the sink", [("drivers started", outcome.drivers), *outcome.figures.items()]),
    ]
    if outcome.comparison is not None:
        found = outcome.comparison
        rows = [("missing", len(found.missing)), ("duplicates", len(found.twice)), ("foreign", len(found.foreign))]
        parts.append(_table("records in the bucket compared with Kafka", rows))
    return "\n".join(parts)


def line(outcome: Outcome) -> str:
    """One line to quote: the run, its faults, and the result of the proof."""
    kinds = {h.kind for h in outcome.happened}
    length = f"{outcome.seconds / 60:.1f} min"
    words = [f"seed {outcome.choices.seed}: {outcome.choices}", length]
    words.append(f"{len(outcome.happened)} faults of {len(kinds)} kinds")
    if (found := outcome.comparison) is None:
        return ", ".join([*words, "not proved"])
    words.append(f"{found.records:,} records, {outcome.figures['flushes']:,} flushes")
    words += [f"{len(found.missing):,} missing", f"{len(found.twice) + len(found.foreign):,} duplicates"]
    return ", ".join(words)


def _table(title: str, rows: Iterable[tuple[str, int]]) -> str:
    return "\n".join([title, *(f"  {name:<36}{number:>12,}" for name, number in rows), ""])
