"""The examples of the documents of Lenses, Confluent, Quix and Airbyte, converted and run to the end.

The keys are those that the documents say. Topics have names of their own here, since all tests share a broker.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from s3sink_job.convert.conversion import convert
from tests.harness import World

pytestmark = [pytest.mark.spark]
TEN_O_CLOCK = 1768471200000
"""2026-01-15T10:00:00Z."""
LENSES = "connector.class=io.lenses.streamreactor.connect.aws.s3.sink.S3SinkConnector\n"
CONNECT = "org.apache.kafka.connect"
PLAIN = (
    f"value.converter={CONNECT}.json.JsonConverter\nvalue.converter.schemas.enable=false\n"
    f"key.converter={CONNECT}.storage.StringConverter\n"
)


def run(world: World, text: str, **changes: Any) -> list[str]:
    """Converts, runs to the end and returns the keys of the data, with T in place of the topic."""
    (sink,) = convert(text.replace("TOPIC", world.topic).encode(), "document").sinks
    spec: dict[str, Any] = dict(sink.manifest["spec"])
    spec.pop("schedule", None)
    source = {"topics": [], **spec["source"], "bootstrapServers": world.kafka.bootstrap, **changes.pop("source", {})}
    place = {"prefix": "", **spec["destination"], "bucket": world.bucket, "endpoint": world.s3.endpoint}
    destination = {**place, "region": world.s3.region, "credentials": {"secretRef": {"name": "s3"}}}
    routes = [{**route, "destination": _of_bucket(route, world)} for route in spec.get("routes", [])]
    world.patience = 180  # the first flush of a session takes long on a busy machine
    world.drain(**{**spec, "run": "Once", "source": source, "destination": destination, "routes": routes, **changes})
    return [key.replace(world.topic, "T") for key in world.sizes("") if not key.startswith(".s3sink/")]


def _of_bucket(route: dict[str, Any], world: World) -> dict[str, Any]:
    return {**route.get("destination", {}), "bucket": world.bucket}


def fill(world: World, values: list[Any], key: bytes | None = b"k-1", **headers: str) -> None:
    world.kafka.create_topic(world.topic, 1)
    pairs = [(name, value.encode()) for name, value in headers.items()]
    records = [(key, json.dumps(value).encode(), pairs, TEN_O_CLOCK + n) for n, value in enumerate(values)]
    world.kafka.produce(world.topic, records, 0)


def test_lenses_partitioned_by_a_field(world: World) -> None:
    fill(world, [{"ts": "a"}, {"ts": "b"}, {"ts": "a"}])
    text = (
        f"{LENSES}connect.s3.kcql=insert into lensesio:demo select * from TOPIC PARTITIONBY _value.ts STOREAS `JSON`"
        " PROPERTIES ('flush.size'=1000000, 'flush.interval'=30, 'flush.count'=5000)\ntopics=TOPIC\nname=demo\n"
    )
    assert run(world, text) == ["demo/T/ts=a/T(0_000000000000).json", "demo/T/ts=b/T(0_000000000001).json"]


def test_lenses_default_keys_and_topics_by_regex(world: World) -> None:
    fill(world, [{"id": 1}, {"id": 2}])
    text = (
        f"{LENSES}{PLAIN}topics.regex=^TOPIC$\n"
        "connect.s3.kcql=INSERT INTO testbucket:pathToWriteTo SELECT * FROM `*` PROPERTIES('flush.count'=1)\n"
    )
    # The document: $bucket/[$prefix]/$topic/$partition/offset.extension
    assert run(world, text) == ["pathToWriteTo/T/0/000000000000.json", "pathToWriteTo/T/0/000000000001.json"]


def test_lenses_bare_values_and_a_field_with_a_dot(world: World) -> None:
    fill(world, [{"a.b": "value"}])
    text = (
        f"{LENSES}{PLAIN}topics=TOPIC\nconnect.s3.kcql=INSERT INTO `bucket-name`:`prefix` SELECT * FROM `TOPIC`"
        " PARTITIONBY `a.b` PROPERTIES('partition.include.keys'=false)\n"
    )
    # The document: $bucket/[$prefix]/customValue/topic(partition_offset).ext
    assert run(world, text) == ["prefix/value/T(0_000000000000).json"]


def test_lenses_keys_of_key_value_and_header(world: World) -> None:
    fill(world, [{"fieldA": 1}], key=b'{"fieldB": "b"}', fieldC="c")
    text = (
        f"{LENSES}value.converter={CONNECT}.json.JsonConverter\nvalue.converter.schemas.enable=false\n"
        f"key.converter={CONNECT}.json.JsonConverter\nkey.converter.schemas.enable=false\ntopics=TOPIC\n"
        "connect.s3.kcql=INSERT INTO bucket:prefix SELECT * FROM TOPIC PARTITIONBY fieldA, _key.fieldB, _headers.fieldC"
        " STOREAS `AVRO` PROPERTIES ('partition.include.keys'=true,)\n"
    )
    assert run(world, text) == ["prefix/T/fieldA=1/fieldB=b/fieldC=c/T(0_000000000000).avro"]


def test_lenses_rolling_windows(world: World) -> None:
    fill(world, [{"metadata_id": "m", "customer_id": 7, "timestamp": TEN_O_CLOCK}])
    smt = "io.lenses.connect.smt.header"
    text = f"""{LENSES}{PLAIN}topics=TOPIC
