"""Which slices are due now, and why: a pure function of state, offsets, clock and rules.

Nothing is read before a flush, so the planner knows offsets only, and what earlier flushes measured of their
size. A partition counts as behind since it was last seen level with Kafka or last flushed, whichever is
later; after a restart that is its last flush. What a flush left over of what was due stays due.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from s3sink_job.flush.cut import Due, Limits, cut, take, weight_of
from s3sink_job.flush.manifest import Slice
from s3sink_job.flush.state import PartitionState, State
from s3sink_job.spec import Flush

TopicPartition = tuple[str, int]
FILL = 0.95
"""How full an object is planned by its bytes: one that is planned to the brim spills a shred if the measure is off."""
THROTTLED = 5.0
"""Seconds: a flush that takes longer than this for its rate alone is called throttled."""


class Reason:
    RECORDS = "Records"
    BYTES = "Bytes"
    INTERVAL = "Interval"
    ALIGNED = "Aligned"
    DRAIN = "Drain"


@dataclass(frozen=True)
class Rules:
    """`drain_to` makes everything below the given ends due at once, for runs that end: (generation, offset) each."""

    records: int
    interval: float
    bytes: int | None = None
    aligned: float | None = None
    drain_to: Mapping[TopicPartition, tuple[int, int]] | None = None
    single: bool = False
    """Whether every record is an object of its own."""
    by_topic: Mapping[str, Rules] = field(default_factory=dict)
    """Those of topics that have their own."""

    def of(self, topic: str) -> Rules:
        return self.by_topic.get(topic, self)


def rules_of(flush: Flush, drain_to: Mapping[TopicPartition, tuple[int, int]] | None, *, single: bool = False) -> Rules:
    return Rules(flush.records, flush.interval, flush.bytes, flush.aligned, drain_to, single)


@dataclass(frozen=True)
class Offsets:
    """What Kafka has of a partition: `stable` is what may be read, `end` the high watermark."""

    earliest: int
    stable: int
    end: int
    leader_epoch: int | None = None
    """Of the leader that told; None where the broker does not tell."""


@dataclass(frozen=True)
class Watch:
    """What a running driver remembers between two looks at Kafka, and need not survive a restart."""

    level_at: Mapping[TopicPartition, float] = field(default_factory=dict)
    held_until: Mapping[TopicPartition, float] = field(default_factory=dict)
    """For ever, as infinity, where it is not to be tried again."""


@dataclass(frozen=True)
class Plan:
    """`left` counts offsets that are due and wait for the next flush."""

    slices: tuple[Slice, ...]
    next_due: float | None
    left: int = 0
    throttled: bool = False

    @property
    def length(self) -> int:
        return sum(s.end - s.start for s in self.slices)


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
    due: list[Due] = []
    later: list[float] = []
    for at, start, end in _behind(state, seen, rules):
        known, own = partition_of(state, at), rules.of(at[0])
        length, full = object_length(known, own)
        when, reason = by_clock(behind_since(state, watch, at), own)
        stop = end
        if when > now and end - start >= length:
            # Only whole objects: what would make a short one waits in Kafka for more.
            when, reason, stop = now, full, end - (end - start) % length
        when = max(when, watch.held_until.get(at, 0.0))
        if when > now:
            if math.isfinite(when):
                later.append(when)
            continue
        place = (at[0], state.topics[at[0]].generation, at[1])
        objects = 1 if own.single else length
        due.append(Due(*place, start, stop, reason, objects, weight_of(known.read_per_offset), known.flushed_at))
    taken = take(due, limits)
    slices = cut(taken, limits)
    rate = limits.bytes_per_second
    return Plan(
        slices=slices,
        next_due=now if slices else min(later, default=None),
        left=sum(d.length for d in due) - sum(length for _, length in taken),
        throttled=rate is not None and sum(length * d.weight for d, length in taken) > rate * THROTTLED,
    )


def partition_of(state: State, at: TopicPartition) -> PartitionState:
    return state.topics[at[0]].partitions[at[1]]


def behind_since(state: State, watch: Watch, at: TopicPartition) -> float:
    known = partition_of(state, at)
    since = known.flushed_at if known.waiting_since is None else known.waiting_since
    return max(since, watch.level_at.get(at, 0.0))


def object_length(known: PartitionState, rules: Rules) -> tuple[int, str]:
    """How many offsets are expected to fill an object, and the rule that says so.

    Bytes count only once they were measured: until then a guess would make objects of any size.
    """
    if rules.bytes is not None and known.written_per_offset:
        length = max(1, int(rules.bytes * FILL / known.written_per_offset))
        if length < rules.records:
            return length, Reason.BYTES
    return rules.records, Reason.RECORDS


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


def by_clock(since: float, rules: Rules) -> tuple[float, str]:
    """When a partition that is behind since then is due, however little it holds, and by which rule."""
    if rules.drain_to is not None:
        return 0.0, Reason.DRAIN
    times = [(since + rules.interval, Reason.INTERVAL)]
    if rules.aligned is not None:
        times.append(((since // rules.aligned + 1) * rules.aligned, Reason.ALIGNED))
    return min(times)


def drained(state: State, drain_to: Mapping[TopicPartition, tuple[int, int]]) -> bool:
    """A topic made anew has nothing left of what was to be drained."""
    return all(
        state.topics[at[0]].generation != generation or state.offset(*at) >= end
        for at, (generation, end) in drain_to.items()
    )
