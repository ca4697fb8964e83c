"""The benchmark compares formats by the same records."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from benchmarks.avro_topic import AvroEvents
from benchmarks.topic import Events
from s3sink_job.decode.avro import AvroInput
from s3sink_job.decode.writer_schemas import WriterSchema

STOCK, COUNT = 50, 300


class Registered:
    """Gives ids to schemas, like a registry."""

    inline = None

    def __init__(self) -> None:
        self.texts: list[str] = []

    def register(self, schema: str) -> int:
        self.texts.append(schema)
        return len(self.texts)

    def by_id(self, number: int) -> WriterSchema | None:
        return WriterSchema("AVRO", self.texts[number - 1])


@pytest.mark.parametrize("start", [0, 8_100, 40_000_000])
@pytest.mark.parametrize("versions", [1, 10])
def test_avro_records_have_the_values_of_the_json_records(versions: int, start: int) -> None:
    registry = Registered()
    events = AvroEvents(registry.register, versions, stock=STOCK)
    raw = list(events.values(3, start, COUNT))
    rows, faults = AvroInput("value", schemas=registry).rows(pa.array(raw, pa.binary()))
    assert not faults
    expected = [json.loads(value) for value in Events(stock=STOCK).values(3, start, COUNT)]
    names = list(expected[0])
    assert rows.select(names).to_pylist() == expected
    assert len(rows.schema) == len(names) + versions - 1


def test_one_version_writes_the_same_rows_as_ten() -> None:
    found = []
    for last_only in (True, False):
        registry = Registered()
        raw = list(AvroEvents(registry.register, 10, stock=STOCK, last_only=last_only).values(0, 0, COUNT))
        found.append(AvroInput("value", schemas=registry).rows(pa.array(raw, pa.binary()))[0])
    assert found[0].to_pylist() == found[1].to_pylist()
