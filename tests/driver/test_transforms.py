"""Transforms, end to end: what is filtered is counted and proved, and lost objects are written by the same text."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq
import pytest

from s3sink_job.driver.driver import Driver
from s3sink_job.kafka.batch_size import BATCH_RECORDS
from s3sink_job.proof.find import WantedOffset
from s3sink_job.report import logs
from tests.commit.test_store_faults import abort_all, committed_but_unpublished
from tests.decode.avro_samples import written
from tests.decode.proto_samples import message_class, schema_of
from tests.driver.test_dead_letters import PREFIX, letters
from tests.harness import World
from tests.proof.test_find import found
from tools.parts.registry import SchemaRegistry

PARQUET = {"type": "Parquet"}


def orders(count: int) -> list[dict[str, Any]]:
    return [{"id": n, "amount": n % 10, "country": "de" if n % 2 else "fr"} for n in range(count)]


def manifests(world: World) -> list[dict[str, Any]]:
    keys = [key for key in world.objects(".s3sink/") if "/flushes/" in key]
    return [json.loads(world.content(key)) for key in sorted(keys)]


def slices(world: World) -> list[dict[str, Any]]:
    return [part for manifest in manifests(world) for part in manifest["slices"]]


def tables(world: World) -> list[dict[str, Any]]:
    return [row for path in world.download(world.folder / "objects") for row in pq.read_table(path).to_pylist()]


def proved(world: World, driver: Driver) -> dict[str, Any]:
    """The report of verify. Kafka's count is the sum of what became of its records."""
    doc = world.verify(driver).to_doc()
    assert doc["ok"], doc["findings"]
    assert len(world.messages()) == doc["records"] + doc["filtered"] + doc["skipped"] + doc["deadLettered"]
    return doc


