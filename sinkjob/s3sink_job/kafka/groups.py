"""A consumer group as a notice board: what is committed, for people's lag tools. The sink never reads it.

Kafka keeps a note beside each offset of a group. Ours names the sink, so that offsets which somebody else
committed are never taken for ours and overwritten.
"""

from __future__ import annotations

from collections.abc import Mapping

from py4j.protocol import Py4JJavaError

from s3sink_job.errors import FinalError, S3SinkError
from s3sink_job.flush.plan import TopicPartition
from s3sink_job.kafka.admin import Admin, root

SHOWN = 5


def refuse_members(admin: Admin, group: str) -> None:
    """Raises if somebody consumes with this group now. Kafka would not take our offsets then, either."""
    options = admin.courtesy("DescribeConsumerGroupsOptions")
    try:
        answer = admin.client.describeConsumerGroups(admin.java_list([group]), options)
        found = answer.describedGroups().get(group).get().members()
        members = [f"{m.clientId()} at {str(m.host()).lstrip('/')}" for m in found]
    except Py4JJavaError as error:
        if root(error) == "GroupIdNotFoundException":
            return
        raise _translated(admin, error, group, "describe") from None
    if members:
        more = f" and {len(members) - SHOWN} more" if len(members) > SHOWN else ""
        raise _in_use(group, f"has active members: {', '.join(sorted(members)[:SHOWN])}{more}")


def refuse_others(admin: Admin, group: str, note: str) -> None:
    """Raises if the group holds offsets without our note."""
    try:
        options = admin.courtesy("ListConsumerGroupOffsetsOptions")
        held = admin.client.listConsumerGroupOffsets(group, options).partitionsToOffsetAndMetadata().get()
        ours, count = str(held.toString()).count(f"metadata='{note}'"), int(held.size())
    except Py4JJavaError as error:
        raise _translated(admin, error, group, "read the offsets of") from None
    if ours < count:
        raise _in_use(group, f"holds offsets of {count - ours} partitions that this sink did not commit")


def publish(admin: Admin, group: str, offsets: Mapping[TopicPartition, int], note: str) -> None:
    wanted = admin.jvm.java.util.HashMap()
    for at, offset in offsets.items():
        wanted.put(admin.partition(at), admin.jvm.org.apache.kafka.clients.consumer.OffsetAndMetadata(offset, note))
    try:
        options = admin.courtesy("AlterConsumerGroupOffsetsOptions")
        admin.client.alterConsumerGroupOffsets(group, wanted, options).all().get()
    except Py4JJavaError as error:
        raise _translated(admin, error, group, "write the offsets of") from None


def _in_use(group: str, why: str) -> S3SinkError:
    text = f"spec.source.publishOffsetsTo: the group {group} {why}"
    return FinalError(f"{text}: name a group of its own, or delete this one once nobody needs it", reason="GroupInUse")


def _translated(admin: Admin, error: Py4JJavaError, group: str, what: str) -> S3SinkError:
    if root(error) == "UnknownMemberIdException":
        return _in_use(group, "has active members")
    return admin.translate(error, f"{what} group {group}")
