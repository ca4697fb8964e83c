"""Topics of JSON with a JSON Schema and a real schema registry, as other people's serializers write them: Confluent's
for Python, Apicurio's for Java. Each record is in the bucket once, with its types."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from py4j.java_gateway import JavaGateway

from s3sink_job.proof.registry_check import registry_checks
from tests.decode.guid_registry import with_guids
from tests.harness import World
from tests.java import java_gateway
from tools.parts.jars import json_schema_serializer_jars
from tools.parts.registry import SchemaRegistry

pytestmark = [pytest.mark.slow, pytest.mark.spark]

Headers = list[tuple[str, bytes | None]]
DRAFT = {"$schema": "http://json-schema.org/draft-07/schema#"}
"""Apicurio knows JSON Schemas by it."""
ADDRESS = {**DRAFT, "type": "object", "properties": {"city": {"type": "string"}}, "additionalProperties": False}
KEY = {**DRAFT, "title": "Key", "type": "integer"}
ORDER = {
    **DRAFT,
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "customer": {"oneOf": [{"type": "null"}, {"type": "string"}]},
        "amount": {"type": "number", "minimum": 0},
        "day": {"type": "string", "format": "date"},
        "at": {"type": "string", "format": "date-time"},
        "address": {"$ref": "#/definitions/address"},
        "tags": {"type": "object", "additionalProperties": {"type": "integer"}},
        "extra": {},
    },
    "definitions": {"address": ADDRESS},
    "required": ["id"],
}


def order(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "customer": None if number % 3 == 0 else f"c{number}",
        "amount": number / 4,
        "day": f"2026-01-{1 + number % 2:02}",
        "at": f"2026-01-31T12:00:{number % 60:02}.5+02:00",
        "address": {"city": "Łódź"},
        "tags": {"a": number},
        "extra": [number, {"b": "x"}],
        "unknown": number,
    }


def row(number: int) -> dict[str, Any]:
    """The same order as the Parquet object has to have it."""
    return {
        **{name: value for name, value in order(number).items() if name != "unknown"},
        "day": date(2026, 1, 1 + number % 2),
        "at": datetime(2026, 1, 31, 10, 0, number % 60, 500_000, UTC),
        "tags": [("a", number)],
        "extra": f'[{number},{{"b":"x"}}]',
        "_more": f'{{"unknown":{number}}}',
    }


def wire(number: int, value: Any) -> bytes:
    return b"\x00" + number.to_bytes(4, "big") + json.dumps(value).encode()


def rows(world: World) -> list[dict[str, Any]]:
    found = [pq.read_table(io.BytesIO(world.content(key))).to_pylist() for key in world.objects()]
    return sorted((one for part in found for one in part), key=lambda one: one["id"])


@pytest.fixture
def part(world: World, registry: SchemaRegistry) -> dict[str, Any]:
    """How keys or values are read. The topic is there, and empty."""
    world.kafka.create_topic(world.topic, 1)
    return {"format": "JsonSchema", "schemaRegistry": {"url": registry.url}}


def test_confluents_serializer_with_references_loses_no_value(
    world: World, registry: SchemaRegistry, part: dict[str, Any]
) -> None:
    client = SchemaRegistryClient({"url": registry.url})
    subject = f"{world.topic}-address"
    client.register_schema(subject, Schema(json.dumps(ADDRESS), "JSON"))
    refer = {**ORDER, "properties": {**ORDER["properties"], "address": {"$ref": "address.json"}}}
    schema = Schema(json.dumps(refer), "JSON", [SchemaReference("address.json", subject, 1)])
    values, keys = JSONSerializer(schema, client), JSONSerializer(json.dumps(KEY), client)
    of_value = SerializationContext(world.topic, MessageField.VALUE)
    of_key = SerializationContext(world.topic, MessageField.KEY)
    records = [(keys(n, of_key), values(order(n), of_value), None, None) for n in range(60)]
    world.kafka.produce(world.topic, records, 0)

    layout = {"partitionBy": [{"type": "Field", "path": ["day"]}, {"type": "Field", "path": ["address", "city"]}]}
    parquet = {"type": "Parquet", "columns": {"meta": "Kafka"}}
    driver = world.drain(source={"value": part, "key": part}, format=parquet, layout=layout)

    found = rows(world)
    assert [{name: one[name] for name in row(0)} for one in found] == [row(n) for n in range(60)]
    assert [one["_key"] for one in found] == [str(n) for n in range(60)]
    assert {key.split("/")[1] for key in world.objects()} == {"2026-01-01", "2026-01-02"}
    assert world.verify(driver).ok
    (columns,) = [
        text for what, ok, text in registry_checks(driver.sink.spec, driver.secrets) if ok and "-value" in text
    ]
    assert columns.endswith(
        "id int64, customer string, amount double, day date32[day], at timestamp[us, tz=UTC],"
        " address struct<city: string>, tags map<string, int64>, extra string, _more string"
    )


@pytest.fixture(scope="module")
def java() -> Iterator[JavaGateway]:
    with java_gateway(json_schema_serializer_jars()) as opened:
        yield opened


def test_guids_in_headers_are_read_beside_ids_in_front(
    world: World, registry: SchemaRegistry, part: dict[str, Any]
) -> None:
    with with_guids(registry, []) as url:
        client = SchemaRegistryClient({"url": url})
        in_header = {"schema.id.serializer": header_schema_id_serializer}
        values, keys = (
            [JSONSerializer(json.dumps(schema), client, conf=conf) for conf in (None, in_header)]
            for schema in (ORDER, KEY)
        )

        def record(number: int) -> tuple[bytes, bytes, Headers, None]:
            headers: Headers = []
            own = number % 3 > 0
            of_key, of_value = (
                SerializationContext(world.topic, one, headers if own else None)
                for one in (MessageField.KEY, MessageField.VALUE)
            )
            return keys[own](number, of_key), values[own](order(number), of_value), headers, None

        records = [record(n) for n in range(60)]
        assert (records[1][1][:1], {name for name, _ in records[1][2]}) == (
            b"{",
            {"__key_schema_id", "__value_schema_id"},
        )
        world.kafka.produce(world.topic, records, 0)
        own_part = {**part, "schemaRegistry": {"url": url}}
        parquet = {"type": "Parquet", "columns": {"meta": "Kafka"}}
        driver = world.drain(source={"key": own_part, "value": {**own_part, "validate": True}}, format=parquet)
        assert world.verify(driver).ok

    found = rows(world)
    assert [{name: one[name] for name in row(0)} for one in found] == [row(n) for n in range(60)]
    assert [one["_key"] for one in found] == [str(n) for n in range(60)]


@pytest.mark.parametrize("by", ["", "contentId", "globalId"], ids=["in front", "content ids", "global ids"])
def test_a_java_serializer_loses_no_value(
    java: JavaGateway, world: World, registry: SchemaRegistry, part: dict[str, Any], by: str
) -> None:
    registry.register(f"{world.topic}-before", json.dumps(ORDER), kind="JSON")
    registry.register(f"{world.topic}-value", json.dumps(ORDER), kind="JSON")
    options, serde = java.jvm.java.util.HashMap(), java.jvm.io.apicurio.registry.serde
    for name, setting in {
        "url": f"http://{registry.host}:{registry.port}/apis/registry/v2",
        "find-latest": "true",
        "headers.enabled": str(bool(by)).lower(),
        "use-id": by or "contentId",
        "id-handler": "io.apicurio.registry.serde.Legacy4ByteIdHandler",
    }.items():
        options.put(f"apicurio.registry.{name}", setting)
    serializer = serde.jsonschema.JsonSchemaKafkaSerializer()
    serializer.configure(options, False)
    mapper = java.jvm.com.fasterxml.jackson.databind.ObjectMapper()

    def record(number: int) -> tuple[None, bytes, Headers, None]:
        headers = java.jvm.org.apache.kafka.common.header.internals.RecordHeaders()
        value = bytes(serializer.serialize(world.topic, headers, mapper.readTree(json.dumps(order(number)))))
        return None, value, [(header.key(), bytes(header.value())) for header in headers.toArray()], None

    records = [record(n) for n in range(60)]
    assert (f"apicurio.value.{by}" in dict(records[0][2])) is bool(by)
    world.kafka.produce(world.topic, records, 0)

    driver = world.drain(source={"value": {**part, "validate": True}}, format={"type": "Parquet"})

    assert rows(world) == [row(n) for n in range(60)]
    assert world.verify(driver).ok


def test_versions_share_objects_and_bad_records_are_skipped(
    world: World, registry: SchemaRegistry, part: dict[str, Any]
) -> None:
    wider = {**ORDER, "properties": {**ORDER["properties"], "note": {"type": "string"}}}
    ids = [registry.register(f"{world.topic}-value", json.dumps(schema), kind="JSON") for schema in (ORDER, wider)]
    good = [wire(ids[n % 2], {"id": n, "amount": 1, **({"note": "n"} if n % 2 else {})}) for n in range(40)]
    bad = [b"{}", wire(ids[0], {"id": "x"}), wire(ids[0], {"id": 1, "amount": -1}), wire(ids[1] + 100_000, {})]
    world.produce([*good[:20], *bad, *good[20:]])

    skip = {"records": "Skip"}
    driver = world.drain(source={"value": {**part, "validate": True}}, format={"type": "Json"}, errors=skip)

    (key,) = world.objects()
    assert world.content(key).splitlines() == [value[5:] for value in good]
    assert world.verify(driver).ok
