"""The topic of dead letters: created if missing, and written in one Kafka transaction for each flush.

The transaction also stores the name of the flush, as the offset of a consumer group of the sink. So whoever publishes a
flush again can see whether its dead letters were sent. The transactional id is the sink's: beginning a session fences
every earlier one, and ends its transaction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from py4j.protocol import Py4JJavaError

from s3sink_api.spec import S3Sink, Spec
from s3sink_job.base.errors import FinalError, S3SinkError
from s3sink_job.kafka.admin import Admin, KafkaUnavailable, root

PRODUCER = {
    "enable.idempotence": "true",
    "acks": "all",
    "transaction.timeout.ms": "600000",
    "max.block.ms": "30000",
    "delivery.timeout.ms": "120000",
    "max.request.size": str(2**30),
    "compression.type": "zstd",
}
SERIALIZER = "org.apache.kafka.common.serialization.ByteArraySerializer"
TOPIC_SETTINGS = {
    # Dead letters keep the times of their records: with a retention, old ones would be deleted at once.
    "retention.ms": "-1",
    "cleanup.policy": "delete",
    "message.timestamp.type": "CreateTime",
    "max.message.bytes": str(100 * 2**20),
}
CONTEXT = {
    "__connect.errors.topic": "topic",
    "__connect.errors.partition": "partition",
    "__connect.errors.offset": "offset",
    "__connect.errors.connector.name": "sink",
    "__connect.errors.stage": "stage",
    "__connect.errors.exception.class.name": "reason",
    "__connect.errors.exception.message": "message",
    "s3sink.flush": "flush",
    "s3sink.generation": "generation",
}
"""Headers that follow those of the record, with Kafka Connect's names where it has one, and the columns of their
values."""
FINAL = {
    "TopicAuthorizationException": "grant Describe, Read and Write on the topic, and Create if it does not exist",
    "TransactionalIdAuthorizationException": "grant Write on the transactional id",
    "GroupAuthorizationException": "grant Read on the group",
    "RecordTooLargeException": "raise max.message.bytes of the topic",
    "InvalidReplicationFactorException": "lower errors.deadLetter.replicationFactor",
    "PolicyViolationException": "create the topic yourself",
}

Context: TypeAlias = Mapping[str, str]


@dataclass(frozen=True)
class Letter:
    """A record as it is sent."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    """Milliseconds. A negative one cannot be sent: the record gets the time of sending."""
    headers: Sequence[tuple[str, bytes | None]] = ()


class LetterTopic:
    def __init__(self, admin: Admin, topic: str, sink: S3Sink) -> None:
        self._admin, self.topic = admin, topic
        place = f"{sink.spec.destination.bucket}/{sink.spec.destination.state_prefix}/{sink.id}"
        # By the place of the state: sinks of two Kubernetes clusters may share name, namespace and brokers.
        where = hashlib.sha256(place.encode()).hexdigest()[:8]
        self.name = f"s3sink.{sink.metadata.namespace}.{sink.metadata.name}.letters.{where}"
        """Of the transactional id and of the group."""

    def create_if_missing(self, replication: int | None) -> None:
        if self._exists():
            return
        wanted = self._admin.jvm.org.apache.kafka.clients.admin.NewTopic(self.topic, -1, replication or -1)
        wanted.configs(self._admin.java_map(TOPIC_SETTINGS))
        try:
            self._admin.client.createTopics(self._admin.java_list([wanted])).all().get()
        except Py4JJavaError as error:
            if root(error) != "TopicExistsException":
                raise self._translated(error, "create it") from None

    def _exists(self) -> bool:
        try:
            return self._admin.describe([self.topic])[self.topic] is not None
        except FinalError as error:
            # The advice for topics that are read would be misleading.
            if error.reason == "TopicAuthorization":
                advice = FINAL["TopicAuthorizationException"]
                text = f"spec.errors.deadLetter.topic: the user may not see {self.topic}: {advice}"
                raise FinalError(text, reason=error.reason) from None
            raise

    def check_write(self) -> None:
        """Raises if the user may not write to the topic, or not store an offset of it, which needs Read."""
        options = self._admin.jvm.org.apache.kafka.clients.admin.DescribeTopicsOptions()
        options.includeAuthorizedOperations(True)
        try:
            futures = self._admin.client.describeTopics(self._admin.java_list([self.topic]), options)
            allowed = futures.topicNameValues().get(self.topic).get().authorizedOperations()
        except Py4JJavaError as error:
            raise self._translated(error, "describe it") from None
        # Without an authorizer Kafka allows everything.
        granted = "READ, WRITE" if allowed is None else str(allowed.toString())
        if missing := [name for name in ("Read", "Write") if name.upper() not in granted]:
            raise FinalError(
                f"spec.errors.deadLetter.topic: the user may not use {self.topic}: grant {' and '.join(missing)} on it",
                reason="TopicAuthorization",
            )

    def begin(self) -> LetterSession:
        """Fences every earlier session of the sink, and ends its transaction."""
        settings = {**PRODUCER, **self._admin.properties, "transactional.id": self.name}
        settings |= {"key.serializer": SERIALIZER, "value.serializer": SERIALIZER}
        producer = None
        try:
            producer = self._admin.jvm.org.apache.kafka.clients.producer.KafkaProducer(self._admin.java_map(settings))
            producer.initTransactions()
        except Py4JJavaError as error:
            if producer is not None:
                _close(self._admin, producer)
            raise self._translated(error, "begin a transaction") from None
        return LetterSession(self, self._admin, producer)

    def _translated(self, error: Py4JJavaError, what: str) -> S3SinkError:
        kind = root(error)
        if kind in FINAL:
            text = f"spec.errors.deadLetter.topic {self.topic}, {what}: {kind}"
            return FinalError(f"{text}: {FINAL[kind]}", reason=kind.removesuffix("Exception"))
        failure = self._admin.translate(error, f"{what}, topic {self.topic} of dead letters")
        # A fenced session is begun again, if the sink was not taken over.
        return KafkaUnavailable(str(failure)) if "Fenced" in kind or "InvalidProducerEpoch" in kind else failure


class LetterSession:
    def __init__(self, topic: LetterTopic, admin: Admin, producer: Any) -> None:
        self._topic, self._admin, self._producer = topic, admin, producer

    def last_flush(self) -> str:
        """The last flush whose dead letters were sent; empty if there is none."""
        options = self._admin.short_timeout("ListConsumerGroupOffsetsOptions").requireStable(True)
        try:
            answer = self._admin.client.listConsumerGroupOffsets(self._topic.name, options)
            stored = answer.partitionsToOffsetAndMetadata().get().get(self._partition())
        except Py4JJavaError as error:
            if root(error) == "GroupIdNotFoundException":
                return ""
            raise self._topic._translated(error, "read the last flush") from None
        return "" if stored is None else str(stored.metadata())

    def send(self, letters: Iterable[Letter], flush: str, number: int) -> None:
        """In one transaction: all of them, and the flush."""
        try:
            self._producer.beginTransaction()
            for letter in letters:
                self._producer.send(self._record(letter))
            self._producer.sendOffsetsToTransaction(self._offsets(flush, number), self._group())
            self._producer.commitTransaction()
        except Py4JJavaError as error:
            raise self._topic._translated(error, "send dead letters") from None

    def close(self) -> None:
        _close(self._admin, self._producer)

    def _record(self, letter: Letter) -> Any:
        jvm = self._admin.jvm
        headers = jvm.org.apache.kafka.common.header.internals.RecordHeaders()
        for name, value in letter.headers:
            headers.add(name, value)
        time = None if letter.timestamp < 0 else letter.timestamp
        return jvm.org.apache.kafka.clients.producer.ProducerRecord(
            self._topic.topic, None, time, letter.key, letter.value, headers
        )

    def _partition(self) -> Any:
        return self._admin.partition((self._topic.topic, 0))

    def _offsets(self, flush: str, number: int) -> Any:
        stored = self._admin.jvm.org.apache.kafka.clients.consumer.OffsetAndMetadata(number, flush)
        return self._admin.jvm.java.util.Collections.singletonMap(self._partition(), stored)

    def _group(self) -> Any:
        return self._admin.jvm.org.apache.kafka.clients.consumer.ConsumerGroupMetadata(self._topic.name)


def _close(admin: Admin, producer: Any) -> None:
    producer.close(admin.jvm.java.time.Duration.ofSeconds(1))


def context_headers(row: Mapping[str, Any]) -> list[tuple[str, bytes]]:
    """Of a row of dead letters."""
    return [(name, str(row[field]).encode()) for name, field in CONTEXT.items()]


def check_letter_topic(spec: Spec, topic: LetterTopic, admin: Admin) -> None:
    """Before anything is written: raises if the topic is a source, or cannot be written to. Creates it if missing."""
    refuse_source(spec, topic.topic, admin)
    letters = spec.errors.dead_letter
    topic.create_if_missing(letters.replication_factor if letters else None)
    topic.check_write()


def refuse_source(spec: Spec, topic: str, admin: Admin) -> None:
    pattern = spec.source.topic_pattern
    if pattern and admin.matches(pattern, topic):
        raise FinalError(
            f"spec.errors.deadLetter.topic: {topic} matches spec.source.topicPattern, {pattern!r}: the sink would read "
            "its own dead letters. Use a name that does not match",
            reason="LetterTopicIsSource",
        )
