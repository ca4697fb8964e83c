"""Dead letters in a Kafka topic: sent after the commit, once for readers of committed records."""

from __future__ import annotations

from typing import Any

import pytest

from s3sink_job.commit.letter_publisher import LetterPublisher
from s3sink_job.kafka.admin import KafkaUnavailable
from s3sink_job.proof.orphaned_uploads import orphaned_letters
from tests.harness import World, failure_of

HEADERS = [("trace", b"\x00\xff"), ("trace", None)]


def to_topic(world: World, **changes: Any) -> dict[str, Any]:
    return {"records": "DeadLetter", "deadLetter": {"topic": f"{world.topic}-dlq", "replicationFactor": 1, **changes}}


def staged(world: World) -> list[str]:
    return world.objects(".s3sink/default/sink/letters/")


def test_dead_letters_in_a_topic_are_the_records_with_headers_of_connect(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.kafka.produce(world.topic, [(b"\x00k", b"{broken \xff", HEADERS, 1_700_000_000_123)], 0)
    world.produce([2, b"NaN"])
    driver = world.drain(errors=to_topic(world))
    first, second = world.messages(f"{world.topic}-dlq")
    assert world.rows() == [2]
    assert (first.key, first.value, first.timestamp) == (b"\x00k", b"{broken \xff", 1_700_000_000_123)
    assert list(first.headers[:2]) == HEADERS
    context = {name: value.decode() for name, value in first.headers[2:] if value is not None}
    assert context["__connect.errors.topic"] == world.topic
    assert (context["__connect.errors.partition"], context["__connect.errors.offset"]) == ("0", "0")
    assert context["__connect.errors.stage"] == "Decode"
    assert context["__connect.errors.exception.class.name"] == "NotUtf8"
    assert (context["__connect.errors.connector.name"], context["s3sink.generation"]) == ("default/sink", "1")
    assert context["s3sink.flush"] == world.state()["last"]
    assert (second.key, second.value) == (None, b"NaN")
    assert staged(world) == []
    report = world.verify(driver)
    assert (report.ok, report.counts.records, report.sent) == (True, 1, 2), report


@pytest.mark.parametrize("sent", [False, True], ids=["before it sends them", "after it sent them"])
def test_a_driver_that_ends_around_sending_dead_letters_sends_them_once(
    world: World, monkeypatch: pytest.MonkeyPatch, sent: bool
) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1, b"{broken", b"NaN"])
    publish = LetterPublisher.publish

    def dies(self: LetterPublisher, *arguments: Any) -> Any:
        if sent:
            publish(self, *arguments)
        raise KafkaUnavailable("killed")

    with monkeypatch.context() as patch:
        patch.setattr(LetterPublisher, "publish", dies)
        driver = world.driver(errors=to_topic(world, headers=False))
        assert failure_of(driver.step).reason == "KafkaUnavailable"
    (key,) = staged(world)
    assert list(orphaned_letters(driver.bucket(), ".s3sink/default/sink")) == [], "they are still needed"
    assert [m.value for m in world.messages(f"{world.topic}-dlq")] == ([b"{broken", b"NaN"] if sent else [])
    # The topic of the manifest counts, whatever the spec says by then.
    driver = world.drain(errors={"records": "Skip"})
    found = world.messages(f"{world.topic}-dlq")
    assert [(m.value, m.headers) for m in found] == [(b"{broken", ()), (b"NaN", ())]
    assert staged(world) == []
    assert world.verify(driver).ok
    world.client().put_object(Bucket=world.bucket, Key=key, Body=b"left behind by a crash")
    assert list(orphaned_letters(driver.bucket(), ".s3sink/default/sink")) == [key]


def test_a_topic_of_dead_letters_that_matches_the_pattern_is_refused(world: World) -> None:
    world.kafka.create_topic(world.topic)
    source = {"topics": [], "topicPattern": f"{world.topic}.*"}
    error = failure_of(world.driver(source=source, errors=to_topic(world)).step)
    assert (error.reason, error.retryable) == ("LetterTopicIsSource", False)
    assert world.objects("") == [".s3sink/default/sink/state.json"]
