"""Whether a log still has what was read from it, after a change of leader (KIP-320).

Kafka's admin client cannot ask that. A consumer does it by itself before it fetches from a new leader: it is given
an offset with its leader epoch, and its position is known once the leader has confirmed both. No record is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

from s3sink_job.flush.plan import TopicPartition
from s3sink_job.flush.truncation import Validated

if TYPE_CHECKING:
    from s3sink_job.kafka.admin import Admin

ANSWER_WITHIN = 10
"""Seconds for the partitions of a question."""
AFTER_SILENCE = 1
"""Seconds for each further one once a partition did not answer."""
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
    try:
        settings = admin.java_map(admin.properties | CONSUMER)
        consumer = admin.jvm.org.apache.kafka.clients.consumer.KafkaConsumer(settings)
    except Py4JJavaError as error:
        raise admin.translate(error, "make a consumer that validates offsets") from None
    try:
        return _Question(admin, consumer).ask(offsets)
    finally:
        with suppress(Py4JJavaError):  # the answers are there
            consumer.close(admin.jvm.java.time.Duration.ofSeconds(1))


class _Question:
    def __init__(self, admin: Admin, consumer: Any) -> None:
        self._admin, self._consumer = admin, consumer
        self._within = ANSWER_WITHIN
        self._cut: dict[TopicPartition, int | None] = {}
        self._unknown: dict[TopicPartition, str] = {}

    def ask(self, offsets: Mapping[TopicPartition, tuple[int, int]]) -> Validated:
        left = dict(offsets)
        if self._no_leader(left):
            self._within = AFTER_SILENCE
            self._unknown = {at: cause for at in offsets if (cause := self._no_leader([at]))}
            left = {at: asked for at, asked in offsets.items() if at not in self._unknown}
        while left:
            # An exception names all partitions whose answers came together: the others are asked for again.
            left = self._until_the_next_cut(left)
        return Validated(self._cut, self._unknown)

    def _no_leader(self, partitions: Iterable[TopicPartition]) -> str:
        """Makes the consumer look up the leaders. Without them it would take any position for a valid one."""
        keys = self._admin.java_list(map(self._admin.partition, partitions))
        try:
            self._consumer.endOffsets(keys, self._duration())
        except Py4JJavaError as error:
            return str(error.java_exception)
        return ""

    def _until_the_next_cut(
        self, offsets: Mapping[TopicPartition, tuple[int, int]]
    ) -> dict[TopicPartition, tuple[int, int]]:
        """Those that are left to ask for; none if every other one was confirmed or did not answer."""
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
                self._unknown[at], self._within = str(error.java_exception), AFTER_SILENCE
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
        return self._admin.jvm.java.time.Duration.ofSeconds(self._within)
