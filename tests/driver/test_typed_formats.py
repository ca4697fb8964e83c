"""Protobuf and JSON Schema in every output format: one sink with a route for each, one flush.

Readers that are not ours find every value. `plan` and `gc` are correct for such a sink.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import pytest

from tests.commit.test_store_faults import abort_all, committed_but_unpublished
from tests.decode.proto_samples import message_class, schema_of
from tests.driver.test_avro_topics import preflight
from tests.driver.test_flush_rules import planned
from tests.harness import World
from tests.proof.test_gc import begin, left_behind, uploads
from tools.parts.registry import SchemaRegistry

pytestmark = [pytest.mark.slow, pytest.mark.spark]

COUNT = 6
SECONDS = 1_700_000_000
PROTO = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
message Order { int64 id = 1; string name = 2; google.protobuf.Timestamp at = 3; bool paid = 4; uint64 total = 5; }
"""
JSON_SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": "string"},
        "at": {"type": "string", "format": "date-time"},
        "paid": {"type": "boolean"},
        "total": {"type": "integer"},
    },
    "additionalProperties": False,
}
SCHEMAS = {"Protobuf": ("PROTOBUF", PROTO), "JsonSchema": ("JSON", json.dumps(JSON_SCHEMA))}
LARGEST = {"Protobuf": 2**64 - 1, "JsonSchema": 2**63 - 1}
ENDINGS = {
    "Parquet": "parquet",
    "Avro": "avro",
    "Orc": "orc",
    "Json": "jsonl",
    "Csv": "csv",
    "Text": "txt",
    "Bytes": "bin",
}
LAYOUT = {"partitionBy": [{"type": "Topic"}, {"type": "Field", "path": ["name"]}]}


EVENT = """
syntax = "proto3";
import "google/protobuf/empty.proto";
message Event {
  int64 id = 1;
  oneof kind { Created created = 2; Deleted deleted = 3; google.protobuf.Empty paused = 4; }
  repeated Deleted many = 5;
  map<string, Deleted> named = 6;
}
message Created { string by = 1; }
message Deleted { %s }
"""
LATER = EVENT % "int64 at = 1;"
EVENT %= ""
EVENTS: list[dict[str, Any]] = [
    {"deleted": {}, "many": [{}, {}], "named": {"a": {}}},
    {"created": {"by": "x"}},
    {"paused": {}},
    {},
]


def order(input: str, number: int) -> dict[str, Any]:
    """As every reader has to find it; the time as seconds since 1970."""
    name, total = f"n{number % 2}", LARGEST[input] - number
    return {"id": number, "name": name, "at": SECONDS + number, "paid": number % 3 == 0, "total": total}


def protobuf(number: int) -> bytes:
    row = order("Protobuf", number)
    made: Any = message_class(schema_of(PROTO))(**{name: row[name] for name in row if name != "at"})
    made.at.seconds = row["at"]
    return b"\x00" + bytes(made.SerializeToString())


def json_schema(number: int) -> bytes:
    row = order("JsonSchema", number)
    return json.dumps({**row, "at": datetime.fromtimestamp(row["at"], UTC).isoformat()}).encode()


