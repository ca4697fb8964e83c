"""Changes of leader: whether the logs still have what was read, asked once for each change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from s3sink_job.engine.write import SliceResult
from s3sink_job.flush.manifest import SourceLog
from s3sink_job.flush.plan import Offsets, TopicPartition
from s3sink_job.flush.state import State
from s3sink_job.flush.truncation import Asked, Validated, moved_leaders
from s3sink_job.kafka.admin import Admin


class Leaders:
    def __init__(self) -> None:
        self._answers: dict[TopicPartition, tuple[Asked, bool, int | None]] = {}
        """The last question about a partition, whether its log was cut, and where."""
        self._seen: dict[TopicPartition, int | None] = {}
        self.changes = 0
        """How often a leader was seen to change. Consumers from before may hold records that the new one lacks."""

    def validate(
        self, admin: Admin, state: State, ids: Mapping[str, str], seen: Mapping[TopicPartition, Offsets]
    ) -> Validated:
        """Whether Kafka still has everything below the committed offsets."""
        epochs = {at: offsets.leader_epoch for at, offsets in seen.items()}
        self.changes += any(self._seen.get(at, epoch) != epoch for at, epoch in epochs.items())
        self._seen |= epochs
        asked = moved_leaders(state, ids, seen)
        new = {at: one for at, one in asked.items() if at not in self._answers or self._answers[at][0] != one}
        told = admin.validate({at: (one.offset, one.epoch) for at, one in new.items()}) if new else Validated()
        for at, one in new.items():
            if at not in told.unknown:
                self._answers[at] = (one, at in told.cut, told.cut.get(at))
        self._answers = {at: answer for at, answer in self._answers.items() if at in asked}
        cut = {at: point for at, (_, lost, point) in self._answers.items() if lost}
        return Validated(cut, told.unknown)


def logs_of(
    state: State, partitions: Iterable[TopicPartition], seen: Mapping[TopicPartition, Offsets]
) -> dict[str, SourceLog]:
    """What a manifest says of the logs that its records are of."""
    epochs: dict[str, dict[int, int]] = {}
    for topic, partition in sorted(set(partitions)):
        known = epochs.setdefault(topic, {})
        if (epoch := seen[topic, partition].leader_epoch) is not None:
            known[partition] = epoch
    return {topic: SourceLog(state.topics[topic].id, known) for topic, known in epochs.items()}


def cut_meanwhile(
    admin: Admin, results: Iterable[SliceResult], logs: Mapping[str, SourceLog]
) -> frozenset[TopicPartition]:
    """Partitions whose leader changed while they were read, and whose log no longer has all of it, or may not."""
    ends: dict[TopicPartition, int] = {}
    for result in results:
        ends[result.slice.at] = max(result.end, ends.get(result.slice.at, 0))
    known = {at: logs[at[0]].epochs.get(at[1]) for at in ends if at[0] in logs}
    before = {at: epoch for at, epoch in known.items() if epoch is not None}
    if not before:
        return frozenset()
    now = admin.leader_epochs(before)
    changed = {at: (ends[at], epoch) for at, epoch in before.items() if now.get(at) != epoch}
    if not changed:
        return frozenset()
    told = admin.validate({at: asked for at, asked in changed.items() if at in now})
    return frozenset({*told.cut, *told.unknown, *(at for at in changed if at not in now)})
