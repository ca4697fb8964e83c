"""The times of the faults: pure, from the seed.

Two tracks run at the same time: faults of processes, after which a driver must start again, and faults of single
answers of the store. On each track every kind comes once before one comes again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random

LEAST_IN_TEN_MINUTES = 20
ALL_KINDS_FROM = 600.0
"""A run of this many seconds must have every kind of fault."""
LEAST_KINDS, OF_SECONDS = 8, 90.0
"""The kinds of a shorter run; below 90 seconds in proportion."""


@dataclass(frozen=True)
class Track:
    """Kinds of faults that never overlap."""

    kinds: tuple[str, ...]
    first: float
    """About how many seconds until the first fault."""
    pace: float
    """Average seconds from one fault to the next."""
    calm_end: float
    """No fault begins in the last seconds: this many."""


@dataclass(frozen=True)
class Planned:
    at: float
    kind: str


def plan(seed: int, track: Track, seconds: float) -> list[Planned]:
    chance = Random(f"schedule of {seed}: {track.kinds[0]}")
    kinds = _dealt(track.kinds, chance)
    at, planned = track.first * chance.uniform(0.8, 1.2), []
    while at < seconds - track.calm_end:
        planned.append(Planned(at, next(kinds)))
        at += track.pace * chance.uniform(0.5, 1.5)
    return planned


def _dealt(kinds: Sequence[str], chance: Random) -> Iterator[str]:
    for _ in count():
        yield from chance.sample(kinds, len(kinds))


def too_little(happened: Sequence[str], kinds: Collection[str], seconds: float) -> list[str]:
    """Why a run does not count: too few faults for its length, or too few kinds."""
    lacks = []
    least = round(LEAST_IN_TEN_MINUTES * seconds / 600)
    if len(happened) < least:
        lacks.append(f"{len(happened)} faults in {seconds:.0f} s are too few: {least} have to happen")
    never = sorted(set(kinds) - set(happened))
    if seconds >= ALL_KINDS_FROM and never:
        lacks.append(f"never happened: {', '.join(never)}")
    elif len(set(happened)) < (wanted := round(LEAST_KINDS * min(1.0, seconds / OF_SECONDS))):
        lacks.append(f"{len(set(happened))} kinds of fault are too few: {wanted} have to happen")
    return lacks