WRITERS: dict[str, Callable[[int], bytes]] = {"Protobuf": protobuf, "JsonSchema": json_schema}


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row of any reader in the form of `order`."""
    paid = row["paid"] in (True, "true")
    return {**row, "id": int(row["id"]), "at": seconds(row["at"]), "paid": paid, "total": int(row["total"])}


def seconds(at: Any) -> int:
    match at:
        case int():  # nanoseconds, which Python's datetime does not have
            return at // 10**9
        case str():
            return seconds(datetime.fromisoformat(at))
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())


def read(world: World, format: str, key: str) -> list[dict[str, Any]]:
    """By a reader that is not ours. For Avro it is fastavro, which the sink uses as well."""
    body = world.content(key)
    path = world.folder / "read" / f"object.{ENDINGS[format]}"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(body)
    match format:
        case "Parquet":
            found = duckdb.sql(f'SELECT * REPLACE (epoch_ns("at") AS "at") FROM \'{path}\'')
            return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
        case "Avro":
            return [dict(row) for row in fastavro.reader(io.BytesIO(body)) if isinstance(row, dict)]
        case "Orc":
            frame = world.spark.read.orc(str(path)).selectExpr("id", "name", "string(at) AS at", "paid", "total")
            return [row.asDict() for row in frame.collect()]
        case "Csv":
            return list(csv.DictReader(io.StringIO(body.decode())))
    return [json.loads(line) for line in body.decode().splitlines()]


def test_protobuf_and_json_schema_in_every_output_format_are_read_by_others(
    world: World, registry: SchemaRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    routes, raw = [], {}
    for input, (kind, text) in SCHEMAS.items():
        schema = registry.register(f"{world.topic}-{input}", text, kind=kind)
        raw[input] = [b"\x00" + schema.to_bytes(4, "big") + WRITERS[input](n) for n in range(COUNT)]
        value = {"format": input, "schemaRegistry": {"url": registry.url}}
        for format in ENDINGS:
            topic = f"{world.topic}-{input}-{format}"
            world.kafka.create_topic(topic, 1)
            world.produce(raw[input], topic=topic)
            routes.append({"topics": [topic], "source": {"value": value}, "format": {"type": format}})
    topics = [route["topics"][0] for route in routes]
    # With folders by a field, a flush has no more partitions than cores, or 8.
    spec = {"source": {"topics": topics}, "routes": routes, "layout": LAYOUT, "spark": {"driver": {"cores": 14}}}

    plan = planned(world, world.driver(**spec))
    assert {part["topic"]: part["offsets"] for part in plan["partitions"]} == dict.fromkeys(topics, COUNT)

    driver = committed_but_unpublished(world, monkeypatch, **spec)
    assert len(uploads(world, world.bucket)) >= 2 * len(topics) - 4
    assert left_behind(driver) == set(), "the next driver completes these uploads"
    key = world.client().list_multipart_uploads(Bucket=world.bucket)["Uploads"][0]["Key"]
    orphan = begin(world, world.bucket, key)
    begin(world, world.bucket, key.replace("/n", "/deeper/n"))
    assert left_behind(driver) == {orphan}

    driver = world.drain(**spec)

    assert world.state()["flush"] == 1
    for input, values in raw.items():
        wanted = [order(input, n) for n in range(COUNT)]
        for format in ENDINGS:
            keys = world.objects(f"raw/{world.topic}-{input}-{format}/")
            assert {key.split("/")[2] for key in keys} == {"n0", "n1"}
            if format == "Bytes":
                assert sorted(world.content(key) for key in keys) == sorted(values)
                continue
            rows = [plain(row) for key in keys for row in read(world, format, key)]
            assert sorted(rows, key=lambda row: row["id"]) == wanted, (input, format)
    report = world.verify(driver)
    assert report.ok, report.counts.findings
    assert report.counts.records == len(topics) * COUNT


def events(format: str, path: Path, world: World) -> list[dict[str, Any]]:
    """Fields that are not null, by readers that are not ours. A record without fields is `{}`."""
    match format:
        case "Parquet" | "Orc":
            rows = [
                row.asDict(recursive=True) for row in world.spark.read.format(format.lower()).load(str(path)).collect()
            ]
            if format == "Parquet":
                by_duckdb = duckdb.sql(f"SELECT to_json(o) FROM '{path}' o").fetchall()
                assert [json.loads(row) for (row,) in by_duckdb] == rows
        case "Avro":
            rows = [dict(row) for row in fastavro.reader(io.BytesIO(path.read_bytes())) if isinstance(row, dict)]
        case _:
            rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [_without_nulls(row) for row in rows]


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def test_members_without_fields_differ_from_null_in_every_format(world: World, registry: SchemaRegistry) -> None:
    formats = ("Parquet", "Avro", "Orc", "Json")
    ids = {text: registry.register(world.topic, text, kind="PROTOBUF") for text in (EVENT, LATER)}
    value = {"format": "Protobuf", "schemaRegistry": {"url": registry.url}}
    topics = {format: f"{world.topic}-{format}" for format in formats}
    for topic in topics.values():
        world.kafka.create_topic(topic, 1)
    routes = [{"topics": [topic], "format": {"type": format}} for format, topic in topics.items()]
    spec = {"source": {"topics": list(topics.values()), "value": value}, "routes": routes}
    produced: list[dict[str, Any]] = []
    for text, rows in ((EVENT, EVENTS), (LATER, [{"deleted": {"at": 7}}, {"deleted": {}}]), (EVENT, EVENTS)):
        made = message_class(schema_of(text))
        rows = [{"id": len(produced) + number, **row} for number, row in enumerate(rows)]
        produced += rows
        raw = [b"\x00" + ids[text].to_bytes(4, "big") + b"\x00" + made(**row).SerializeToString() for row in rows]
        for topic in topics.values():
            world.produce(raw, topic=topic)
        driver = world.drain(**spec)  # an object for each, by the columns that are known then

    proto = {"many": [], "named": {}}
    for format, topic in topics.items():
        found = []
        for key in world.objects(f"raw/{topic}/"):
            path = world.folder / f"events.{ENDINGS[format]}"
            path.write_bytes(world.content(key))
            found += events(format, path, world)
        wanted = [{**proto, **row} for row in produced]
        wanted[5]["deleted"] = {"at": 0}
        assert sorted(found, key=lambda row: row["id"]) == wanted, format
    report = world.verify(driver)
    assert report.ok, report.counts.findings
    assert report.counts.records == len(formats) * len(produced)


TIMES = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
message Visit { int64 id = 1; google.protobuf.Timestamp at = 2; repeated Step steps = 3; map<string, Step> named = 4; }
message Step { google.protobuf.Timestamp at = 1; }
"""


