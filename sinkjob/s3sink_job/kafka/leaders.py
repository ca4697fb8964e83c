"""Changes of leader, and whether the logs still have what was read: validated once for each change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from s3sink_job.flush.kafka_metadata import Offsets, TopicPartition
from s3sink_job.flush.manifest import Slice, SourceLog
from s3sink_job.flush.state import SinkState
from s3sink_job.flush.truncation import OffsetToValidate, OffsetValidation, offsets_to_validate
from s3sink_job.kafka.admin import Admin


class Leaders:
    def __init__(self) -> None:
        self._answers: dict[TopicPartition, tuple[OffsetToValidate, bool, int | None]] = {}
        """By partition: what was validated last, whether the log was truncated, and where."""
        self._seen: dict[TopicPartition, int | None] = {}
        self.changes = 0
        """How often a leader changed. Older consumers may hold records that the new leader does not have."""

    def validate(
        self, admin: Admin, state: SinkState, ids: Mapping[str, str], seen: Mapping[TopicPartition, Offsets]
    ) -> OffsetValidation:
        """Whether Kafka still has everything below the committed offsets."""
        epochs = {at: offsets.leader_epoch for at, offsets in seen.items()}
        self.changes += any(self._seen.get(at, epoch) != epoch for at, epoch in epochs.items())
        self._seen |= epochs
        asked = offsets_to_validate(state, ids, seen)
        new = {at: one for at, one in asked.items() if at not in self._answers or self._answers[at][0] != one}
        told = admin.validate({at: (one.offset, one.epoch) for at, one in new.items()}) if new else OffsetValidation()
        for at, one in new.items():
            if at not in told.unanswered:
                self._answers[at] = (one, at in told.truncated, told.truncated.get(at))
        self._answers = {at: answer for at, answer in self._answers.items() if at in asked}
        cut = {at: point for at, (_, lost, point) in self._answers.items() if lost}
        return OffsetValidation(cut, told.unanswered)


def source_logs(
    state: SinkState, partitions: Iterable[TopicPartition], seen: Mapping[TopicPartition, Offsets]
) -> dict[str, SourceLog]:
    """The logs of these partitions, as a manifest lists them."""
    epochs: dict[str, dict[int, int]] = {}
    for topic, partition in sorted(set(partitions)):
        known = epochs.setdefault(topic, {})
        if (epoch := seen[topic, partition].leader_epoch) is not None:
            known[partition] = epoch
    return {topic: SourceLog(state.topics[topic].id, known) for topic, known in epochs.items()}


def truncated_meanwhile(
    admin: Admin, read: Iterable[tuple[Slice, int]], logs: Mapping[str, SourceLog]
) -> frozenset[TopicPartition]:
    """Partitions whose leader changed while they were read, and whose log was truncated, or may have been.

    `read`: each slice with the offset up to which it was read.
    """
    ends: dict[TopicPartition, int] = {}
    for part, end in read:
        ends[part.at] = max(end, ends.get(part.at, 0))
    known = {at: logs[at[0]].epochs.get(at[1]) for at in ends if at[0] in logs}
    before = {at: epoch for at, epoch in known.items() if epoch is not None}
    if not before:
        return frozenset()
    now = admin.leader_epochs(before)
    changed = {at: (ends[at], epoch) for at, epoch in before.items() if now.get(at) != epoch}
    if not changed:
        return frozenset()
    told = admin.validate({at: asked for at, asked in changed.items() if at in now})
    return frozenset({*told.truncated, *told.unanswered, *(at for at in changed if at not in now)})
