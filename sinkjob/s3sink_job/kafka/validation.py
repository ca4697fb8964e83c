"""Validates after a change of leader that a log still has what was read from it (KIP-320).

Kafka's admin client cannot do that. A consumer does it before it fetches from a new leader: it gets an offset with its
leader epoch, and has a position once the leader has confirmed both. No record is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

from s3sink_job.flush.kafka_metadata import TopicPartition
from s3sink_job.flush.truncation import OffsetValidation

if TYPE_CHECKING:
    from s3sink_job.kafka.admin import Admin

TIMEOUT = 10
"""Seconds, for all partitions of a request."""
SHORT_TIMEOUT = 1
"""Seconds for each further partition, once one did not answer."""
CONSUMER = {
    "key.deserializer": "org.apache.kafka.common.serialization.ByteArrayDeserializer",
    "value.deserializer": "org.apache.kafka.common.serialization.ByteArrayDeserializer",
    "enable.auto.commit": "false",
    # With a reset policy the consumer would silently move to another offset.
    "auto.offset.reset": "none",
}


def validate(admin: Admin, offsets: Mapping[TopicPartition, tuple[int, int]]) -> OffsetValidation:
    """`offsets`: up to where was read, each with the epoch of the leader at that time."""
    if not offsets:
        return OffsetValidation()
    try:
        settings = admin.java_map(admin.properties | CONSUMER)
        consumer = admin.jvm.org.apache.kafka.clients.consumer.KafkaConsumer(settings)
    except Py4JJavaError as error:
        raise admin.translate(error, "make a consumer that validates offsets") from None
    try:
        return _Validation(admin, consumer).run(offsets)
    finally:
        with suppress(Py4JJavaError):  # the answers are there
            consumer.close(admin.jvm.java.time.Duration.ofSeconds(1))


class _Validation:
    def __init__(self, admin: Admin, consumer: Any) -> None:
        self._admin, self._consumer = admin, consumer
        self._timeout = TIMEOUT
        self._cut: dict[TopicPartition, int | None] = {}
        self._unknown: dict[TopicPartition, str] = {}

    def run(self, offsets: Mapping[TopicPartition, tuple[int, int]]) -> OffsetValidation:
        left = dict(offsets)
        if self._no_leader(left):
            self._timeout = SHORT_TIMEOUT
            self._unknown = {at: cause for at in offsets if (cause := self._no_leader([at]))}
            left = {at: asked for at, asked in offsets.items() if at not in self._unknown}
        while left:
            # An exception covers the partitions that were answered together; the others are requested again.
            left = self._until_next_truncation(left)
        return OffsetValidation(self._cut, self._unknown)

    def _no_leader(self, partitions: Iterable[TopicPartition]) -> str:
        """Makes the consumer find the leaders. Without them it would consider any position valid."""
        keys = self._admin.java_list(map(self._admin.partition, partitions))
        try:
            self._consumer.endOffsets(keys, self._duration())
        except Py4JJavaError as error:
            return str(error.java_exception)
        return ""

    def _until_next_truncation(
        self, offsets: Mapping[TopicPartition, tuple[int, int]]
    ) -> dict[TopicPartition, tuple[int, int]]:
        """The partitions that are still to be validated."""
        left = dict(offsets)
        self._seek(left)
        for at in offsets:
            try:
                self._consumer.position(self._admin.partition(at), self._duration())
                del left[at]
            except Py4JJavaError as error:
                if str(error.java_exception.getClass().getSimpleName()) == "LogTruncationException":
                    found = self._truncated(error.java_exception, left)
                    return {other: asked for other, asked in left.items() if other not in found}
                self._unknown[at], self._timeout = str(error.java_exception), SHORT_TIMEOUT
                del left[at]
        return {}

    def _seek(self, offsets: Mapping[TopicPartition, tuple[int, int]]) -> None:
        jvm = self._admin.jvm
        keys = {at: self._admin.partition(at) for at in offsets}
        partitions = self._admin.java_list(keys.values())
        self._consumer.assign(partitions)
        self._consumer.pause(partitions)
        for at, (offset, epoch) in offsets.items():
            position = jvm.org.apache.kafka.clients.consumer.OffsetAndMetadata(
                offset, jvm.java.util.Optional.of(epoch), ""
            )
            self._consumer.seek(keys[at], position)

    def _truncated(self, found: Any, asked: Mapping[TopicPartition, tuple[int, int]]) -> set[TopicPartition]:
        differ, lost = found.divergentOffsets(), found.offsetOutOfRangePartitions()
        keys = {at: self._admin.partition(at) for at in asked}
        points = {at: differ.get(key) for at, key in keys.items() if lost.containsKey(key)}
        self._cut |= {at: None if point is None else int(point.offset()) for at, point in points.items()}
        return set(points)

    def _duration(self) -> Any:
        return self._admin.jvm.java.time.Duration.ofSeconds(self._timeout)
