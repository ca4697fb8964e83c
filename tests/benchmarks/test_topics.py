"""The benchmark compares formats by the same records."""

from __future__ import annotations

import json

import pytest

from benchmarks.avro_topic import AvroEvents
from benchmarks.json_schema_topic import JsonSchemaEvents
from benchmarks.protobuf_topic import ProtobufEvents
from benchmarks.topic import Events
from s3sink_job.decode.writer_schemas import SchemaId, WriterSchema
from tests.decode.inputs import batch_of_values, opened_input

STOCK, COUNT = 50, 300


class Registered:
    """Gives ids to schemas, like a registry."""

    inline = None

    def __init__(self, kind: str = "AVRO") -> None:
        self.kind, self.texts = kind, list[str]()

    def register(self, schema: str) -> int:
        self.texts.append(schema)
        return len(self.texts)

    def find(self, schema: SchemaId) -> WriterSchema | None:
        return WriterSchema(self.kind, self.texts[int(schema.value) - 1])


@pytest.mark.parametrize("start", [0, 8_100, 40_000_000])
@pytest.mark.parametrize("versions", [1, 10])
def test_avro_records_have_the_values_of_the_json_records(versions: int, start: int) -> None:
    registry = Registered()
    events = AvroEvents(registry.register, versions, stock=STOCK)
    raw = list(events.values(3, start, COUNT))
    rows, faults = opened_input("Avro", schemas=registry).rows(batch_of_values(*raw))
    assert not faults
    expected = [json.loads(value) for value in Events(stock=STOCK).values(3, start, COUNT)]
    names = list(expected[0])
    assert rows.select(names).to_pylist() == expected
    assert len(rows.schema) == len(names) + versions - 1


def test_json_schema_records_have_the_values_of_the_json_records() -> None:
    registry = Registered("JSON")
    raw = list(JsonSchemaEvents(registry.register, stock=STOCK).values(3, 0, COUNT))
    rows, faults = opened_input("JsonSchema", schemas=registry).rows(batch_of_values(*raw))
    assert not faults
    assert rows.to_pylist() == [json.loads(value) for value in Events(stock=STOCK).values(3, 0, COUNT)]


def test_one_version_writes_the_same_rows_as_ten() -> None:
    found = []
    for last_only in (True, False):
        registry = Registered()
        raw = list(AvroEvents(registry.register, 10, stock=STOCK, last_only=last_only).values(0, 0, COUNT))
        found.append(opened_input("Avro", schemas=registry).rows(batch_of_values(*raw))[0])
    assert found[0].to_pylist() == found[1].to_pylist()


@pytest.mark.parametrize("start", [0, 8_100, 40_000_000])
def test_protobuf_records_have_the_values_of_the_json_records(start: int) -> None:
    registry = Registered("PROTOBUF")
    raw = list(ProtobufEvents(registry.register, stock=STOCK).values(3, start, COUNT))
    rows, faults = opened_input("Protobuf", schemas=registry).rows(batch_of_values(*raw))
    assert not faults
    assert rows.to_pylist() == [json.loads(value) for value in Events(stock=STOCK).values(3, start, COUNT)]
