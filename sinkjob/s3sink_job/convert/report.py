"""What became of every key of the input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Outcome = Literal["Exact", "Different", "Lost"]
TITLES: dict[Outcome, str] = {
    "Exact": "carried over exactly",
    "Different": "carried over with a difference",
    "Lost": "not carried over",
}


@dataclass(frozen=True)
class Entry:
    """The text says where the key went, what differs, or why it is lost and what to do. It never has a secret."""

    key: str
    outcome: Outcome
    text: str

    def to_doc(self) -> dict[str, str]:
        return {"key": self.key, "outcome": self.outcome, "text": self.text}


@dataclass(frozen=True)
class Report:
    system: str
    name: str
    """Of the connector or pipeline, as the input has it; empty if it has none."""
    entries: tuple[Entry, ...]
    notes: tuple[str, ...] = ()
    """What the input leaves to defaults that differ, and what it cannot say."""

    def of(self, outcome: Outcome) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if entry.outcome == outcome)

    @property
    def whole(self) -> bool:
        """Whether nothing was lost."""
        return not self.of("Lost")

    def to_doc(self) -> dict[str, Any]:
        return {
            "system": self.system,
            "name": self.name,
            "exact": len(self.of("Exact")),
            "different": len(self.of("Different")),
            "lost": len(self.of("Lost")),
            "keys": [entry.to_doc() for entry in self.entries],
            "notes": list(self.notes),
        }


def report_text(report: Report) -> str:
    title = _printable(f"{report.system} {report.name}".strip())
    lines = [f"{title}: {_figures(report)}"]
    for outcome in reversed(TITLES):
        found = report.of(outcome)
        if found:
            lines += ["", f"{TITLES[outcome]}:"]
            lines += [f"  {_printable(entry.key)}: {_printable(entry.text)}" for entry in found]
    if report.notes:
        lines += ["", "also:", *(f"  {_printable(note)}" for note in report.notes)]
    return "\n".join(lines)


def _printable(text: str) -> str:
    """Without line breaks and codes of terminals, which keys of JSON may hold."""
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)


def _figures(report: Report) -> str:
    counts = [f"{len(report.of(outcome))} {TITLES[outcome]}" for outcome in TITLES]
    return f"{len(report.entries)} keys, {', '.join(counts)}"