name=demo
connect.s3.kcql=insert into lensesio:demo select * from TOPIC PARTITIONBY _value.metadata_id, _value.customer_id, \\
    _header.ts, _header.wallclock STOREAS `JSON` \\
    PROPERTIES ('flush.size'=1000000, 'flush.interval'=30, 'flush.count'=5000)
transforms=insertFormattedTs,insertWallclock
transforms.insertFormattedTs.type={smt}.TimestampConverter
transforms.insertFormattedTs.header.name=ts
transforms.insertFormattedTs.field=timestamp
transforms.insertFormattedTs.target.type=string
transforms.insertFormattedTs.format.to.pattern=yyyy-MM-dd-HH
transforms.insertWallclock.type={smt}.InsertWallclock
transforms.insertWallclock.header.name=wallclock
transforms.insertWallclock.value.type=format
transforms.insertWallclock.format=yyyy-MM-dd-HH
"""
    (key,) = run(world, text)
    hour = r"20\d\d-\d\d-\d\d-\d\d"
    folders = rf"metadata_id=m/customer_id=7/ts=2026-01-15-10/wallclock={hour}"
    assert re.fullmatch(rf"demo/T/{folders}/T\(0_000000000000\)\.json", key)


def test_lenses_envelope(world: World) -> None:
    fill(world, [{"speed": 80}], trace="a1")
    text = (
        f"{LENSES}{PLAIN}topics=TOPIC\nconnect.s3.kcql=INSERT INTO lensesioaws:car_speed SELECT * FROM TOPIC"
        " STOREAS `JSON` PROPERTIES('store.envelope'=true)\n"
    )
    (key,) = run(world, text)
    assert key == "car_speed/T/0/000000000000.json"
    row = json.loads(world.content(key.replace("T", world.topic)))
    assert row["key"] == "k-1"
    assert row["headers"] == {"trace": "a1"}
    assert row["value"] == {"speed": 80}
    place = {"topic": world.topic, "partition": 0, "offset": 0, "timestamp": TEN_O_CLOCK}
    assert row["metadata"] == place


CONFLUENT = {
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "tasks.max": "3",
    "topics": "TOPIC",
    "s3.bucket.name": "data-lake-bucket",
    "s3.region": "us-east-1",
    "format.class": "io.confluent.connect.s3.format.parquet.ParquetFormat",
    "flush.size": "10000",
    "storage.class": "io.confluent.connect.s3.storage.S3Storage",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
PARTITIONER = "io.confluent.connect.storage.partitioner"


@pytest.mark.parametrize(
    ("changes", "folders"),
    [
        (
            {
                "partitioner.class": f"{PARTITIONER}.TimeBasedPartitioner",
                "path.format": "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH",
                "locale": "en-US",
                "timezone": "UTC",
                "partition.duration.ms": "3600000",
                # The document leaves it out, and its path is by the record's time.
                "timestamp.extractor": "Record",
            },
            "year=2026/month=01/day=15/hour=10",
        ),
        (
            {"partitioner.class": f"{PARTITIONER}.FieldPartitioner", "partition.field.name": "region,event_type"},
            "region=us-east/event_type=click",
        ),
        ({"partitioner.class": f"{PARTITIONER}.DefaultPartitioner"}, "partition=0"),
    ],
)
def test_confluent_partitioners(world: World, changes: dict[str, str], folders: str) -> None:
    fill(world, [{"region": "us-east", "event_type": "click"}])
    text = json.dumps({"name": "s3-sink", "config": {**CONFLUENT, **changes}})
    # The connector writes the codec before .parquet, which the document does not show.
    assert run(world, text) == [f"topics/T/{folders}/T+0+0000000000.snappy.parquet"]


def test_confluent_transforms_change_the_records_and_the_folder(world: World) -> None:
    """Beyond the document: what people have beside it."""
    event = {"op": "c", "before": None, "after": {"id": 1, "card": "4111"}, "source": {"ts_ms": 5}, "ts_ms": 6}
    fill(world, [event])
    connect = "org.apache.kafka.connect.transforms"
    changes = {
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "transforms": "unwrap,drop,topic,route",
        "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
        "transforms.drop.type": f"{connect}.ReplaceField$Value",
        "transforms.drop.exclude": "card",
        "transforms.topic.type": f"{connect}.InsertField$Value",
        "transforms.topic.offset.field": "at",
        "transforms.route.type": f"{connect}.RegexRouter",
        "transforms.route.regex": "(.*)",
        "transforms.route.replacement": "cdc.$1",
    }
    (key,) = run(world, json.dumps({"name": "cdc", "config": {**CONFLUENT, **changes}}))
    assert key == "topics/cdc.T/partition=0/T+0+0000000000.json"
    assert json.loads(world.content(key.replace("T", world.topic))) == {"id": 1, "at": 0}


def test_quix_file_sink(world: World) -> None:
    fill(world, [{"id": 1}])
    text = json.dumps(
        {
            "FileSink": {
                "directory": "data",
                "format": {"JSONFormat": {"compress": True}},
                "destination": {"S3Destination": {"bucket": "my-bucket", "region_name": "eu-west-2"}},
            },
            "Application": {"broker_address": "localhost:9092", "auto_offset_reset": "earliest"},
            "topic": "TOPIC",
        }
    )
    # In the document the topic is sink-topic, and the folder sink_topic. Its tree is of files without compression,
    # and its call has compress=True.
    folder = world.topic.replace("-", "_")
    assert run(world, text) == [f"data/{folder}/0/0000000000000000000.jsonl.gz"]


def test_airbyte_destination(world: World) -> None:
    fill(world, [{"user_id": 123, "name": {"first": "John", "last": "Doe"}}])
    text = json.dumps(
        {
            "s3_bucket_name": "testing-bucket",
            "s3_bucket_path": "data_output_path",
            "s3_bucket_region": "us-east-1",
            "format": {"format_type": "CSV", "flattening": "No flattening"},
            "streams": [{"name": "TOPIC", "namespace": "public", "sync_mode": "incremental"}],
        }
    )
    (key,) = run(world, text)
    assert re.fullmatch(r"data_output_path/public/T/20\d\d_\d\d_\d\d_\d{13}_0\.csv", key)
    header = world.content(key.replace("T", world.topic)).decode().splitlines()[0]
    assert header == "_airbyte_ab_id,_airbyte_emitted_at,_airbyte_data"
