"""Dead letters in a Kafka topic: sent after the commit, once for readers of committed records."""

from __future__ import annotations

from typing import Any

import pytest

from s3sink_job.commit.letter_publisher import LetterPublisher
from s3sink_job.driver.driver import Driver
from s3sink_job.kafka.admin import KafkaUnavailable
from s3sink_job.kafka.letter_topic import LetterSession
from s3sink_job.proof.orphaned_uploads import orphaned_letters
from tests.driver.test_kafka_history import delete_records
from tests.harness import Message, World, failure_of

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
    report = world.verify(driver)
    assert (report.ok, report.sent, report.only_counted) == (True, 2, 2), report
    world.client().put_object(Bucket=world.bucket, Key=key, Body=b"left behind by a crash")
    assert list(orphaned_letters(driver.bucket(), ".s3sink/default/sink")) == [key]


def sent_again(world: World, *letters: Message, **changes: Any) -> None:
    """The same records once more, except for the changes."""
    whole = [{**vars(letter), **changes} for letter in letters]
    records = [(r["key"], r["value"], list(r["headers"]), r["timestamp"]) for r in whole]
    world.kafka.produce(f"{world.topic}-dlq", records, 0)


def figures(world: World, driver: Driver) -> tuple[bool, int, int, int, int]:
    doc = world.verify(driver).to_doc()
    assert bool(doc["findings"]) == bool(doc["missing"] + doc["duplicates"]), doc
    return doc["ok"], doc["sent"], doc["missing"], doc["duplicates"], doc["noLongerInTopic"]


def test_verify_finds_what_is_wrong_with_dead_letters_in_a_topic(world: World) -> None:
    dlq = f"{world.topic}-dlq"
    world.kafka.create_topic(world.topic)
    world.kafka.create_topic(dlq)
    # Records of others: without context headers, and with as many headers.
    many = [(f"header-{n}", b"\xff") for n in range(12)]
    world.kafka.produce(dlq, [(None, b"1", [], None), (b"k", None, many, None)], 0)
    bad = [(b"k", b"{broken \xff", HEADERS, 1_700_000_000_000 + n) for n in range(4)]
    world.kafka.produce(world.topic, [*bad, (None, b"{}", [], None), (None, b"NaN", [], None)], 0)
    driver = world.drain(errors=to_topic(world))
    assert len(world.consumed()) == len(world.rows()) + 5
    assert figures(world, driver) == (True, 5, 0, 0, 0)
    letters = world.messages(dlq)[2:]

    sent_again(world, letters[0])
    assert figures(world, driver) == (False, 5, 0, 1, 0), "a duplicate"
    delete_records(world, topic=dlq, before=world.messages(dlq)[-1].offset)
    assert figures(world, driver) == (True, 1, 0, 0, 4), "the first ones are removed"

    sent_again(world, letters[1], timestamp=1_700_000_000_000)
    sent_again(world, letters[2], headers=letters[2].headers[1:])
    sent_again(world, letters[3], value=b"{broken")
    sent_again(world, letters[4], key=b"")
    assert figures(world, driver) == (False, 5, 4, 0, 0), "four were changed"

    context = [(name, b"4" if name.endswith("offset") else value) for name, value in letters[4].headers]
    sent_again(world, letters[4], headers=context)
    assert figures(world, driver) == (False, 5, 4, 1, 0), "the record at 4 is in an object"
    others = [(name, b"other/sink" if name.endswith("name") else value) for name, value in context]
    sent_again(world, letters[4], headers=others)
    earlier = [(name, b"000000000001-other" if name == "s3sink.flush" else value) for name, value in context]
    sent_again(world, letters[4], headers=earlier)
    report = world.verify(driver)
    assert (report.counts.duplicates, report.other_letters) == (1, 1), "of another sink, and of another state"
    world.kafka.delete_topic(dlq)
    assert figures(world, driver) == (True, 0, 0, 0, 5)
    world.kafka.create_topic(dlq)
    assert figures(world, driver) == (True, 0, 0, 0, 5)


@pytest.mark.parametrize("headers", [True, False], ids=["with context", "without"])
def test_a_dead_letter_that_was_never_sent_is_missing(
    world: World, monkeypatch: pytest.MonkeyPatch, headers: bool
) -> None:
    world.kafka.create_topic(world.topic)
    # The broker sets the timestamps of this one.
    world.kafka.create_topic(f"{world.topic}-dlq", config={"message.timestamp.type": "LogAppendTime"})
    world.produce([1, b"{broken", b"NaN"])
    driver = world.drain(errors=to_topic(world, headers=headers))
    if headers:
        delete_records(world, topic=f"{world.topic}-dlq", before=1)
        assert figures(world, driver) == (True, 1, 0, 0, 1)
    send = LetterSession.send
    monkeypatch.setattr(LetterSession, "send", lambda self, letters, *rest: send(self, list(letters)[1:], *rest))
    world.produce([b"{again", b"{and again"])
    driver = world.drain(errors=to_topic(world, headers=headers))
    # What retention removed from the topic is older than the dead letters that are there.
    assert figures(world, driver) == ((False, 2, 1, 0, 1) if headers else (False, 3, 1, 0, 0))


def test_a_topic_of_dead_letters_that_matches_the_pattern_is_refused(world: World) -> None:
    world.kafka.create_topic(world.topic)
    source = {"topics": [], "topicPattern": f"{world.topic}.*"}
    error = failure_of(world.driver(source=source, errors=to_topic(world)).step)
    assert (error.reason, error.retryable) == ("LetterTopicIsSource", False)
    assert world.objects("") == [".s3sink/default/sink/state.json"]
