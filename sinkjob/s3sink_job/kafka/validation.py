"""Whether a log still has what was read from it, after a change of leader (KIP-320).

Kafka's admin client cannot ask that. A consumer does it by itself before it fetches from a new leader: it is given
an offset with its leader epoch, and its position is known once the leader has confirmed both. No record is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

from s3sink_job.flush.plan import TopicPartition
from s3sink_job.flush.truncation import Validated

if TYPE_CHECKING:
    from s3sink_job.kafka.admin import Admin

ANSWER_WITHIN = 10
"""Seconds for all partitions of a question."""
CONSUMER = {
    "key.deserializer": "org.apache.kafka.common.serialization.ByteArrayDeserializer",
    "value.deserializer": "org.apache.kafka.common.serialization.ByteArrayDeserializer",
    "enable.auto.commit": "false",
    # A consumer with a policy would move to another offset and say nothing.
    "auto.offset.reset": "none",
}


def validate(admin: Admin, offsets: Mapping[TopicPartition, tuple[int, int]]) -> Validated:
    """`offsets` are those up to which was read, each with the epoch of the leader that was read from."""
    if not offsets:
        return Validated()
    consumer = admin.jvm.org.apache.kafka.clients.consumer.KafkaConsumer(admin.java_map(admin.properties | CONSUMER))
    left, cut = dict(offsets), dict[TopicPartition, int | None]()
    try:
        # The exception names all partitions whose answers came together: the others are asked for again.
        while left and (found := _first_cut(admin, consumer, left)):
            cut |= found
            left = {at: asked for at, asked in left.items() if at not in found}
    except Py4JJavaError as error:
        return Validated(cut, dict.fromkeys(left, str(error.java_exception)))
    finally:
        consumer.close(admin.jvm.java.time.Duration.ofSeconds(1))
    return Validated(cut)


def _first_cut(
    admin: Admin, consumer: Any, offsets: Mapping[TopicPartition, tuple[int, int]]
) -> dict[TopicPartition, int | None]:
    """Some partitions whose logs were cut; none if every log was confirmed."""
    clients, optional = admin.jvm.org.apache.kafka.clients.consumer, admin.jvm.java.util.Optional
    within = admin.jvm.java.time.Duration.ofSeconds(ANSWER_WITHIN)
    keys = {at: admin.partition(at) for at in offsets}
    partitions = admin.java_list(keys.values())
    consumer.assign(partitions)
    consumer.pause(partitions)
    # Makes the consumer look up the leaders. Without them it would take any position for a valid one.
    consumer.endOffsets(partitions, within)
    for at, (offset, epoch) in offsets.items():
        consumer.seek(keys[at], clients.OffsetAndMetadata(offset, optional.of(epoch), ""))
    try:
        for key in keys.values():
            consumer.position(key, within)
    except Py4JJavaError as error:
        found = error.java_exception
        if str(found.getClass().getSimpleName()) != "LogTruncationException":
            raise
        differ = found.divergentOffsets()
        lost = found.offsetOutOfRangePartitions()
        points = {at: differ.get(key) for at, key in keys.items() if lost.containsKey(key)}
        return {at: None if point is None else int(point.offset()) for at, point in points.items()}
    return {}
