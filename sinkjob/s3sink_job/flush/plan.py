"""Which slices are due now, and why: a pure function of state, offsets, clock and rules.

Nothing is read before a flush, so the planner knows offsets only. A partition counts as behind since it
was last seen level with Kafka or last flushed, whichever is later; after a restart that is its last flush.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from s3sink_job.flush.manifest import Slice
from s3sink_job.flush.state import State

TopicPartition = tuple[str, int]


class Reason:
    RECORDS = "Records"
    INTERVAL = "Interval"
    DRAIN = "Drain"


@dataclass(frozen=True)
class Rules:
    """`drain_to` makes everything below the given ends due at once (`run: Once`): (generation, offset) each."""

    records: int
    interval: float
    drain_to: Mapping[TopicPartition, tuple[int, int]] | None = None


@dataclass(frozen=True)
class Limits:
    """A huge backlog is many flushes, so that progress is committed and a crash repeats little."""

    offsets_per_slice: int = 4_000_000
    slices: int = 1_000
    objects: int = 5_000


@dataclass(frozen=True)
class Offsets:
    """What Kafka has of a partition: `stable` is what may be read, `end` the high watermark."""

    earliest: int
    stable: int
    end: int


@dataclass(frozen=True)
class Watch:
    """What a running driver remembers between two looks at Kafka, and need not survive a restart."""

    level_at: Mapping[TopicPartition, float] = field(default_factory=dict)
    held_until: Mapping[TopicPartition, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    slices: tuple[Slice, ...]
    next_due: float | None


def observe(watch: Watch, state: State, seen: Mapping[TopicPartition, Offsets], now: float) -> Watch:
    level = {at: now for at, offsets in seen.items() if offsets.stable <= state.offset(*at)}
    return Watch(level_at={**watch.level_at, **level}, held_until=watch.held_until)


def make_plan(
    state: State,
    seen: Mapping[TopicPartition, Offsets],
    watch: Watch,
    rules: Rules,
    now: float,
    limits: Limits = Limits(),  # noqa: B008 - frozen
) -> Plan:
    due: list[tuple[float, Slice]] = []
    later: list[float] = []
    for at, start, end in _behind(state, seen, rules):
        since = behind_since(state, watch, at)
        held = watch.held_until.get(at, 0.0)
        reason, stop = _decide(start, end, since, rules, now)
        if reason is None or held > now:
            later.append(max(held, since + rules.interval if reason is None else now))
            continue
        stop = min(stop, start + _longest(rules, limits))
        generation = state.topics[at[0]].generation
        due.append((since, Slice(at[0], generation, at[1], start, stop, reason)))
    slices = _capped([part for _, part in sorted(due)], rules, limits)
    return Plan(slices=slices, next_due=now if slices else min(later, default=None))


def behind_since(state: State, watch: Watch, at: TopicPartition) -> float:
    return max(state.topics[at[0]].partitions[at[1]].flushed_at, watch.level_at.get(at, 0.0))


def _longest(rules: Rules, limits: Limits) -> int:
    """The longest slice, in whole objects, so that a cut never leaves a short one behind."""
    objects = max(1, min(limits.offsets_per_slice // rules.records, limits.objects))
    return objects * rules.records


def _capped(due: list[Slice], rules: Rules, limits: Limits) -> tuple[Slice, ...]:
    """Those longest behind first, until the flush has as many objects as its manifest should list."""
    slices: list[Slice] = []
    objects = 0
    for part in due[: limits.slices]:
        objects += -(-(part.end - part.start) // rules.records)
        if slices and objects > limits.objects:
            break
        slices.append(part)
    return tuple(slices)


def _behind(
    state: State, seen: Mapping[TopicPartition, Offsets], rules: Rules
) -> Iterator[tuple[TopicPartition, int, int]]:
    for at, offsets in seen.items():
        start = state.offset(*at)
        end = offsets.stable
        if rules.drain_to is not None:
            generation, limit = rules.drain_to.get(at, (0, 0))
            end = min(end, limit) if generation == state.topics[at[0]].generation else start
        # A start below the earliest offset is data loss: decided before planning, never read.
        if offsets.earliest <= start < end:
            yield at, start, end


def _decide(start: int, end: int, since: float, rules: Rules, now: float) -> tuple[str | None, int]:
    """The rule that fires, and how far the slice goes: whole objects for Records, else to the end."""
    if rules.drain_to is not None:
        return Reason.DRAIN, end
    if now - since >= rules.interval:
        return Reason.INTERVAL, end
    if end - start >= rules.records:
        return Reason.RECORDS, start + (end - start) // rules.records * rules.records
    return None, end


def drained(state: State, drain_to: Mapping[TopicPartition, tuple[int, int]]) -> bool:
    """A topic made anew has nothing left of what was to be drained."""
    return all(
        state.topics[at[0]].generation != generation or state.offset(*at) >= end
        for at, (generation, end) in drain_to.items()
    )
