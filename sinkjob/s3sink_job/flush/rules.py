"""The flush rules: what makes a partition due, and how much an object holds.

A new rule is a field of `Rules`, a function, and an entry in `TIME_RULES` or `SIZE_RULES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from s3sink_api.spec import Flush
from s3sink_job.flush.aligned_times import next_aligned
from s3sink_job.flush.kafka_metadata import TopicPartition
from s3sink_job.flush.state import PartitionState

FILL = 0.95
"""How full an object is planned by its bytes. The measure is not exact, and a full one would leave tiny objects."""
AT_ONCE = 0.0


class Reason:
    RECORDS = "Records"
    BYTES = "Bytes"
    INTERVAL = "Interval"
    ALIGNED = "Aligned"
    DRAIN = "Drain"


@dataclass(frozen=True)
class Rules:
    records: int
    interval: float
    bytes: int | None = None
    aligned: float | None = None
    timezone: str = "UTC"
    """Whose clock `aligned` goes by."""
    drain_to: Mapping[TopicPartition, tuple[int, int]] | None = None
    """For runs that end: everything below (generation, offset) is due at once, and nothing else ever."""
    single: bool = False
    """Whether every record is an object of its own."""
    by_topic: Mapping[str, Rules] = field(default_factory=dict)
    """Rules of topics that a route gives their own."""

    def of(self, topic: str) -> Rules:
        return self.by_topic.get(topic, self)


def rules_of(flush: Flush, drain_to: Mapping[TopicPartition, tuple[int, int]] | None, *, single: bool = False) -> Rules:
    return Rules(
        flush.records, flush.interval, flush.bytes, flush.aligned, flush.timezone, drain_to=drain_to, single=single
    )


class DueTime(NamedTuple):
    time: float
    reason: str


class ObjectLength(NamedTuple):
    offsets: int
    reason: str


def _by_drain(rules: Rules, since: float) -> float | None:
    return None if rules.drain_to is None else AT_ONCE


def _by_interval(rules: Rules, since: float) -> float | None:
    return since + rules.interval


def _by_alignment(rules: Rules, since: float) -> float | None:
    return None if rules.aligned is None else next_aligned(since, rules.aligned, rules.timezone)


TIME_RULES: Mapping[str, Callable[[Rules, float], float | None]] = {
    Reason.DRAIN: _by_drain,
    Reason.INTERVAL: _by_interval,
    Reason.ALIGNED: _by_alignment,
}
"""When a partition that lags since then is due, however few records it has. None: never by this rule."""


def _by_records(rules: Rules, partition: PartitionState) -> int | None:
    return rules.records


def _by_bytes(rules: Rules, partition: PartitionState) -> int | None:
    """Only once a flush has measured the partition. A guess would make objects of any size."""
    if rules.bytes is None or not partition.written_per_offset:
        return None
    return max(1, int(rules.bytes * FILL / partition.written_per_offset))


SIZE_RULES: Mapping[str, Callable[[Rules, PartitionState], int | None]] = {
    Reason.RECORDS: _by_records,
    Reason.BYTES: _by_bytes,
}
"""How many offsets fill an object. None: this rule sets no limit."""


def due_by_time(since: float, rules: Rules) -> DueTime:
    """The first time at which a rule makes a partition due that lags since then."""
    times = {reason: rule(rules, since) for reason, rule in TIME_RULES.items()}
    return min(DueTime(time, reason) for reason, time in times.items() if time is not None)


def offsets_per_object(partition: PartitionState, rules: Rules) -> ObjectLength:
    """How many offsets are expected to fill an object, by the rule with the lowest limit."""
    lengths = {reason: rule(rules, partition) for reason, rule in SIZE_RULES.items()}
    limits = [ObjectLength(length, reason) for reason, length in lengths.items() if length is not None]
    return min(limits, key=lambda limit: limit.offsets)
