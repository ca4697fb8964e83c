"""Columns by a supplied schema: no record changes them, and one that does not fit is bad."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from s3sink_api.spec import columns_of
from s3sink_job.columns.types import from_doc
from s3sink_job.decode.json_columns import SuppliedColumns
from tests.decode.batches import TOPIC, batch_of
from tests.decode.inputs import opened_input
from tests.encodings import changed, encoding

SCHEMA = {
    "type": "object",
    "properties": {
        "i": {"type": "integer"},
        "n": {"type": "number"},
        "s": {"type": "string"},
        "b": {"type": "boolean"},
        "l": {"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}}},
        "any": {},
    },
}
TYPES = [
    pa.int64(),
    pa.float64(),
    pa.string(),
    pa.bool_(),
    pa.list_(pa.struct([pa.field("k", pa.string())])),
    pa.string(),
]


def columns(**more: Any) -> SuppliedColumns:
    return SuppliedColumns(from_doc(columns_of(json.dumps({**SCHEMA, **more}))))


def decoded(supplied: SuppliedColumns, values: pa.Array) -> tuple[pa.RecordBatch, dict[int, str]]:
    rows, faults = supplied.decode(values)
    return rows, {row: fault.message for row, fault in faults.items()}


def binary(*values: Any) -> pa.Array:
    return pa.array([v if isinstance(v, bytes) else json.dumps(v).encode() for v in values], pa.binary())


def test_the_columns_are_those_of_the_schema_for_any_values() -> None:
    strict = columns(additionalProperties=False)
    for values in ([{}], [{"i": 1, "any": {"x": [1]}}], [{"n": 1}, {"l": [{"k": "x"}, None, {}]}], [{"any": 2}]):
        rows, bad = decoded(strict, binary(*values))
        assert (rows.schema.types, bad) == (TYPES, {})
    assert [field.type for field in strict.record] == TYPES
    supplied = from_doc(columns_of(json.dumps(SCHEMA)))
    assert opened_input("Json", supplied=supplied).schema is None, "there is nothing to learn"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"i": 1.5}, "$.i is a number, and should be int64"),
        ({"i": True}, "$.i is a boolean, and should be int64"),
        ({"i": "1"}, "$.i is a string, and should be int64"),
        (b'{"i": 99999999999999999999}', "$.i is a number, and should be int64"),
        (b'{"n": 9007199254740993}', "$.n is a number, and should be double"),
        ({"s": 1}, "$.s is a number, and should be text"),
        ({"b": 0}, "$.b is a number, and should be bool"),
        ({"l": {}}, "$.l is an object, and should be list"),
        ({"l": [{"k": 1}]}, "$.l[0].k is a number, and should be text"),
        ({"l": [{"other": 1}]}, "$.l[0] has the field 'other'"),
        ({"new": 1}, "$ has the field 'new'"),
    ],
)
def test_a_value_that_does_not_fit_is_a_bad_record_and_others_are_kept(value: Any, why: str) -> None:
    rows, bad = decoded(columns(additionalProperties=False), binary({"i": 1}, value, {"i": 2}))

    assert list(bad) == [1]
    assert why in bad[1]
    assert rows.column("i").to_pylist() == [1, None, 2]


def test_a_field_that_the_schema_does_not_name_is_kept_as_json() -> None:
    rows, bad = decoded(columns(), binary({"i": 1, "x": {"y": [1]}}, {"i": 2}))

    assert bad == {}
    assert rows.column("_more").to_pylist() == ['{"x":{"y":[1]}}', None]


def test_a_field_of_any_type_keeps_every_digit() -> None:
    rows, bad = decoded(columns(), binary(b'{"any":0.1234567890123456789012,"x":12345678901234567890.5}', {"n": 0.5}))

    assert bad == {}
    assert rows.column("any").to_pylist() == ["0.1234567890123456789012", None]
    assert rows.column("_more").to_pylist() == ['{"x":12345678901234567890.5}', None]


def test_with_quix_columns_the_value_is_text_and_still_has_to_fit() -> None:
    wanted = changed(encoding(format="Parquet", meta="Quix"), supplied=json.dumps(columns_of(json.dumps(SCHEMA))))
    batch = batch_of(b'{"i": 1}', b'{"i": "x"}')
    found = wanted.row_builder(TOPIC).build(batch)

    assert list(found.bad.messages) == [1]
    assert found.rows.column("_value").to_pylist()[0] == '{"i": 1}'
