"""`transform.steps` and `transform.unwrap`: what Kafka Connect and Debezium document, on columns."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from s3sink_api.spec.transform_steps import Cast, Mask
from s3sink_job.columns.types import EMPTY
from s3sink_job.shape.field_steps import CAST_TYPES
from s3sink_job.shape.field_steps import stepped as stepped_columns
from s3sink_job.shape.row_builder import BuiltRows
from s3sink_job.shape.value_columns import ValueColumns, everywhere, only
from tests.decode.batches import TOPIC, batch_of
from tests.encodings import encoding
from tests.shape.test_transform import build

TIME = datetime(2023, 11, 14, 22, 13, 20, 123_000, UTC)
VALUE = {"a": 1, "b": "x", "c": True, "d": 1.75, "l": [1, 2], "n": {"p": {"q": 1}, "r": "s"}}


def stepped(*steps: dict[str, Any], values: tuple[Any, ...] = (VALUE,), **fields: Any) -> list[dict[str, Any]]:
    found = build({"steps": list(steps)}, *values, **fields)
    assert found.bad.messages == {}
    return found.rows.to_pylist()


@pytest.mark.parametrize(
    ("step", "changed"),
    [
        # ReplaceField
        ({"type": "Drop", "fields": ["a", "c", "d", "l", "n", "missing"]}, {"b": "x"}),
        ({"type": "Rename", "field": "a", "as": "z"}, {**VALUE, "z": 1} | {"a": ...}),
        ({"type": "Rename", "field": "missing", "as": "z"}, VALUE),
        # MaskField: a null value of the type, or the replacement
        (
            {"type": "Mask", "fields": ["a", "b", "c", "d", "l"]},
            {**VALUE, "a": 0, "b": "", "c": False, "d": 0.0, "l": []},
        ),
        ({"type": "Mask", "fields": ["b"], "replacement": "***"}, {**VALUE, "b": "***"}),
        ({"type": "Mask", "fields": ["a", "d"], "replacement": "7"}, {**VALUE, "a": 7, "d": 7.0}),
        # InsertField
        ({"type": "Insert", "field": "s", "value": "fixed"}, {**VALUE, "s": "fixed"}),
        ({"type": "Insert", "field": "s", "source": "Topic"}, {**VALUE, "s": TOPIC}),
        ({"type": "Insert", "field": "s", "source": "Partition"}, {**VALUE, "s": 3}),
        ({"type": "Insert", "field": "s", "source": "Offset"}, {**VALUE, "s": 70}),
        ({"type": "Insert", "field": "s", "source": "Timestamp"}, {**VALUE, "s": TIME}),
        # Cast
        ({"type": "Cast", "fields": ["a", "d"], "to": "String"}, {**VALUE, "a": "1", "d": "1.75"}),
        ({"type": "Cast", "fields": ["d", "c"], "to": "Int32"}, {**VALUE, "d": 1, "c": 1}),
        ({"type": "Cast", "fields": ["a"], "to": "Float64"}, {**VALUE, "a": 1.0}),
        ({"type": "Cast", "fields": ["a", "b"], "to": "Boolean"}, {**VALUE, "a": True, "b": False}),
        # Flatten: arrays are kept
        (
            {"type": "Flatten"},
            {"a": 1, "b": "x", "c": True, "d": 1.75, "l": [1, 2], "n.p.q": 1, "n.r": "s"},
        ),
        (
            {"type": "Flatten", "separator": "_"},
            {"a": 1, "b": "x", "c": True, "d": 1.75, "l": [1, 2], "n_p_q": 1, "n_r": "s"},
        ),
        # HoistField, ExtractField
        ({"type": "Hoist", "field": "h"}, {"h": VALUE}),
        ({"type": "Extract", "field": "n"}, {"p": {"q": 1}, "r": "s"}),
        ({"type": "Extract", "field": "b"}, {"value": "x"}),
    ],
    ids=lambda one: one.get("type") if isinstance(one, dict) else None,
)
def test_a_step_does_what_its_transformation_does(step: dict[str, Any], changed: dict[str, Any]) -> None:
    wanted = {name: value for name, value in changed.items() if value is not ...}
    assert stepped(step) == [wanted]


def test_steps_follow_one_another() -> None:
    steps = [
        {"type": "Hoist", "field": "h"},
        {"type": "Flatten", "separator": "_"},
        {"type": "Rename", "field": "h_n_p_q", "as": "q"},
        {"type": "Drop", "fields": ["h_b", "h_c", "h_d", "h_l", "h_n_r"]},
    ]
    assert stepped(*steps) == [{"h_a": 1, "q": 1}]


@pytest.mark.parametrize(
    "step",
    [
        {"type": "Mask", "fields": ["a"]},
        {"type": "Insert", "field": "s", "value": "fixed"},
        {"type": "Cast", "fields": ["a"], "to": "String"},
        {"type": "Flatten"},
        {"type": "Hoist", "field": "h"},
        {"type": "Extract", "field": "n"},
    ],
    ids=lambda step: step["type"],
)
def test_a_tombstone_passes_every_step_unchanged(step: dict[str, Any]) -> None:
    found = build({"steps": [step]}, VALUE, None, format="Json")
    assert found.rows.column("line").to_pylist()[1] == b"null"
    assert found.bad.messages == {}


NULLS = [
    pa.null(),
    pa.timestamp("ms", "UTC"),
    pa.date32(),
    pa.time64("us"),
    pa.decimal128(5, 2),
    pa.binary(),
    pa.binary(2),
]


@pytest.mark.parametrize("kind", [*NULLS, pa.int32(), pa.string(), EMPTY], ids=str)
@pytest.mark.parametrize("to", CAST_TYPES)
@pytest.mark.parametrize("count", [0, 1, 3])
def test_nulls_of_every_type_can_be_cast_and_so_can_no_rows(kind: pa.DataType, to: str, count: int) -> None:
    values = ValueColumns({"a": pa.nulls(count, kind)}, everywhere(count))
    found = stepped_columns(values, Cast(fields=("a",), to=to), lambda path: pa.nulls(count))  # type: ignore[arg-type]
    assert (found.columns["a"].null_count, found.faults) == (count, {})
    assert found.columns["a"].type.equals(kind if pa.types.is_null(kind) else CAST_TYPES[to])


@pytest.mark.parametrize(
    ("zero", "other", "kind"),
    [
        (Decimal(0), Decimal("0.50"), pa.decimal128(5, 2)),
        (Decimal(0), Decimal("0.50"), pa.decimal256(60, 2)),
        (0, 5, pa.int32()),
        (0.0, 0.1, pa.float32()),
        (0, 1, pa.timestamp("us", "UTC")),
    ],
    ids=str,
)
def test_numbers_of_every_type_are_false_only_if_they_are_zero(zero: Any, other: Any, kind: pa.DataType) -> None:
    values = ValueColumns({"a": pa.array([zero, other, None], kind)}, only([], 3))
    found = stepped_columns(values, Cast(fields=("a",), to="Boolean"), lambda path: pa.nulls(3))
    assert (found.columns["a"].to_pylist(), found.faults) == ([False, True, None], {})


def test_decimals_can_be_masked() -> None:
    values = ValueColumns({"a": pa.array([Decimal("1.50"), None], pa.decimal128(5, 2))}, only([], 2))
    found = stepped_columns(values, Mask(fields=("a",)), lambda path: pa.nulls(2))
    assert (found.columns["a"].to_pylist(), found.faults) == ([Decimal("0.00"), None], {})


def test_what_is_null_is_not_masked() -> None:
    rows = stepped({"type": "Mask", "fields": ["a"], "replacement": "9"}, values=({"a": None}, {"a": 5}))
    assert rows == [{"a": None}, {"a": 9}]


def test_a_field_is_renamed_where_only_one_of_both_names_has_a_value() -> None:
    rename = {"type": "Rename", "field": "a", "as": "b"}

    def renamed(*values: Any) -> list[Any]:
        return [row["b"] for row in stepped(rename, values=values)]

    assert renamed({"a": 1}, {"b": 2}, {"a": None, "b": 3}, {"a": 4, "b": None}, {}, None) == [1, 2, 3, 4, None, None]
    wanted = [{"x": 1.0, "y": None}, {"x": 2.5, "y": None}, {"x": None, "y": "z"}]
    assert renamed({"a": {"x": 1}}, {"b": {"x": 2.5}}, {"b": {"y": "z"}}) == wanted
    assert renamed({"a": 1}, {"b": "x"}) == ["1", "x"]
    assert renamed({"a": 2**60 + 1}, {"b": 0.5}) == [str(2**60 + 1), "0.5"]
    assert stepped({"type": "Rename", "field": "a", "as": "a"}, values=({"a": 1},)) == [{"a": 1}]
    assert list(build({"steps": [rename]}, {"a": 1, "b": 2}, {"b": 2}, {"a": 1}).bad.messages) == [0]


def test_fields_that_flatten_joins_are_a_fault_only_in_records_with_both() -> None:
    values = ({"a": {"b": 1}}, {"a.b": 2}, {"a": {"b": 3}, "a.b": None}, {})
    assert [row["a.b"] for row in stepped({"type": "Flatten"}, values=values)] == [1, 2, 3, None]
    found = build({"steps": [{"type": "Flatten"}]}, {"a": {"b": 1}, "a.b": 2}, *values)
    assert list(found.bad.messages) == [0]


@pytest.mark.parametrize(
    ("step", "value", "message"),
    [
        ({"type": "Cast", "fields": ["b"], "to": "Int64"}, {"b": "x"}, "field b: 'x' cannot be cast to Int64"),
        ({"type": "Cast", "fields": ["b"], "to": "Int32"}, {"b": 2**40}, f"field b: '{2**40}' cannot be cast to Int32"),
        ({"type": "Cast", "fields": ["b"], "to": "Int32"}, {"b": {"c": 1}}, "cannot be cast to Int32"),
        ({"type": "Mask", "fields": ["b"]}, {"b": {"c": 1}}, "a record cannot be masked: use Flatten before"),
        ({"type": "Mask", "fields": ["b"], "replacement": "x"}, {"b": 1}, "int64 cannot be masked with 'x'"),
        ({"type": "Rename", "field": "a", "as": "b"}, {"a": 1, "b": 2}, "value already has the field 'b'"),
        ({"type": "Flatten"}, {"a.b": 1, "a": {"b": 2}}, "two fields have the name 'a.b' after Flatten"),
    ],
)
def test_a_step_that_fails_is_a_fault_of_its_record_alone(
    step: dict[str, Any], value: dict[str, Any], message: str
) -> None:
    found = build({"steps": [step]}, {}, value, {})
    assert list(found.bad.messages) == [1]
    assert message in found.bad.messages[1]


ONE, TWO = {"id": 1, "name": "a"}, {"id": 1, "name": "b"}
SOURCE = {"ts_ms": 5, "table": "t"}
EVENTS = [
    {"op": "c", "before": None, "after": ONE, "source": SOURCE, "ts_ms": 6},
    {"op": "u", "before": ONE, "after": TWO, "source": SOURCE, "ts_ms": 7},
    {"op": "d", "before": TWO, "after": None, "source": SOURCE, "ts_ms": 8},
    {"op": "t", "source": SOURCE, "ts_ms": 9},
]


def unwrapped(*events: Any, format: str = "Parquet", **debezium: Any) -> BuiltRows:
    transform: dict[str, Any] = {"unwrap": "Debezium"}
    return build(transform | ({"debezium": debezium} if debezium else {}), *events, format=format)


def test_change_events_become_the_rows_after_them_with_deletes_marked() -> None:
    found = unwrapped(*EVENTS)
    meta = [{"__op": op, "__source_ts_ms": 5, "__ts_ms": at} for op, at in (("c", 6), ("u", 7), ("d", 8))]
    assert found.rows.to_pylist() == [
        {**ONE, **meta[0], "__deleted": False},
        {**TWO, **meta[1], "__deleted": False},
        {**TWO, **meta[2], "__deleted": True},
    ]
    assert found.keep is not None
    assert found.keep.to_pylist() == [True, True, True, False]


def test_deletes_can_be_left_out_or_become_tombstones() -> None:
    assert unwrapped(*EVENTS, deletes="Drop", addFields=[]).rows.to_pylist() == [ONE, TWO]
    found = unwrapped(*EVENTS, deletes="Tombstones", addFields=["source.table"], format="Json")
    lines = [json.loads(line) for line in found.rows.column("line").to_pylist()]
    assert lines == [{**ONE, "__source_table": "t"}, {**TWO, "__source_table": "t"}, None]
    assert found.decoded.batch.column("value").is_null().to_pylist() == [False, False, True]
    assert found.bad.batch.column("value").null_count == 0, "bad records stay as they were read"


def test_tombstones_of_deletes_follow_null_values() -> None:
    events = [json.dumps(event).encode() for event in EVENTS]
    transform = {"unwrap": "Debezium", "debezium": {"deletes": "Tombstones", "addFields": []}}
    skip, fail = (encoding(format="Parquet", transform=transform, nulls=nulls) for nulls in ("Skip", "Fail"))
    assert skip.row_builder(TOPIC).build(batch_of(*events)).rows.to_pylist() == [ONE, TWO]
    assert list(fail.row_builder(TOPIC).build(batch_of(*events)).bad.messages) == [2]


def test_what_is_no_change_event_is_a_bad_record() -> None:
    found = unwrapped({"x": 1}, EVENTS[0], {"op": "u", "after": None})
    assert list(found.bad.messages) == [0, 2]
    assert "no change event of Debezium" in found.bad.messages[0]
    assert "without the row in its field after" in found.bad.messages[2]
    assert "whose field after is string and no record" in unwrapped({"op": "c", "after": "text"}).bad.messages[0]


def test_an_event_whose_source_is_no_record_is_a_bad_record() -> None:
    odd = {"op": "c", "after": ONE, "source": "x"}
    assert list(unwrapped(odd).bad.messages) == [0]
    found = unwrapped(EVENTS[0], {"source": 5}, {"op": "c", "after": TWO})
    assert 1 in found.bad.messages
    assert 2 not in found.bad.messages
    message = "without the field source.ts_ms: field source is string and has no fields"
    assert message in unwrapped(EVENTS[0], odd).bad.messages[1]


def test_change_events_of_connect_json_with_a_schema_are_unwrapped() -> None:
    row = {"type": "struct", "optional": True, "fields": [{"field": "id", "type": "int64"}]}
    fields = [{**row, "field": name} for name in ("before", "after")]
    schema = {"type": "struct", "fields": [*fields, {"field": "op", "type": "string"}]}
    event = {"schema": schema, "payload": {"op": "d", "before": {"id": 1}, "after": None}}
    transform = {"unwrap": "Debezium", "debezium": {"addFields": ["op"]}}
    found = build(transform, event, value="ConnectJson")
    assert (found.rows.to_pylist(), found.bad.messages) == ([{"id": 1, "__op": "d", "__deleted": True}], {})
