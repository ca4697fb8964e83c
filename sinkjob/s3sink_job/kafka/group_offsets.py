"""Copies the committed offsets to a consumer group, for lag tools (`spec.source.publishOffsetsTo`).

The state in the bucket stays the only source of truth. The group is written after a flush is published and never read
to resume from. A failure is reported and retried later; it never delays a flush.

Kafka stores a text beside each offset of a group. Ours names the sink, so that offsets of other consumers are
recognised and never overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from py4j.protocol import Py4JJavaError

from s3sink_job.base.errors import FinalError, S3SinkError
from s3sink_job.flush.kafka_metadata import TopicPartition
from s3sink_job.flush.state import SinkState
from s3sink_job.kafka.admin import Admin, root
from s3sink_job.report import logs
from s3sink_job.report.status import Reporter

RETRY_AFTER = 30.0
MEMBERS_SHOWN = 5


class GroupOffsets:
    def __init__(self, group: str | None, reporter: Reporter, clock: Callable[[], float]) -> None:
        self.group, self._reporter, self._clock = group, reporter, clock
        self._published: dict[TopicPartition, int] = {}
        self._checked = False
        """Whether the group is known to hold no offsets of others."""
        self._not_before = 0.0

    def publish(self, admin: Callable[[], Admin], state: SinkState, partitions: Iterable[TopicPartition]) -> None:
        """Sets the group to the committed offsets, also backwards, as for a recreated topic."""
        if self.group is None:
            return
        changed = {at: offset for at in partitions if self._published.get(at) != (offset := state.offset(*at))}
        now = self._clock()
        if not changed or 0 < self._not_before - now <= RETRY_AFTER:
            return
        try:
            self._publish(admin(), self.group, changed, f"s3sink {state.owner}")
        except S3SinkError as error:
            self._checked, self._not_before = False, now + RETRY_AFTER
            self._reporter.offsets_published(self.group, error)
            logs.warning(
                "could not publish offsets to the consumer group; retrying, flushes go on",
                group=self.group,
                reason=error.reason,
                cause=str(error),
            )
        else:
            self._published |= changed
            self._reporter.offsets_published(self.group)

    def _publish(self, admin: Admin, group: str, offsets: dict[TopicPartition, int], note: str) -> None:
        refuse_members(admin, group)
        if not self._checked:
            _refuse_offsets_of_others(admin, group, note)
        _alter_offsets(admin, group, offsets, note)
        self._checked = True


def refuse_members(admin: Admin, group: str) -> None:
    """Raises if the group has active consumers. Kafka would not accept our offsets then, either."""
    if members := members_of(admin, group):
        raise _in_use(group, f"has active members: {', '.join(members)}")


def members_of(admin: Admin, group: str) -> list[str]:
    """Active consumers of the group in words, the first few of them."""
    options = admin.short_timeout("DescribeConsumerGroupsOptions")
    try:
        answer = admin.client.describeConsumerGroups(admin.java_list([group]), options)
        found = answer.describedGroups().get(group).get().members()
        members = [f"{m.clientId()} at {str(m.host()).lstrip('/')}" for m in found]
    except Py4JJavaError as error:
        if root(error) == "GroupIdNotFoundException":
            return []
        raise _translated(admin, error, group, "describe") from None
    more = [f"{len(members) - MEMBERS_SHOWN} more"] if len(members) > MEMBERS_SHOWN else []
    return [*sorted(members)[:MEMBERS_SHOWN], *more]


def committed_offsets(admin: Admin, group: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """The offsets that the group has committed, of those partitions in which it has."""
    try:
        options = admin.short_timeout("ListConsumerGroupOffsetsOptions")
        stored = admin.client.listConsumerGroupOffsets(group, options).partitionsToOffsetAndMetadata().get()
    except Py4JJavaError as error:
        if root(error) == "GroupIdNotFoundException":
            return {}
        raise _translated(admin, error, group, "read the offsets of") from None
    found = {at: stored.get(admin.partition(at)) for at in partitions}
    return {at: int(entry.offset()) for at, entry in found.items() if entry is not None}


def _refuse_offsets_of_others(admin: Admin, group: str, note: str) -> None:
    """Raises if the group holds offsets without our note."""
    try:
        options = admin.short_timeout("ListConsumerGroupOffsetsOptions")
        stored = admin.client.listConsumerGroupOffsets(group, options).partitionsToOffsetAndMetadata().get()
        ours, count = str(stored.toString()).count(f"metadata='{note}'"), int(stored.size())
    except Py4JJavaError as error:
        raise _translated(admin, error, group, "read the offsets of") from None
    if ours < count:
        raise _in_use(group, f"holds offsets of {count - ours} partitions that this sink did not commit")


def _alter_offsets(admin: Admin, group: str, offsets: Mapping[TopicPartition, int], note: str) -> None:
    wanted = admin.jvm.java.util.HashMap()
    for at, offset in offsets.items():
        wanted.put(admin.partition(at), admin.jvm.org.apache.kafka.clients.consumer.OffsetAndMetadata(offset, note))
    try:
        options = admin.short_timeout("AlterConsumerGroupOffsetsOptions")
        admin.client.alterConsumerGroupOffsets(group, wanted, options).all().get()
    except Py4JJavaError as error:
        raise _translated(admin, error, group, "write the offsets of") from None


def _in_use(group: str, why: str) -> S3SinkError:
    text = f"spec.source.publishOffsetsTo: the consumer group {group} {why}"
    return FinalError(f"{text}. Use a group of its own, or delete this one if nobody needs it", reason="GroupInUse")


def _translated(admin: Admin, error: Py4JJavaError, group: str, what: str) -> S3SinkError:
    if root(error) == "UnknownMemberIdException":
        return _in_use(group, "has active members")
    return admin.translate(error, f"{what} group {group}")
