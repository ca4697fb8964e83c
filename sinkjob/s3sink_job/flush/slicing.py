"""How much of what is due one flush writes, and how that is split into slices.

A flush is the unit of progress: if it fails, all of it is repeated, and its objects show only when all are written.
So a flush is kept to about a minute of work, and a long backlog takes many flushes. A slice is the unit of work, one
Spark task. Where fewer partitions are due than tasks can run, a long range is split at the ends of objects, so that
splitting makes no additional objects.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from s3sink_api.spec import Spark, Spec
from s3sink_job.flush.manifest import Slice

ASSUMED_BYTES = 1024.0
"""Of an offset, until its partition was measured."""
MIN_BYTES = 128.0
"""Of an offset. A smaller record is as much work as one of this size."""
MOST_OBJECTS = 20_000
"""In one flush, however many values its folders have: some minutes of requests, and one manifest lists them all."""
SPREAD_PARTITIONS = 8
"""In one flush where folders depend on the records, since each partition may make thousands of objects."""
THROTTLED_FLUSH = 60.0
"""Seconds that a flush may take at `source.maxBytesPerSecond`."""


@dataclass(frozen=True)
class Limits:
    """Of one flush. Bytes are those that are read from Kafka."""

    parallel: int = 1
    """How many tasks run at once."""
    bytes_per_task: int = 2 * 2**30
    """About half a minute to a minute of work."""
    bytes_per_second: float | None = None
    partitions: int = 1_000
    objects: int = 5_000
    """As many as a manifest should list."""
    pieces: int = 16
    """Slices of one partition. Each is a read of its own, and Spark plans them one by one."""
    smallest: int = 16 * 2**20
    """Bytes below which a slice of its own costs more than it saves."""

    @property
    def bytes(self) -> float:
        whole = float(self.parallel * self.bytes_per_task)
        return whole if self.bytes_per_second is None else min(whole, self.bytes_per_second * THROTTLED_FLUSH)


@dataclass(frozen=True)
class DueRange:
    """Offsets `[start, end)` of a partition that a rule makes due."""

    topic: str
    generation: int
    partition: int
    start: int
    end: int
    reason: str
    object_length: int
    """Offsets that one object is expected to hold."""
    bytes_per_offset: float = ASSUMED_BYTES
    flushed_at: float = 0.0

    @property
    def length(self) -> int:
        return self.end - self.start


def task_slots(spark: Spark) -> int:
    """How many tasks run at once."""
    return spark.driver.cores if spark.mode == "Local" else spark.executor.instances * spark.executor.cores


def limits_of(spec: Spec, *, spread: bool = False) -> Limits:
    """`spread`: whether the folders of a flush depend on its records."""
    limits = Limits(parallel=task_slots(spec.spark), bytes_per_second=spec.source.max_bytes_per_second)
    return replace(limits, partitions=max(SPREAD_PARTITIONS, limits.parallel)) if spread else limits


def bytes_per_offset(measured: float | None) -> float:
    return ASSUMED_BYTES if measured is None else max(MIN_BYTES, measured)


def choose_ranges(due: Sequence[DueRange], limits: Limits) -> list[tuple[DueRange, int]]:
    """How many offsets of each range this flush writes.

    The partition with the oldest flush comes first. Each gets one object; the rest of the flush is shared evenly. So
    neither a long backlog nor many partitions make the others wait.
    """
    room = limits.bytes
    chosen: list[tuple[DueRange, int]] = []
    for part in sorted(due, key=lambda d: (d.flushed_at, d.topic, d.partition))[: limits.partitions]:
        first = _first_object(part, limits)
        if chosen and first * part.bytes_per_offset > room:
            break
        chosen.append((part, first))
        room -= first * part.bytes_per_offset
    lengths = _share_rest(chosen, room)
    return _limit_objects(((part, lengths[part]) for part, _ in chosen), limits.objects)


def _first_object(part: DueRange, limits: Limits) -> int:
    """A full object, even if it is more than a flush should read. A rate limit is kept, even if it splits an object."""
    first = min(part.length, part.object_length)
    return first if limits.bytes_per_second is None else min(first, max(1, int(limits.bytes / part.bytes_per_offset)))


def _share_rest(chosen: list[tuple[DueRange, int]], room: float) -> dict[DueRange, int]:
    """The shortest first: what it does not need is left for the longer ones."""
    lengths: dict[DueRange, int] = {}
    by_rest = sorted(chosen, key=lambda c: (c[0].length - c[1]) * c[0].bytes_per_offset)
    for rank, (part, first) in enumerate(by_rest):
        length = min(part.length, first + int(max(0.0, room) / (len(chosen) - rank) / part.bytes_per_offset))
        if length < part.length and length > part.object_length:
            length -= length % part.object_length
        lengths[part] = length
        room -= (length - first) * part.bytes_per_offset
    return lengths


def _limit_objects(taken: Iterable[tuple[DueRange, int]], objects: int) -> list[tuple[DueRange, int]]:
    kept = []
    for part, length in taken:
        length = min(length, objects * part.object_length)
        objects -= -(-length // part.object_length)
        if length:
            kept.append((part, length))
    return kept


def split_into_slices(taken: Sequence[tuple[DueRange, int]], limits: Limits) -> tuple[Slice, ...]:
    """Slices of about the same size, as many as tasks can run at once, each of full objects."""
    share = sum(length * part.bytes_per_offset for part, length in taken) / limits.parallel
    slices: list[Slice] = []
    for part, length in taken:
        objects = length // part.object_length
        fewest = math.ceil(limits.smallest / (part.object_length * part.bytes_per_offset))
        pieces = max(1, min(round(length * part.bytes_per_offset / share), objects // fewest, limits.pieces))
        ends = [part.start + objects * n // pieces * part.object_length for n in range(1, pieces)]
        ends.append(part.start + length)
        start = part.start
        for end in ends:
            place = (part.topic, part.generation, part.partition)
            slices.append(Slice(*place, start, end, part.reason, more=end < part.end))
            start = end
    return tuple(slices)


def contiguous_slices(done: Iterable[tuple[Slice, int]]) -> frozenset[Slice]:
    """The slices that may be committed, of all slices and the offset that each reached.

    Of each partition these are the slices that follow one another, up to the first that stopped short. To commit more
    would skip records that were not written.
    """
    reached: dict[tuple[str, int], int] = {}
    kept = []
    for part, end in sorted(done):
        if reached.setdefault(part.at, part.start) == part.start:
            kept.append(part)
            reached[part.at] = end
    return frozenset(kept)
