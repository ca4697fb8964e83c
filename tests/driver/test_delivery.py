"""Every record of every partition is written once, in order, to the folder of its layout."""

from __future__ import annotations

import json
import time

import pytest

from tests.harness import World


@pytest.mark.parametrize("codec", ["None", "Gzip", "Zstd"])
def test_every_json_record_arrives_once_in_order(world: World, codec: str) -> None:
    world.kafka.create_topic(world.topic, partitions=3)
    world.produce([{"n": n, "text": "ä\n"} for n in range(5000)], partition=None)
    driver = world.drain(format={"type": "Json", "compression": {"codec": codec}})
    expected = world.consumed()
    for partition in range(3):
        wanted = [json.loads(v or b"") for (p, _), v in sorted(expected.items()) if p == partition]
        assert world.rows(partition) == wanted
    extension = {"None": ".jsonl", "Gzip": ".jsonl.gz", "Zstd": ".jsonl.zst"}[codec]
    assert all(key.endswith(extension) for key in world.objects())
    report = world.verify(driver)
    assert (report.ok, report.counts.records) == (True, 5000)


def test_objects_roll_at_flush_records_and_are_named_by_their_first_offset(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce(list(range(2500)))
    world.drain()
    folder = f"raw/{world.topic}/0"
    assert world.objects() == [f"{folder}/{first:019d}.jsonl" for first in (0, 1000, 2000)]
    assert [len(world.content(key).splitlines()) for key in world.objects()] == [1000, 1000, 500]


def test_kafka_columns_tell_where_each_record_came_from(world: World) -> None:
    world.kafka.create_topic(world.topic)
    stamp = 1_700_000_000_123
    world.kafka.produce(world.topic, [(b"k", b'{"a": 1}', [("h", b"x"), ("h", None)], stamp)], 0)
    world.kafka.produce(world.topic, [(None, None, None, stamp)], 0)
    driver = world.drain(format={"type": "Json", "columns": {"meta": "Kafka"}})
    where = {"_topic": world.topic, "_partition": 0, "_timestamp": stamp}
    headers = [{"key": "h", "value": "x"}, {"key": "h", "value": None}]
    assert world.rows() == [
        {"_key": "k", **where, "_offset": 0, "_headers": headers, "a": 1},
        {"_key": None, **where, "_offset": 1, "_headers": [], "_value": None},
    ]
    assert world.verify(driver).ok


def test_quix_columns_hold_timestamp_key_and_value(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.kafka.produce(world.topic, [(b"k", b'{"a": 1}', None, 1_700_000_000_000)], 0)
    world.drain(format={"type": "Json", "columns": {"meta": "Quix"}})
    assert world.rows() == [{"_timestamp": 1_700_000_000_000, "_key": "k", "_value": {"a": 1}}]


def test_text_lines_are_the_values_as_they_are(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce(["grüß".encode(), b"", None, b"{not json"])
    driver = world.drain(source={"value": {"format": "String"}}, format={"type": "Text"})
    assert world.content(world.objects()[0]).decode().split("\n") == ["grüß", "", "", "{not json", ""]
    assert world.verify(driver).ok


def test_bytes_survive_as_base64_in_json(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([b"\x00\xff", b""])
    world.drain(source={"value": {"format": "Bytes"}})
    assert world.rows() == ["AP8=", ""]


def test_the_interval_flushes_by_the_clock_with_no_new_record(world: World) -> None:
    world.kafka.create_topic(world.topic)
    driver = world.driver(run="Continuous", flush={"records": 1000, "interval": "3s"})
    driver.step()
    world.produce([1, 2, 3])
    deadline = time.monotonic() + 30
    driver.step()
    assert world.objects() == [], "too early"
    while not world.objects():
        assert time.monotonic() < deadline
        time.sleep(0.1)
        driver.step()
    assert world.rows() == [1, 2, 3]
    assert driver.reporter.status()["flush"]["lastReason"] == "Interval"


def test_flush_records_does_not_wait_for_the_interval(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce(list(range(250)))
    driver = world.driver(run="Continuous", flush={"records": 100, "interval": "1h"})
    driver.step()
    driver.step()
    assert [len(world.content(k).splitlines()) for k in world.objects()] == [100, 100]
    status = driver.reporter.status()
    assert (status["flush"]["lastReason"], status["lag"]["records"]) == ("Records", 50)


def test_partitions_added_while_running_are_read_from_their_start(world: World) -> None:
    world.kafka.create_topic(world.topic)
    driver = world.driver(
        run="Continuous", flush={"interval": "1s"}, source={"startingOffsets": {"position": "Latest"}}
    )
    driver.step()
    world.kafka.add_partitions(world.topic, 2)
    world.produce(["new"], partition=1)
    deadline = time.monotonic() + 30
    while not world.lines():
        assert time.monotonic() < deadline
        driver.step()
        time.sleep(0.1)
    assert world.rows(partition=1) == ["new"]


def test_a_topic_added_to_the_manifest_later_starts_at_its_beginning(world: World) -> None:
    world.kafka.create_topic(world.topic)
    latest = {"startingOffsets": {"position": "Latest"}}
    world.drain(source=latest)
    other = world.topic + "-other"
    world.kafka.create_topic(other)
    world.produce(["there before"], topic=other)
    driver = world.drain(source={**latest, "topics": [world.topic, other]})
    assert world.rows(topic=other) == ["there before"]
    assert world.verify(driver).ok


def test_a_paused_sink_flushes_nothing_and_still_tells_its_lag(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1, 2, 3])
    driver = world.driver(state="Paused", run="Continuous", flush={"interval": "1s"})
    for _ in range(3):
        driver.step()
        time.sleep(0.5)
    status = driver.reporter.status()
    assert world.objects() == []
    assert (status["phase"], status["lag"]["records"]) == ("Paused", 3)


def test_a_second_run_goes_on_where_the_first_ended(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1, 2])
    world.drain()
    world.produce([3])
    driver = world.drain()
    assert world.rows() == [1, 2, 3]
    assert world.state()["epoch"] == 2
    assert world.verify(driver).ok