def test_filtered_records_are_counted_everywhere_and_proved(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([*orders(50), None, b"no json", *orders(10)])
    transform = {"where": "amount >= 8 AND _offset < 60", "select": ["id", "upper(country) AS cc", "_offset AS at"]}
    driver = world.drain(transform=transform, format=PARQUET, errors={"records": "Skip"}, flush={"records": 20})
    wanted = [
        {"id": one["id"], "cc": one["country"].upper(), "at": at}
        for at, one in [*enumerate(orders(50)), *enumerate(orders(10), 52)]
        if one["amount"] >= 8 and at < 60
    ]
    assert tables(world) == wanted
    doc = proved(world, driver)
    assert (doc["records"], doc["filtered"], doc["skipped"]) == (10, 51, 1)
    assert sum(part["filtered"] for part in slices(world)) == world.state()["filtered"] == 51
    assert manifests(world)[0]["encoding"]["transform"] == {**transform, "steps": []}
    assert {manifest["formatVersion"] for manifest in manifests(world)} == {2}
    status = driver.reporter.status()["flush"]
    assert (status["totalRecords"], status["totalFiltered"]) == (10, 51)
    labels = {"topic": world.topic, "partition": "0"}
    assert driver.reporter.metrics.registry.get_sample_value("s3sink_filtered_records_total", labels) == 51
    assert driver.reporter.status()["lag"]["records"] == 0
    outcomes = {at: found(driver, WantedOffset(world.topic, 0, at))["outcome"] for at in (7, 8, 20, 51, 61)}
    assert outcomes == {7: "Filtered", 8: "InObject", 20: "Filtered", 51: "Skipped", 61: "Filtered"}


def test_a_filter_on_a_header_is_proved_also_where_dead_letters_need_whole_records(world: World) -> None:
    world.kafka.create_topic(world.topic, 1)
    given = [
        [("kind", b"a"), ("kind", b"b")],
        [("kind", b"a")],
        None,
        [("kind", b"\xff")],
        [("kind", b"a"), ("x", b"")],
    ]
    values = [b'{"n":0}', b'{"n":1}', b'{"n":2}', b'{"n":3}', b"no json"]
    world.kafka.produce(world.topic, [(None, v, h, None) for v, h in zip(values, given, strict=True)], 0)
    errors = {**PREFIX, "maxPercent": 100}
    driver = world.drain(transform={"where": "_headers['kind'] = 'a'"}, format=PARQUET, errors=errors)

    assert [row for row in tables(world) if "n" in row] == [{"n": 1}]
    (letter,) = letters(world)
    assert (letter["offset"], letter["value"]) == (4, b"no json")
    doc = proved(world, driver)
    assert (doc["records"], doc["filtered"], doc["deadLettered"]) == (1, 3, 1)


def test_a_wrong_count_of_filtered_records_is_found(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce(orders(20))
    driver = world.drain(transform={"where": "country = 'de'"})
    (key,) = [key for key in world.objects(".s3sink/") if "/flushes/" in key]
    text = world.content(key).decode().replace('"filtered": 10', '"filtered": 9')
    world.client().put_object(Bucket=world.bucket, Key=key, Body=text.encode())
    (finding,) = world.verify(driver).counts.findings
    assert "left 9 records out by its transform, and the transform leaves out 10" in finding
    text = text.replace("country = 'de'", "country = 'fr'")
    world.client().put_object(Bucket=world.bucket, Key=key, Body=text.encode())
    assert world.verify(driver).counts.missing == 10


def test_a_lost_object_is_written_again_by_the_text_of_its_flush(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.kafka.create_topic(world.topic)
    world.produce(orders(40))
    by_country = {"partitionBy": [{"type": "Topic"}, {"type": "Partition"}, {"type": "Field", "path": ["cc"]}]}
    spec: dict[str, Any] = {
        "transform": {"where": "amount > 2", "select": ["* EXCLUDE (country)", "upper(country) AS cc"]},
        "layout": by_country,
    }
    committed_but_unpublished(world, monkeypatch, **spec)
    sizes = {entry["key"]: entry["bytes"] for entry in manifests(world)[0]["objects"]}
    assert abort_all(world) == len(sizes) == 2
    world.produce(orders(5))

    driver = world.drain(transform={"where": "amount > 100"}, layout=by_country)

    assert world.sizes() == sizes
    rows = [json.loads(line) for key in sizes for line in world.content(key).splitlines()]
    assert sorted(row["id"] for row in rows) == [n for n in range(40) if n % 10 > 2]
    assert {row["cc"] for row in rows} == {"DE", "FR"}
    doc = proved(world, driver)
    assert (doc["records"], doc["filtered"]) == (28, 12 + 5)


def test_a_failing_expression_is_a_bad_record_with_its_offset(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([{"n": "1"}, {"n": "-1"}, {"n": "one"}, {"n": "-2"}, {"n": "4"}])
    transform = {"where": "CAST(n AS INTEGER) > 0", "select": ["CAST(n AS INTEGER) AS number"]}
    problem = world.drain(transform=transform).problems[world.topic, 0]
    assert problem.reason == "BadRecord"
    assert f"topic {world.topic}, partition 0, offset 2" in problem.message
    assert "transform.where 'CAST(n AS INTEGER) > 0': Conversion Error (errors.logRecords" in problem.message
    # What lies before it is committed, and of the filtered ones only those.
    assert [(part["end"], part["rows"], part["filtered"]) for part in slices(world)] == [(2, 1, 1)]

    driver = world.drain(transform=transform, errors=PREFIX)

    assert world.rows() == [{"number": 1}, {"number": 4}]
    (letter,) = letters(world)
    assert (letter["offset"], letter["stage"], letter["reason"]) == (2, "Transform", "ExpressionFailed")
    text = "transform.where 'CAST(n AS INTEGER) > 0': Conversion Error: Could not convert string 'one'"
    assert letter["message"].startswith(text)
    doc = proved(world, driver)
    assert (doc["records"], doc["filtered"], doc["deadLettered"]) == (2, 2, 1)


@pytest.mark.parametrize("shown", [False, True])
def test_content_of_bad_records_is_in_log_and_status_only_if_wanted(
    world: World, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(json.dumps(getattr(record, logs.FIELDS, {}), default=str))

    monkeypatch.setattr(logs.log, "handlers", [Kept()])
    world.kafka.create_topic(world.topic)
    secret = "4111'1111"
    world.produce([{"n": secret, "k": "1"}, {"n": "1", "k": secret}, {"n": "1", "k": f'{{"x": {secret}'}])
    transform = {
        "steps": [{"type": "Cast", "fields": ["n"], "to": "Int64"}],
        "select": ["k ->> '$.x' AS x", "CAST(k AS BIGINT) AS y"],
    }
    stopped = world.drain(transform=transform, errors={"logRecords": shown})
    driver = world.drain(transform=transform, errors=PREFIX | {"logRecords": shown})

    status = json.dumps([stopped.reporter.status(), driver.reporter.status()])
    assert [secret in text for text in ("".join(lines), status)] == [shown, shown]
    assert "a value cannot be cast to Int64" in "".join(lines) or shown
    assert [secret in letter["message"] for letter in letters(world)] == [True, True, True]


def test_fields_that_change_their_type_are_proved_by_the_types_they_had(world: World) -> None:
    """9 < '10' is true of numbers and false of texts. Each slice has one of the two, and its manifest says which."""
    world.kafka.create_topic(world.topic)
    world.produce([{"code": 9}, {"code": 10}, {"code": 7}])
    transform = {"where": "code < '10'"}
    world.drain(transform=transform)
    world.produce([{"code": "x"}, {"code": 9}, {"code": 10}])
    driver = world.drain(transform=transform)
    assert [row["code"] for row in world.rows()] == [9, 7]
    types = [part["inputs"] for part in slices(world)]
    assert types == [[[["code"], '"int64"']], [[["code"], '"text"']]]
    doc = proved(world, driver)
    assert (doc["records"], doc["filtered"]) == (2, 4)


def test_a_field_that_shows_up_later_changes_nothing_that_was_written(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As JSON, a record has null for a field that others have. So what is written depends on the fields so far."""
    world.kafka.create_topic(world.topic, 1)
    world.produce([{"id": n, "a": {"b": 1}} for n in range(BATCH_RECORDS)])
    world.produce([{"id": n, "a": {"b": 1, "c": 2}, "d": n} for n in range(9)])
    spec: dict[str, Any] = {
        "transform": {
            "where": "length(to_json(a)) < 10",
            "select": ["id", "to_json(a) AS a", "coalesce(d, 'none') AS d"],
        },
        "format": PARQUET,
    }
    committed_but_unpublished(world, monkeypatch, **spec)
    sizes = {entry["key"]: entry["bytes"] for entry in manifests(world)[0]["objects"]}
    assert abort_all(world) == len(sizes)
    world.produce([{"id": 9, "a": {"b": 1}}])

    driver = world.drain(**spec)

    assert [part["end"] for part in slices(world)] == [BATCH_RECORDS, BATCH_RECORDS + 10]
    assert world.sizes() == sizes
    assert slices(world)[0]["inputs"] == [[["a"], '{"struct": {"b": "int64"}}'], [["d"], '"null"']]
    assert tables(world) == [{"id": n, "a": '{"b":1}', "d": "none"} for n in range(BATCH_RECORDS)]
    doc = proved(world, driver)
    assert (doc["records"], doc["filtered"]) == (BATCH_RECORDS, 10)


def test_tombstones_that_a_step_makes_are_left_out_and_proved(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([{"a": {"b": 1}}, {"a": None}, {"c": 1}, {"a": {"b": 2}}])
    steps = {"steps": [{"type": "Extract", "field": "a"}]}
    driver = world.drain(transform=steps, format=PARQUET, nullValues="Skip")
    assert tables(world) == [{"b": 1}, {"b": 2}]
    doc = proved(world, driver)
    assert (doc["records"], doc["filtered"]) == (2, 2)


def test_a_route_has_a_transform_of_its_own(world: World) -> None:
    other = f"{world.topic}-other"
    for topic in (world.topic, other):
        world.kafka.create_topic(topic)
        world.produce(orders(10), topic=topic)
    driver = world.drain(
        source={"topics": [world.topic, other]},
        transform={"where": "country = 'de'"},
        routes=[{"topics": [other], "transform": {"steps": [{"type": "Drop", "fields": ["country", "amount"]}]}}],
    )
    assert [row["id"] for row in world.rows(topic=world.topic)] == [1, 3, 5, 7, 9]
    assert world.rows(topic=other) == [{"id": n} for n in range(10)]
    assert world.verify(driver).ok


def test_change_events_become_rows(world: World) -> None:
    world.kafka.create_topic(world.topic)
    one, two = {"id": 1, "name": "a"}, {"id": 1, "name": "b"}
    source = {"ts_ms": 5, "table": "t"}
    world.produce(
        [
            {"op": "r", "before": None, "after": one, "source": source, "ts_ms": 6},
            {"op": "u", "before": one, "after": two, "source": source, "ts_ms": 7},
            {"op": "d", "before": two, "after": None, "source": source, "ts_ms": 8},
            None,
        ]
    )
    spec: dict[str, Any] = {"format": PARQUET, "nullValues": "Skip"}
    options = {"deletes": "Drop", "addFields": ["op", "source.table"]}
    driver = world.drain(transform={"unwrap": "Debezium", "debezium": options, "where": "name IS NOT NULL"}, **spec)
    assert tables(world) == [{**one, "__op": "r", "__source_table": "t"}, {**two, "__op": "u", "__source_table": "t"}]
    doc = world.verify(driver).to_doc()
    assert (doc["ok"], doc["records"], doc["filtered"]) == (True, 2, 1), doc["findings"]


ROW = {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]}
EVENT_AVRO = {
    "type": "record",
    "name": "Event",
    "fields": [
        {"name": "op", "type": "string"},
        {"name": "before", "type": ["null", ROW]},
        {"name": "after", "type": ["null", "Row"]},
        {"name": "source", "type": {"type": "record", "name": "S", "fields": [{"name": "ts_ms", "type": "long"}]}},
    ],
}
EVENT_PROTO = """
syntax = "proto3";
message Event { string op = 1; Row before = 2; Row after = 3; Source source = 4; }
message Row { int64 id = 1; string name = 2; }
message Source { int64 ts_ms = 1; }
"""
ROW_JSON = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
    "additionalProperties": False,
}
STATE_JSON = {"oneOf": [{"type": "null"}, ROW_JSON]}
SOURCE_JSON = {"type": "object", "properties": {"ts_ms": {"type": "integer"}}}
EVENT_JSON = {
    "type": "object",
    "properties": {"op": {"type": "string"}, "before": STATE_JSON, "after": STATE_JSON, "source": SOURCE_JSON},
}


def proto_event(event: dict[str, Any]) -> bytes:
    given = {name: value for name, value in event.items() if value is not None}
    made: bytes = message_class(schema_of(EVENT_PROTO), "Event")(**given).SerializeToString()
    return b"\x00" + made  # the first message of the schema


WIRES: dict[str, tuple[str, Any, Callable[[dict[str, Any]], bytes]]] = {
    "Avro": ("AVRO", json.dumps(EVENT_AVRO), lambda event: written(EVENT_AVRO, event)[0]),
    "Protobuf": ("PROTOBUF", EVENT_PROTO, proto_event),
    "JsonSchema": ("JSON", json.dumps(EVENT_JSON), lambda event: json.dumps(event).encode()),
}


def test_change_events_with_schemas_become_rows(world: World, registry: SchemaRegistry) -> None:
    one, two = {"id": 1, "name": "a"}, {"id": 1, "name": "b"}
    events = [
        {"op": "r", "before": None, "after": one, "source": {"ts_ms": 6}},
        {"op": "u", "before": one, "after": two, "source": {"ts_ms": 7}},
        {"op": "d", "before": two, "after": None, "source": {"ts_ms": 8}},
        {"op": "d", "before": one, "after": None, "source": {"ts_ms": 9}},
    ]
    topics = {kind: f"{world.topic}-{kind}" for kind in WIRES}
    for kind, topic in topics.items():
        language, schema, wire = WIRES[kind]
        number = registry.register(f"{topic}-value", schema, kind=language)
        frame = b"\x00" + number.to_bytes(4, "big")
        world.kafka.create_topic(topic, 1)
        world.kafka.produce(topic, [(None, frame + wire(event), [], None) for event in events], 0)
    routes = [
        {"topics": [topic], "source": {"value": {"format": kind, "schemaRegistry": {"url": registry.url}}}}
        for kind, topic in topics.items()
    ]

    driver = world.drain(
        source={"topics": list(topics.values())},
        transform={"unwrap": "Debezium", "where": "name = 'b'", "debezium": {"addFields": ["op", "source.ts_ms"]}},
        routes=routes,
        format=PARQUET,
    )

    wanted = [
        {**two, "__op": "u", "__source_ts_ms": 7, "__deleted": False},
        {**two, "__op": "d", "__source_ts_ms": 8, "__deleted": True},
    ]
    assert tables(world) == wanted * len(topics)
    doc = world.verify(driver).to_doc()
    assert (doc["ok"], doc["records"], doc["filtered"]) == (True, 6, 6), doc["findings"]
