"""The test broker keeps records, also over SASL_SSL and after a kill."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tools.parts.kafka import KafkaBroker
from tools.parts.processes import PartFailed


def consume(topic: str, count: int, **settings: object) -> list[Message]:
    consumer = Consumer({"group.id": "reader", "enable.auto.commit": False, "log_level": 0, **settings})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        messages: list[Message] = []
        while len(messages) < count:
            got = consumer.consume(count - len(messages), timeout=20)
            assert got, f"only {len(messages)} of {count} records arrived"
            messages += got
        return messages
    finally:
        consumer.close()


def first_offset(kafka: KafkaBroker, topic: str) -> int:
    asked = kafka.admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.earliest()})
    return next(iter(asked.values())).result(10).offset


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.05)


def test_records_keep_key_value_headers_and_old_timestamps(kafka: KafkaBroker, topic_name: str) -> None:
    kafka.create_topic(topic_name)
    sent = [(b"k", b"v", [("h", b"1"), ("h", None)], 1000), (None, None, None, 2000)]
    assert kafka.produce(topic_name, sent, partition=0) == 2
    got = consume(topic_name, 2, **{"bootstrap.servers": kafka.bootstrap})
    assert [(m.key(), m.value(), m.headers(), m.timestamp()[1]) for m in got] == sent


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "PLAIN"])
def test_the_secure_listener_accepts_only_the_right_password(
    kafka: KafkaBroker, topic_name: str, mechanism: str
) -> None:
    kafka.create_topic(topic_name)
    kafka.produce(topic_name, [(b"k", b"secret", None, None)])
    listener = kafka.secure
    settings = {
        "bootstrap.servers": listener.bootstrap,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "ssl.ca.pem": listener.ca_pem,
        "sasl.username": listener.username,
    }
    (got,) = consume(topic_name, 1, **settings, **{"sasl.password": listener.password})
    assert got.value() == b"secret"
    refusals: list[KafkaError] = []
    stranger = AdminClient({**settings, "sasl.password": "wrong", "error_cb": refusals.append, "log_level": 0})
    wait_until(lambda: stranger.poll(0.1) >= 0 and bool(refusals))
    assert refusals[0].code() == KafkaError._AUTHENTICATION


def test_a_recreated_topic_is_empty_and_has_its_new_partitions(kafka: KafkaBroker, topic_name: str) -> None:
    kafka.create_topic(topic_name, partitions=2)
    kafka.add_partitions(topic_name, 3)
    kafka.produce(topic_name, [(None, b"old", None, None)], partition=2)
    kafka.delete_topic(topic_name)
    kafka.create_topic(topic_name)
    kafka.produce(topic_name, [(None, b"new", None, None)])
    (got,) = consume(topic_name, 1, **{"bootstrap.servers": kafka.bootstrap})
    assert (got.value(), got.offset()) == (b"new", 0)


def test_retention_deletes_expired_records_within_seconds(kafka: KafkaBroker, topic_name: str) -> None:
    kafka.create_topic(topic_name, config={"retention.ms": "1000"})
    kafka.produce(topic_name, [(None, b"old", None, 1000)])
    wait_until(lambda: first_offset(kafka, topic_name) == 1)


def test_compaction_keeps_the_last_record_of_a_key_within_seconds(kafka: KafkaBroker, topic_name: str) -> None:
    kafka.create_topic(topic_name, config={"cleanup.policy": "compact", "segment.ms": "100"})
    kafka.produce(topic_name, [(b"k", b"%d" % n, None, None) for n in range(3)])

    def compacted() -> bool:
        # The newest segment is never compacted: each record with another key closes the one before it.
        time.sleep(0.2)
        kafka.produce(topic_name, [(b"other", b"", None, None)])
        (got,) = consume(topic_name, 1, **{"bootstrap.servers": kafka.bootstrap})
        return got.value() == b"2"

    wait_until(compacted)


def test_records_survive_a_killed_broker() -> None:
    with KafkaBroker() as kafka:
        kafka.create_topic("kept")
        kafka.produce("kept", [(None, b"v", None, None)])
        kafka.kill()
        kafka.start()
        (got,) = consume("kept", 1, **{"bootstrap.servers": kafka.bootstrap})
        assert got.value() == b"v"


def test_a_broker_that_cannot_start_shows_its_log() -> None:
    broken = KafkaBroker(config={"num.io.threads": "none"})
    with pytest.raises(PartFailed, match=r"num\.io\.threads"):
        broken.start()
    broken.close()
