"""Uploads that somebody aborted between commit and publish: written again from Kafka, or noted as gaps."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from s3sink_job.engine.write import SliceResult
from s3sink_job.errors import FinalError
from s3sink_job.flush.manifest import Gap, GapReason, ObjectEntry, Slice
from s3sink_job.flush.state import State
from s3sink_job.kafka.admin import Admin

Left = tuple[Slice, ObjectEntry]
"""Offsets to read again, and the object that their records were in."""


def what_is_left(
    state: State, lost: list[ObjectEntry], admin: Admin, clock: Callable[[], float]
) -> tuple[tuple[Left, ...], tuple[Gap, ...]]:
    """For each lost object the part of its range that Kafka still has, and the part that is gone for good."""
    topics = admin.describe(sorted({o.topic for o in lost}))
    left, gaps = [], []
    for entry in lost:
        topic, known = topics[entry.topic], state.topics.get(entry.topic)
        at = (entry.topic, entry.partition)
        same = topic and known and topic.id == known.id and known.generation == entry.generation
        earliest = admin.offsets([at], committed=False)[at].earliest if same else entry.last + 1
        start = min(max(entry.first, earliest), entry.last + 1)
        place = (entry.topic, entry.generation, entry.partition)
        if start > entry.first:
            gaps.append(Gap(*place, entry.first, start, GapReason.UPLOAD_LOST, clock()))
        if start <= entry.last:
            left.append((Slice(*place, start, entry.last + 1, "Repair"), entry))
    return tuple(left), tuple(gaps)


def check_whole(left: Iterable[Left], results: Iterable[SliceResult], admin: Admin) -> None:
    """Raises if an object would come back with fewer records than it had, though Kafka should have them all."""
    for (part, entry), result in zip(left, results, strict=True):
        rows = sum(o.rows for o in result.objects)
        if rows < entry.rows and part.start == entry.first and not admin.compacted([part.topic]):
            raise FinalError(
                f"{entry.key} held {entry.rows} records when its upload vanished, and only {rows} of them can be "
                f"written again from {part}: nothing of it was committed, and it is tried again",
                reason="RepairFellShort",
            )
