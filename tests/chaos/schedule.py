"""Which fault when: pure, from the seed.

There are two tracks that run side by side: faults of processes, after which a driver has to start again, and faults
of single answers of the store. On each the kinds are dealt like cards: none comes again before all others have come.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random

LEAST_IN_TEN_MINUTES = 20
ALL_KINDS_FROM = 600.0
"""Seconds: so long a run has to have had every kind of fault."""
LEAST_KINDS, OF_SECONDS = 8, 90.0
"""Of a shorter run; of one below 90 seconds in proportion."""


@dataclass(frozen=True)
class Track:
    """Kinds of fault that come one after another."""

    kinds: tuple[str, ...]
    first: float
    """Seconds from the start to the first one, about."""
    pace: float
    """Seconds from one to the next, on average."""
    calm_end: float
    """Seconds before the end in which none begins any more."""


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
    """What a run lacks to count: enough faults for its length, and enough kinds of them."""
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
