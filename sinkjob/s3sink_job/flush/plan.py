"""Which slices are due now, and why: a pure function of state, offsets, clock and rules.

Nothing is read before a flush, so the plan goes by offsets and by the sizes that earlier flushes measured. A partition
lags since it was last seen caught up or last flushed, whichever is later; after a restart, since its last flush. What a
flush leaves of what was due stays due.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from s3sink_job.flush.kafka_metadata import Offsets, TopicPartition
from s3sink_job.flush.manifest import Slice
from s3sink_job.flush.rules import Rules, due_by_time, offsets_per_object
from s3sink_job.flush.slicing import DueRange, Limits, bytes_per_offset, choose_ranges, split_into_slices
from s3sink_job.flush.state import SinkState, partition_of

THROTTLED_AFTER = 5.0
"""Seconds: a flush that the rate limit makes longer than this counts as throttled."""


@dataclass(frozen=True)
class PartitionTimes:
    """What a running driver remembers of partitions. A restart may forget it."""

    level_at: Mapping[TopicPartition, float] = field(default_factory=dict)
    """When a partition was last seen caught up."""
    set_back: Mapping[TopicPartition, tuple[float, float]] = field(default_factory=dict)
    """Last flushes that are in the future, since the clock was set back: their time, and when this was noticed."""
    held_until: Mapping[TopicPartition, float] = field(default_factory=dict)
    """The end of the backoff of a partition that failed. Infinity: it is not tried again."""


@dataclass(frozen=True)
class Plan:
    slices: tuple[Slice, ...]
    next_due: float | None
    left: int = 0
    """Offsets that are due and wait for the next flush."""
    throttled: bool = False

    @property
    def length(self) -> int:
        return sum(s.end - s.start for s in self.slices)


def note_caught_up(
    times: PartitionTimes, state: SinkState, seen: Mapping[TopicPartition, Offsets], now: float
) -> PartitionTimes:
    caught_up = {at: now for at, offsets in seen.items() if offsets.stable <= state.offset(*at)}
    level_at = {at: min(level, now) for at, level in times.level_at.items()}
    set_back = {}
    for at in seen:
        flushed, before = _last_flush(state, at), times.set_back.get(at)
        if before and before[0] == flushed:
            set_back[at] = (flushed, min(before[1], now))
        elif flushed > now:
            set_back[at] = (flushed, now)
    return PartitionTimes({**level_at, **caught_up}, set_back, times.held_until)


def make_plan(
    state: SinkState,
    seen: Mapping[TopicPartition, Offsets],
    times: PartitionTimes,
    rules: Rules,
    now: float,
    limits: Limits = Limits(),  # noqa: B008 - frozen
) -> Plan:
    due: list[DueRange] = []
    later: list[float] = []
    for at, start, end in _lagging(state, seen, rules):
        when, reason = due_by_time(lagging_since(state, times, at), rules.of(at[0]))
        length, full = offsets_per_object(partition_of(state, at), rules.of(at[0]))
        if when > now and end - start >= length:
            # Only full objects: the rest would make a small one and waits for more records.
            when, reason, end = now, full, end - (end - start) % length
        when = max(when, times.held_until.get(at, 0.0))
        if when <= now:
            due.append(_due_range(state, at, start, end, reason, 1 if rules.of(at[0]).single else length))
        elif math.isfinite(when):
            later.append(when)
    taken = choose_ranges(due, limits)
    slices = split_into_slices(taken, limits)
    rate = limits.bytes_per_second
    return Plan(
        slices=slices,
        next_due=now if slices else min(later, default=None),
        left=sum(d.length for d in due) - sum(length for _, length in taken),
        throttled=rate is not None and sum(length * d.bytes_per_offset for d, length in taken) > rate * THROTTLED_AFTER,
    )


def _due_range(state: SinkState, at: TopicPartition, start: int, end: int, reason: str, object_length: int) -> DueRange:
    topic, partition = at
    known = partition_of(state, at)
    size = bytes_per_offset(known.read_per_offset)
    generation = state.topics[topic].generation
    return DueRange(topic, generation, partition, start, end, reason, object_length, size, known.flushed_at)


def lagging_since(state: SinkState, times: PartitionTimes, at: TopicPartition) -> float:
    """If the clock was set back, an interval counts from when this was noticed, not from a time in the future."""
    flushed, (ahead, noticed) = _last_flush(state, at), times.set_back.get(at, (0.0, 0.0))
    return max(noticed if flushed == ahead else flushed, times.level_at.get(at, 0.0))


def _last_flush(state: SinkState, at: TopicPartition) -> float:
    known = partition_of(state, at)
    return known.flushed_at if known.waiting_since is None else known.waiting_since


def _lagging(
    state: SinkState, seen: Mapping[TopicPartition, Offsets], rules: Rules
) -> Iterator[tuple[TopicPartition, int, int]]:
    """Partitions with readable offsets that are not committed, and these offsets `[start, end)`."""
    for at, offsets in seen.items():
        start = state.offset(*at)
        end = offsets.stable
        if rules.drain_to is not None:
            generation, limit = rules.drain_to.get(at, (0, 0))
            end = min(end, limit) if generation == state.topics[at[0]].generation else start
        # A start below the earliest offset is data loss. That was handled before, and is never read.
        if offsets.earliest <= start < end:
            yield at, start, end


def drained(state: SinkState, drain_to: Mapping[TopicPartition, tuple[int, int]]) -> bool:
    """Whether all is committed that was to be drained. Of a recreated topic nothing is left to drain."""
    return all(
        state.topics[at[0]].generation != generation or state.offset(*at) >= end
        for at, (generation, end) in drain_to.items()
    )
