"""`find` names the object and the row of a record, and what it says is what the object holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from s3sink_job.cli.find_text import find_text
from s3sink_job.commit.ledger import Ledger
from s3sink_job.driver.driver import Driver
from s3sink_job.flush.state import Owner
from s3sink_job.proof.find import WantedKey, WantedOffset, find
from s3sink_job.proof.kafka_records import KafkaAccess
from tests.driver.test_kafka_history import delete_records, transaction
from tests.harness import World, failure_of

BY_COLOUR = {"partitionBy": [{"type": "Topic"}, {"type": "Partition"}, {"type": "Field", "path": ["colour"]}]}
WITH_META = {"type": "Parquet", "columns": {"meta": "Kafka"}}
IN_ENVELOPES = {"type": "Json", "envelope": {"enabled": True}}


def no_kafka() -> KafkaAccess:
    raise AssertionError("Kafka is not needed")


def access(driver: Driver) -> Callable[[], KafkaAccess]:
    return lambda: KafkaAccess(driver.spark, driver.kafka.admin(), dict(driver.kafka.properties))


def found(driver: Driver, wanted: WantedOffset | WantedKey, *, kafka: bool = True) -> dict[str, Any]:
    bucket = driver.bucket()
    ledger = Ledger(bucket, ".s3sink/default/sink", Owner(driver.cluster, "default", "sink"), conditional=True)
    return find(driver.sink, driver.secrets, bucket, ledger, access(driver) if kafka else no_kafka, wanted)


def outcome(world: World, driver: Driver, offset: int, **more: Any) -> str:
    return str(found(driver, WantedOffset(world.topic, 0, offset), **more)["outcome"])


def row_of(world: World, doc: dict[str, Any]) -> Any:
    """The record that the answer points at, as the object has it."""
    (record,) = doc["records"]
    key = record["object"]["url"].removeprefix(f"s3://{world.bucket}/")
    return json.loads(world.content(key).splitlines()[record["row"]])


def test_every_offset_of_a_topic_is_accounted_for(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([{"n": 0}, {"n": 1}, {"n": 2}, b"not json", {"n": 4}])
    transaction(world, [{"n": 5}], commit=True)
    transaction(world, [], commit=None)  # once the one before has its marker
    world.produce([{"n": 7}])
    start = {"position": "Offsets", "offsets": [{"topic": world.topic, "partition": 0, "offset": 1}]}
    spec: dict[str, Any] = {
        "source": {"startingOffsets": start, "onDataLoss": "Skip"},
        "errors": {"records": "Skip"},
        "flush": {"records": 3},
    }
    driver = world.drain(**spec)
    assert outcome(world, driver, 0, kafka=False) == "BeforeStart"
    doc = found(driver, WantedOffset(world.topic, 0, 2))
    assert (row_of(world, doc), doc["records"][0]["row"]) == ({"n": 2}, 1)
    assert "| sed -n 2p" in find_text(doc)
    doc = found(driver, WantedOffset(world.topic, 0, 3))
    assert (doc["outcome"], doc["records"]) == ("Skipped", [])
    assert "NotJson: value is not JSON" in doc["text"]
    # Offset 6 is the marker of the transaction. It lies within an object.
    assert outcome(world, driver, 6) == "NoRecord"
    for offset in (1, 2, 4, 5, 7):
        assert row_of(world, found(driver, WantedOffset(world.topic, 0, offset))) == {"n": offset}
    assert world.verify(driver).ok

    world.produce([{"n": 8}, {"n": 9}])
    delete_records(world, before=9)
    assert outcome(world, driver, 8, kafka=False) == "NotWritten"
    driver = world.drain(**spec)
    assert outcome(world, driver, 8, kafka=False) == "Gap"
    doc = found(driver, WantedOffset(world.topic, 0, 9), kafka=False)
    assert (doc["outcome"], row_of(world, doc)) == ("InObject", {"n": 9})
    doc = found(driver, WantedOffset(world.topic, 0, 12), kafka=False)
    assert "the sink is at offset 10, which is 2 before it" in find_text(doc)
    assert found(driver, WantedOffset("other", 0, 1), kafka=False)["outcome"] == "NotRead"
    doc = found(driver, WantedOffset(world.topic, 0, 3))
    assert "the reason is not known, since Kafka no longer has its record" in doc["text"]


COLOURS = [{"colour": "red" if n % 3 else "blue", "n": n} for n in range(9)]


def produce_with_keys(world: World, topic: str) -> None:
    records: list[Any] = [(f"k-{n % 2}".encode(), json.dumps(v).encode(), None, None) for n, v in enumerate(COLOURS)]
    world.kafka.produce(topic, records, 0)


def test_of_several_objects_the_one_with_the_record_is_found_in_kafka(world: World) -> None:
    world.kafka.create_topic(world.topic)
    produce_with_keys(world, world.topic)
    driver = world.drain(layout=BY_COLOUR)
    assert len(world.objects()) == 2
    for offset, value in enumerate(COLOURS):
        if offset in {0, 1, 6, 8}:
            doc = found(driver, WantedOffset(world.topic, 0, offset))
            assert (doc["outcome"], row_of(world, doc)) == ("InObject", value)

    doc = found(driver, WantedKey(world.topic, "k-1"))
    assert sorted(record["offset"] for record in doc["records"]) == [1, 3, 5, 7]
    for record in doc["records"]:
        assert row_of(world, {"records": [record]}) == COLOURS[record["offset"]]
    assert (doc["searchedObjects"], doc["unsearchedObjects"]) == (2, 0)
    assert found(driver, WantedKey(world.topic, "k-1", 7))["records"] == []
    assert "0 records with this key in 2 searched objects" in find_text(found(driver, WantedKey(world.topic, "none")))

    delete_records(world, before=9)
    world.client().delete_object(Bucket=world.bucket, Key=world.objects()[0])
    doc = found(driver, WantedOffset(world.topic, 0, 5))
    assert [one["inBucket"] for one in doc["candidates"]] == [False, True]
    assert "not in the bucket now" in find_text(doc)
    assert (doc["outcome"], len(doc["candidates"]), doc["records"]) == ("Undecided", 2, [])
    doc = found(driver, WantedKey(world.topic, "k-1"))
    assert (doc["records"], doc["unsearchedObjects"]) == ([], 2)
    assert "2 objects were not searched: Kafka no longer has their records" in find_text(doc)


def test_objects_that_hold_keys_and_offsets_need_no_kafka(world: World) -> None:
    formats = {"columns": WITH_META, "lines": IN_ENVELOPES, "csv": {"type": "Csv", "columns": {"meta": "Kafka"}}}
    topics = {f"{world.topic}-{name}": format for name, format in formats.items()}
    for topic in topics:
        world.kafka.create_topic(topic)
        produce_with_keys(world, topic)
    routes = [{"topics": [topic], "format": format} for topic, format in topics.items()]
    driver = world.drain(source={"topics": list(topics)}, routes=routes, layout=BY_COLOUR)

    for topic in topics:
        doc = found(driver, WantedOffset(topic, 0, 5), kafka=False)
        (record,) = doc["records"]
        assert (doc["outcome"], record["row"]) == ("InObject", 3), "after 1, 2 and 4"
        assert "/red/" in record["object"]["url"]
        doc = found(driver, WantedKey(topic, "k-1"), kafka=False)
        rows = sorted((r["object"]["url"].split("/")[-2], r["row"]) for r in doc["records"])
        assert rows == [("blue", 1), ("red", 0), ("red", 3), ("red", 4)]


def test_a_sink_that_never_ran_has_nothing_to_find(world: World) -> None:
    error = failure_of(lambda: found(world.driver(), WantedOffset(world.topic, 0, 1), kafka=False))
    assert error.reason == "NoState"
