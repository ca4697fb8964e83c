"""Nested objects, some of them null, in batches and slices of batches: each format gives them back."""

from __future__ import annotations

import io
from random import Random
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import orc

from s3sink_job.decode.json_columns import JsonColumns
from tests.encodings import output
from tests.formats.samples import batch, written

FORMATS = ["Parquet", "Avro", "Orc"]
LEAVES: dict[pa.DataType, list[Any]] = {
    pa.int64(): [0, 7, -(2**63), 2**63 - 1],
    pa.float64(): [0.0, -0.5, 1e300],
    pa.bool_(): [True, False],
    pa.string(): ["", "x", "é", "longer than the others"],
    pa.binary(): [b"", b"\xff", b"abc"],
}


def by_others(data: bytes, format: str) -> list[dict[str, Any]]:
    match format:
        case "Parquet":
            return list(pq.read_table(io.BytesIO(data)).to_pylist())
        case "Avro":
            return list(fastavro.reader(io.BytesIO(data)))  # type: ignore[arg-type]
        case _:
            return list(orc.ORCFile(io.BytesIO(data)).read().to_pylist())


def struct(random: Random, depth: int) -> pa.StructType:
    return pa.struct([(name, kind(random, depth)) for name in "abc"[: random.randint(1, 3)]])


def kind(random: Random, depth: int) -> pa.DataType:
    match random.choice(["struct", "struct", "list", "leaf"]) if depth else "leaf":
        case "struct":
            return struct(random, depth - 1)
        case "list":
            return pa.list_(kind(random, depth - 1))
        case _:
            return random.choice(list(LEAVES))


def value(random: Random, kind: pa.DataType) -> Any:
    """Values of the type, sometimes null, at every level."""
    if random.random() < 0.3:
        return None
    if pa.types.is_struct(kind):
        return {field.name: value(random, field.type) for field in kind}
    if pa.types.is_list(kind):
        return [value(random, kind.value_type) for _ in range(random.randint(0, 3))]
    return random.choice(LEAVES[kind])


def nested(random: Random) -> pa.RecordBatch:
    """A part of a batch."""
    record, count = struct(random, 3), random.randint(1, 8)
    rows = [{field.name: value(random, field.type) for field in record} for _ in range(count)]
    first = random.randrange(count)
    return pa.RecordBatch.from_pylist(rows, pa.schema(list(record))).slice(first, random.randint(1, count - first))


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=300)
@given(seed=st.integers(0))
def test_values_of_nested_rows_are_read_back_unchanged(format: str, seed: int) -> None:
    rows = nested(Random(seed))

    assert by_others(written(output(format), rows), format) == rows.to_pylist()


@pytest.mark.parametrize("format", FORMATS)
def test_a_null_object_does_not_shift_the_values_below_it(format: str) -> None:
    values = [b'{"id":1,"o":{"n":null}}', b'{"id":2,"o":{"n":{"z":"k","i":7}}}', b'{"id":3,"o":{"n":{"z":"b","i":8}}}']
    rows, _ = JsonColumns().decode(pa.array(values, pa.binary()))

    found = by_others(written(output(format), rows), format)

    assert [row["o"]["n"] for row in found] == [None, {"z": "k", "i": 7}, {"z": "b", "i": 8}]


@pytest.mark.parametrize("format", FORMATS)
def test_any_part_of_a_batch_with_objects_in_objects_is_written(format: str) -> None:
    rows = batch({"o": [{"x": {"y": 1}}, None, {"x": None}, {"x": {"y": 4}}, {"x": {"y": None}}]})

    for start in range(rows.num_rows):
        for length in range(1, rows.num_rows - start + 1):
            part = rows.slice(start, length)
            assert by_others(written(output(format), part), format) == part.to_pylist()
