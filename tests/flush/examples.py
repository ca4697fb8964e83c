"""States and manifests for the tests in this folder."""

from __future__ import annotations

from s3sink_job.flush.manifest import Gap, GapReason, Manifest, ObjectEntry, SliceEntry
from s3sink_job.flush.state import Owner, PartitionState, SinkState, TopicState

NOW = 1_000_000.0


def state_of(*partitions: PartitionState | int, generation: int = 1, topic: str = "orders") -> SinkState:
    """A sink with one topic; a plain number is the committed offset of a partition that began at 0."""
    known = {number: PartitionState(0, at, NOW) if isinstance(at, int) else at for number, at in enumerate(partitions)}
    owner = Owner("cluster", "default", "sink", "uid")
    return SinkState(owner=owner, topics={topic: TopicState("id-1", generation, known)})


def slice_entry(start: int, end: int, *, partition: int = 0, generation: int = 1) -> SliceEntry:
    return SliceEntry("orders", generation, partition, start, end, "Records", end - start)


def object_entry(first: int, last: int, *, partition: int = 0) -> ObjectEntry:
    key = f"orders/{partition}/{first:019d}.jsonl"
    rows = last - first + 1
    return ObjectEntry(key, f"upload-{first}", ('"etag"',), "orders", 1, partition, first, last, rows, rows * 10)


def gap(start: int, end: int, reason: str = GapReason.RETENTION, *, generation: int = 1) -> Gap:
    return Gap("orders", generation, 0, start, end, reason, NOW)


def manifest(
    number: int = 1,
    *,
    after: SinkState | None = None,
    slices: tuple[SliceEntry, ...] = (),
    objects: tuple[ObjectEntry, ...] = (),
    gaps: tuple[Gap, ...] = (),
) -> Manifest:
    previous = after.last if after else None
    return Manifest(number, "writer", 1, NOW + 5, {}, previous, slices, objects, gaps)
