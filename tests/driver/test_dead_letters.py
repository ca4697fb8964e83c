"""Bad records as dead letters: each is in the bucket once, byte for byte, with the reason, and accounted for."""

from __future__ import annotations

import base64
import json
import logging
from datetime import timedelta
from typing import Any

import pyarrow.parquet as pq
import pytest

from s3sink_job.driver.driver import Driver
from s3sink_job.proof.orphaned_uploads import orphaned_uploads
from s3sink_job.report import logs
from tests.commit.test_store_faults import abort_all, committed_but_unpublished
from tests.harness import World

PREFIX = {"records": "DeadLetter", "deadLetter": {"prefix": "_dead_letter"}}
LINES = {"records": "DeadLetter", "deadLetter": {"prefix": "_dead_letter", "format": "Json"}, "logRecords": True}
HEADERS = [("trace", b"\x00\xff"), ("trace", None)]


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The fields of the log lines about dead letters."""
    lines: list[dict[str, Any]] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage() == "dead letter":
                lines.append(getattr(record, logs.FIELDS))

    monkeypatch.setattr(logs.log, "handlers", [Kept()])
    return lines


def letters(world: World) -> list[dict[str, Any]]:
    """The rows of all dead letters, in order of keys."""
    found: list[dict[str, Any]] = []
    for path in world.download(world.folder / "letters", "_dead_letter/"):
        if path.suffix == ".parquet":
            found += pq.read_table(path).to_pylist()
        else:
            found += [decoded(json.loads(line)) for line in path.read_text().splitlines()]
    return found


def decoded(row: dict[str, Any]) -> dict[str, Any]:
    payload = {name: base64.b64decode(row[name]) if name in row else None for name in ("key", "value")}
    headers = [(h["key"], base64.b64decode(h["value"]) if "value" in h else None) for h in row["headers"]]
    return {**row, **payload, "headers": [{"key": key, "value": value} for key, value in headers]}


@pytest.mark.parametrize("errors", [PREFIX, LINES], ids=["Parquet", "Json"])
def test_a_dead_letter_is_the_record_byte_for_byte_with_the_reason(
    world: World, errors: dict[str, Any], logged: list[dict[str, Any]]
) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1])
    world.kafka.produce(world.topic, [(b"\x00k", b"{broken \xff", HEADERS, 1_700_000_000_123)], 0)
    world.produce([3, b"NaN"])
    driver = world.drain(errors=errors)
    first, second = letters(world)
    sent = world.messages()[1]
    assert world.rows() == [1, 3]
    assert (first["key"], first["value"]) == (sent.key, sent.value)
    assert [(h["key"], h["value"]) for h in first["headers"]] == HEADERS
    time = first["timestamp"]
    assert (time if isinstance(time, int) else round(time.timestamp() * 1000)) == 1_700_000_000_123
    assert (first["topic"], first["partition"], first["offset"]) == (world.topic, 0, 1)
    assert (first["stage"], first["reason"], first["sink"]) == ("Decode", "NotUtf8", "default/sink")
    assert "value" in first["message"]
    assert first["flush"] == world.state()["last"]
    assert (second["offset"], second["value"], second["headers"]) == (3, b"NaN", [])
    report = world.verify(driver)
    assert (report.ok, report.counts.records, report.counts.dead_lettered) == (True, 2, 2), report
    check_status(driver, second)
    assert [(line["offset"], line["reason"]) for line in logged] == [(1, "NotUtf8"), (3, second["reason"])]
    shown = [(line.get("key"), line.get("value")) for line in logged]
    assert shown == ([("\x00k", "{broken \\xff"), (None, "NaN")] if errors is LINES else [(None, None)] * 2)


def check_status(driver: Driver, last: dict[str, Any]) -> None:
    status = driver.reporter.status()["retry"]
    assert status["deadLetteredRecords"] == 2
    named = {name: status["lastDeadLetter"][name] for name in ("topic", "partition", "offset", "reason", "message")}
    assert named == {name: last[name] for name in named}
    labels = {"topic": last["topic"], "partition": "0"}
    registry = driver.reporter.metrics.registry
    assert registry.get_sample_value("s3sink_dead_lettered_records_total", labels) == 2
    assert registry.get_sample_value("s3sink_records_total", labels) == 2
    assert registry.get_sample_value("s3sink_objects_total", labels) == 1


def test_a_missing_folder_value_is_a_dead_letter_while_other_bad_records_stop(world: World) -> None:
    world.kafka.create_topic(world.topic, partitions=2)
    world.produce([{"c": "a"}, {}, {"c": "b"}], 0)
    world.produce([{"c": "a"}, b"{broken"], 1)
    layout = {"partitionBy": [{"type": "Topic"}, {"type": "Field", "path": ["c"]}], "onMissingValue": "DeadLetter"}
    driver = world.drain(layout=layout, errors={"deadLetter": {"prefix": "_dead_letter"}})
    (letter,) = letters(world)
    assert (letter["partition"], letter["offset"], letter["value"]) == (0, 1, b"{}")
    assert (letter["stage"], letter["reason"]) == ("Layout", "FieldMissing")
    assert len(world.objects()) == 3
    assert driver.problems[world.topic, 1].reason == "BadRecord"
    assert world.verify(driver).counts.dead_lettered == 1


def test_dead_letters_of_objects_of_one_record_are_committed_with_them(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([b"one", None, b"three"])
    spec = {"source": {"value": {"format": "Bytes"}}, "format": {"type": "Bytes"}, "nullValues": "Fail"}
    driver = world.drain(errors=PREFIX, **spec)
    (letter,) = letters(world)
    assert (letter["offset"], letter["value"], letter["reason"]) == (1, None, "NullValue")
    assert len(world.objects()) == 2
    report = world.verify(driver)
    assert (report.ok, report.counts.records, report.counts.dead_lettered) == (True, 2, 1), report


def test_lost_dead_letters_are_written_again_whatever_the_policy_is_by_then(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1, b"{broken", 3, b"NaN", 5])
    committed_but_unpublished(world, monkeypatch, errors=LINES)
    driver = world.driver(errors=PREFIX)
    orphan = f"_dead_letter/{world.topic}/0/{9:019d}.parquet"
    for key in (orphan, "_dead_letter/other-topic/0/1.parquet"):
        world.client().create_multipart_upload(Bucket=world.bucket, Key=key)
    found = orphaned_uploads(driver.bucket(), driver.routing, [world.topic], timedelta(seconds=-5))
    assert [upload.key for _, upload in found] == [orphan]
    abort_all(world)

    driver = world.drain(errors={"records": "Skip"})

    assert world.rows() == [1, 3, 5]
    assert [(letter["offset"], letter["value"]) for letter in letters(world)] == [(1, b"{broken"), (3, b"NaN")]
    report = world.verify(driver)
    assert (report.ok, report.counts.records, report.counts.dead_lettered) == (True, 3, 2), report


def test_verify_finds_dead_letters_that_are_damaged_or_gone(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1, b"{broken", b"NaN"])
    driver = world.drain(errors=LINES)
    (key,) = world.objects("_dead_letter/")
    body = world.content(key)
    other = base64.b64encode(b"{broken").decode(), base64.b64encode(b"{Broken").decode()
    world.client().put_object(Bucket=world.bucket, Key=key, Body=body.replace(*(text.encode() for text in other)))
    damaged = world.verify(driver)
    world.client().delete_object(Bucket=world.bucket, Key=key)
    gone = world.verify(driver)
    assert (damaged.ok, damaged.counts.missing, damaged.counts.duplicates) == (False, 1, 1)
    assert (gone.ok, gone.counts.missing, gone.counts.dead_lettered) == (False, 2, 0)


def test_a_partition_with_too_large_a_share_of_bad_records_stops_and_no_other(world: World) -> None:
    world.kafka.create_topic(world.topic, partitions=3)
    world.produce([b"x" if n % 9 == 0 else n for n in range(1000)], 0)
    world.produce([1, b"x"], 1)
    world.produce([b"x"] * 60 + [1], 2)
    driver = world.drain(errors={**PREFIX, "maxPerFlush": 200, "maxPercent": 11, "deadLetter": {"prefix": "letters"}})
    assert driver.problems.keys() == {(world.topic, 0)}
    problem = driver.problems[world.topic, 0]
    assert problem.reason == "TooManyBadRecords"
    assert "112 of 1000 records in one flush are bad, more than errors.maxPercent = 11" in problem.message
    assert world.state()["topics"][world.topic]["partitions"]["0"]["offset"] == 0
    assert (world.rows(0), world.rows(1), world.rows(2)) == ([], [1], [1])
    assert len(world.objects("letters/")) == 2
    uploads = world.client().list_multipart_uploads(Bucket=world.bucket).get("Uploads", [])
    assert uploads == [], "what was uploaded of the partition is abandoned"