def visit(number: int) -> bytes:
    made: Any = message_class(schema_of(TIMES))(id=number)
    for at in (made.at, made.steps.add().at, made.named["k"].at):
        at.FromNanoseconds(nanoseconds(number))
    return bytes(made.SerializeToString())


def nanoseconds(number: int) -> int:
    """Some before 1970."""
    return (-1) ** number * (SECONDS * 10**9 + 123_456_789 + number)


def test_spark_reads_microseconds_and_lost_objects_are_written_with_them_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.kafka.create_topic(world.topic, 1)
    world.produce([visit(n) for n in range(COUNT)])
    source = {"value": {"format": "Protobuf", "schema": TIMES}}
    micros = {"type": "Parquet", "parquet": {"timestamps": "Micros"}}

    committed_but_unpublished(world, monkeypatch, source=source, format=micros)
    assert abort_all(world) == 1
    world.drain(source=source, format={"type": "Parquet"})
    world.produce([visit(COUNT)])
    driver = world.drain(source=source, format={"type": "Parquet"})

    cut, whole = world.download(world.folder / "read")
    columns = "id", "unix_micros(at) AS at", "unix_micros(steps[0].at) AS step", "unix_micros(named['k'].at) AS named"
    rows = world.spark.read.parquet(str(cut)).selectExpr(*columns).sort("id").collect()
    assert [tuple(row) for row in rows] == [(n, *3 * [nanoseconds(n) // 1000]) for n in range(COUNT)]
    with pytest.raises(Exception, match=r"Illegal Parquet type: INT64 \(TIMESTAMP\(NANOS,true\)\)"):
        world.spark.read.parquet(str(whole)).collect()
    assert duckdb.sql(f"SELECT epoch_ns(\"at\") FROM '{whole}'").fetchall() == [(nanoseconds(COUNT),)]
    report = world.verify(driver)
    assert report.ok, report.counts.findings
    assert report.counts.records == COUNT + 1
    warned = [f.text for f in preflight(driver) if f.outcome == "warn"]
    assert len(warned) == 1, warned
    assert "format.parquet.timestamps: Micros" in warned[0]
