"""`verify` finds everything that is wrong, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from s3sink_job.driver.driver import Driver
from s3sink_job.proof.object_contents import difference
from tests.driver.test_kafka_history import delete_records
from tests.harness import World, failure_of


@pytest.fixture
def written(world: World) -> tuple[World, Driver]:
    world.kafka.create_topic(world.topic)
    world.produce([{"n": n} for n in range(25)])
    return world, world.drain(flush={"records": 10})


def replace_object(world: World, key: str, body: bytes) -> None:
    client = world.client()
    metadata = client.head_object(Bucket=world.bucket, Key=key)["Metadata"]
    client.put_object(Bucket=world.bucket, Key=key, Body=body, Metadata=metadata)


def found(world: World, driver: Driver) -> dict[str, Any]:
    return world.verify(driver).to_doc()


def test_verify_finds_nothing_wrong_after_a_run(written: tuple[World, Driver]) -> None:
    doc = found(*written)
    assert {k: doc[k] for k in ("ok", "records", "missing", "duplicates", "gaps")} == {
        "ok": True,
        "records": 25,
        "missing": 0,
        "duplicates": 0,
        "gaps": 0,
    }


def test_records_of_a_deleted_object_are_missing(written: tuple[World, Driver]) -> None:
    world, driver = written
    world.client().delete_object(Bucket=world.bucket, Key=world.objects()[1])
    doc = found(world, driver)
    assert (doc["ok"], doc["missing"], doc["duplicates"]) == (False, 10, 0)


def test_a_changed_record_is_found_even_if_the_size_is_the_same(written: tuple[World, Driver]) -> None:
    world, driver = written
    key = world.objects()[0]
    replace_object(world, key, world.content(key).replace(b'{"n": 3}', b'{"n": 4}'))
    doc = found(world, driver)
    assert (doc["ok"], doc["missing"], doc["duplicates"]) == (False, 1, 1)
    assert any(key in finding for finding in doc["findings"])


def test_a_shortened_object_is_found(written: tuple[World, Driver]) -> None:
    world, driver = written
    key = world.objects()[0]
    replace_object(world, key, b"".join(world.content(key).splitlines(keepends=True)[:7]))
    assert found(world, driver)["missing"] == 3


def test_duplicates_in_an_object_are_found(written: tuple[World, Driver]) -> None:
    world, driver = written
    key = world.objects()[0]
    replace_object(world, key, world.content(key) + b'{"n": 0}\n')
    assert found(world, driver)["duplicates"] == 1


def test_records_in_another_order_are_found(written: tuple[World, Driver]) -> None:
    world, driver = written
    key = world.objects()[0]
    replace_object(world, key, b"".join(reversed(world.content(key).splitlines(keepends=True))))
    assert not found(world, driver)["ok"]


def test_an_object_of_this_sink_that_no_flush_lists_is_found(written: tuple[World, Driver]) -> None:
    world, driver = written
    client, key = world.client(), world.objects()[0]
    metadata = client.head_object(Bucket=world.bucket, Key=key)["Metadata"]
    copy = key.replace(".jsonl", "-copy.jsonl")
    client.put_object(Bucket=world.bucket, Key=copy, Body=b"{}\n", Metadata=metadata)
    doc = found(world, driver)
    assert (doc["ok"], doc["unlisted"]) == (False, 1)


def test_foreign_objects_in_the_folder_are_ignored(written: tuple[World, Driver]) -> None:
    world, driver = written
    world.client().put_object(Bucket=world.bucket, Key=f"raw/{world.topic}/0/_SUCCESS", Body=b"")
    assert found(world, driver)["ok"]


@pytest.mark.parametrize(("change", "missing", "duplicates"), [(+5, 5, 0), (-5, 0, 5)])
def test_ranges_with_holes_or_overlaps_are_found(
    written: tuple[World, Driver], change: int, missing: int, duplicates: int
) -> None:
    world, driver = written
    state = world.state()
    state["topics"][world.topic]["partitions"]["0"]["start"] -= change
    world.client().put_object(
        Bucket=world.bucket, Key=".s3sink/default/sink/state.json", Body=json.dumps(state).encode()
    )
    doc = found(world, driver)
    assert (doc["ok"], doc["missing"], doc["duplicates"]) == (False, missing, duplicates)


def test_rows_are_counted_where_kafka_has_deleted_the_records(written: tuple[World, Driver]) -> None:
    world, driver = written
    delete_records(world, before=15)
    doc = found(world, driver)
    assert (doc["ok"], doc["records"], doc["unchecked"]) == (True, 25, 2)
    key = world.objects()[0]
    replace_object(world, key, world.content(key)[:-9])
    assert found(world, driver)["missing"] == 1


def test_an_object_that_cannot_be_decompressed_is_found(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce(list(range(10)))
    driver = world.drain(format={"type": "Json", "compression": {"codec": "Gzip"}})
    replace_object(world, world.objects()[0], b"not gzip")
    doc = found(world, driver)
    assert (doc["ok"], doc["missing"]) == (False, 10)


def test_a_sink_that_has_never_run_has_no_state(world: World) -> None:
    world.kafka.create_topic(world.topic)
    assert failure_of(lambda: world.verify(world.driver())).reason == "NoState"


def test_objects_of_an_earlier_layout_are_compared_as_they_were_written(world: World) -> None:
    """Whatever the batches in which Kafka returns the records."""
    world.kafka.create_topic(world.topic)
    topic, field = {"type": "Topic"}, {"type": "Field", "path": ["f"]}
    for start, items in enumerate(([topic, field], [topic], [topic, field])):
        world.produce([{"n": 50 * start + n, "f": "xyz"[n % 3]} for n in range(50)])
        driver = world.drain(layout={"partitionBy": items}, flush={"records": 10})
    report = world.verify(driver)
    assert (report.ok, report.counts.records) == (True, 150), report.to_doc()


def test_only_digits_beyond_a_double_may_differ_in_columns_that_became_text() -> None:
    wanted, rounded, other = (
        pa.table({"v": ["x", text]}) for text in ("0.10000000000000001", "0.1", "0.10000000000000002")
    )
    assert not difference(wanted, rounded)
    assert difference(wanted, other).missing == 1
    assert difference(pa.table({"v": ["1.50"]}), pa.table({"v": ["1.5"]})).missing == 1
    beyond = pa.table({"v": ["1e99999999999999999999"]})
    assert not difference(beyond, beyond)
