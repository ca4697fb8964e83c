"""How much of what is due one flush takes, and into which slices that is cut.

A flush is the unit of progress: what it read is repeated if it fails, and shows only when all of it is
written. So it is kept to about a minute of work, and a long backlog is many flushes. A slice is the unit
of work: where fewer partitions are due than tasks can run, a long range is cut into several, at the ends
of objects, so that cutting makes no more of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from s3sink_job.flush.manifest import Slice
from s3sink_job.spec import Spark, Spec

ASSUMED = 1024.0
"""Bytes that an offset is taken for until its partition was measured."""
LIGHTEST = 128.0
"""However little a record holds, it is as much work as one of so many bytes."""
MOST_OBJECTS = 20_000
"""That one flush makes, however many values its folders have: some minutes of requests, all listed in one manifest."""
SPREAD_PARTITIONS = 8
"""That a flush takes where folders depend on the records, so that each may make thousands of objects."""
THROTTLED_FLUSH = 60.0
"""Seconds that a flush may last at `source.maxBytesPerSecond`."""


@dataclass(frozen=True)
class Limits:
    """`parallel` is how many tasks run at once; all bytes are those that are read."""

    parallel: int = 1
    bytes_per_task: int = 2 * 2**30
    """About half a minute to a minute of work; a flush takes as much for each task that can run."""
    bytes_per_second: float | None = None
    partitions: int = 1_000
    objects: int = 5_000
    """As many as a manifest should list."""
    pieces: int = 16
    """Of one partition: each is a read of its own to Spark, which plans them one by one."""
    smallest: int = 16 * 2**20
    """Bytes below which a slice of its own costs more than it saves."""

    @property
    def bytes(self) -> float:
        whole = float(self.parallel * self.bytes_per_task)
        return whole if self.bytes_per_second is None else min(whole, self.bytes_per_second * THROTTLED_FLUSH)


@dataclass(frozen=True)
class Due:
    """Offsets `[start, end)` of a partition that a rule wants written now, with what is known of their size."""

    topic: str
    generation: int
    partition: int
    start: int
    end: int
    reason: str
    object: int
    """Offsets that one object is expected to hold."""
    weight: float = ASSUMED
    """Bytes that an offset is expected to be read as."""
    flushed_at: float = 0.0

    @property
    def length(self) -> int:
        return self.end - self.start


def task_slots(spark: Spark) -> int:
    """How many tasks run at once."""
    return spark.driver.cores if spark.mode == "Local" else spark.executor.instances * spark.executor.cores


def limits_of(spec: Spec, *, spread: bool = False) -> Limits:
    """`spread` is whether the folders of a flush depend on its records."""
    limits = Limits(parallel=task_slots(spec.spark), bytes_per_second=spec.source.max_bytes_per_second)
    return replace(limits, partitions=max(SPREAD_PARTITIONS, limits.parallel)) if spread else limits


def weight_of(read_per_offset: float | None) -> float:
    return ASSUMED if read_per_offset is None else max(LIGHTEST, read_per_offset)


def take(due: Sequence[Due], limits: Limits) -> list[tuple[Due, int]]:
    """How many offsets of each range this flush takes.

    Whoever was flushed longest ago comes first, with one object each; what room is left then is shared out
    evenly. So neither a long backlog nor many partitions keep the others waiting.
    """
    room = limits.bytes
    chosen: list[tuple[Due, int]] = []
    for part in sorted(due, key=lambda d: (d.flushed_at, d.topic, d.partition))[: limits.partitions]:
        first = _first(part, limits)
        if chosen and first * part.weight > room:
            break
        chosen.append((part, first))
        room -= first * part.weight
    lengths = _share(chosen, room)
    return _list(((part, lengths[part]) for part, _ in chosen), limits.objects)


def _first(part: Due, limits: Limits) -> int:
    """One object, even if it is more than the flush should read; but a rate is kept, object or not."""
    first = min(part.length, part.object)
    return first if limits.bytes_per_second is None else min(first, max(1, int(limits.bytes / part.weight)))


def _share(chosen: list[tuple[Due, int]], room: float) -> dict[Due, int]:
    """The shortest first, so that what one does not need is there for the longer ones."""
    lengths: dict[Due, int] = {}
    for rank, (part, first) in enumerate(sorted(chosen, key=lambda c: (c[0].length - c[1]) * c[0].weight)):
        length = min(part.length, first + int(max(0.0, room) / (len(chosen) - rank) / part.weight))
        if length < part.length and length > part.object:
            length -= length % part.object
        lengths[part] = length
        room -= (length - first) * part.weight
    return lengths


def _list(taken: Iterable[tuple[Due, int]], objects: int) -> list[tuple[Due, int]]:
    kept = []
    for part, length in taken:
        length = min(length, objects * part.object)
        objects -= -(-length // part.object)
        if length:
            kept.append((part, length))
    return kept


def cut(taken: Sequence[tuple[Due, int]], limits: Limits) -> tuple[Slice, ...]:
    """Slices of about the same weight, as many as tasks can run at once, each of whole objects."""
    share = sum(length * part.weight for part, length in taken) / limits.parallel
    slices: list[Slice] = []
    for part, length in taken:
        objects = length // part.object
        fewest = math.ceil(limits.smallest / (part.object * part.weight))
        pieces = max(1, min(round(length * part.weight / share), objects // fewest, limits.pieces))
        ends = [part.start + objects * n // pieces * part.object for n in range(1, pieces)]
        ends.append(part.start + length)
        start = part.start
        for end in ends:
            place = (part.topic, part.generation, part.partition)
            slices.append(Slice(*place, start, end, part.reason, more=end < part.end))
            start = end
    return tuple(slices)


def joined(done: Iterable[tuple[Slice, int]]) -> frozenset[Slice]:
    """The slices that may be committed, of all that were worked on and how far each got.

    Of each partition those that join, up to the first that stopped short: an offset that was committed
    beyond it would step over records that nobody wrote.
    """
    reached: dict[tuple[str, int], int] = {}
    kept = []
    for part, end in sorted(done):
        if reached.setdefault(part.at, part.start) == part.start:
            kept.append(part)
            reached[part.at] = end
    return frozenset(kept)
