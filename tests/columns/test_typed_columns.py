"""Types of records with a schema: how they widen, what is refused, and their text."""

from __future__ import annotations

import base64
import json
import struct
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from s3sink_job.columns.cast import Inexact, as_text_at, cast_column, may_round
from s3sink_job.columns.decimals import decimal_bytes, decimals_of
from s3sink_job.columns.evolution import Incompatible, evolved
from s3sink_job.columns.known_columns import KnownColumns, known_from_text, known_to_text
from s3sink_job.columns.text import json_of, text_of
from s3sink_job.columns.types import (
    BOOL,
    DOUBLE,
    EMPTY,
    INT,
    NULL,
    TEXT,
    decimal,
    fields_with_more,
    from_doc,
    holds_something,
    leaves,
    merge,
    to_doc,
    writable,
)
from s3sink_job.decode.typed_columns import TypedColumns
from tests.columns.typed_kinds import records_with_empty_ones, typed_kinds, typed_records, typed_rows, typed_values

NO_FIELDS = pa.struct([("_more", TEXT)])
INT32, FLOAT, DATE = pa.int32(), pa.float32(), pa.date32()
UTC = {unit: pa.timestamp(unit, "UTC") for unit in ("ms", "us", "ns")}


def a_map(kind: pa.DataType) -> pa.DataType:
    return pa.map_(TEXT, kind)


WIDER = [
    (INT32, INT, INT),
    (FLOAT, DOUBLE, DOUBLE),
    (INT32, DOUBLE, DOUBLE),
    (INT32, FLOAT, DOUBLE),
    (decimal(10, 2), decimal(20, 2), decimal(20, 2)),
    (decimal(10, 2), decimal(50, 2), decimal(50, 2)),
    (a_map(INT32), a_map(INT), a_map(INT)),
    (a_map(NULL), a_map(DATE), a_map(DATE)),
    (pa.struct([("a", a_map(pa.struct([("b", INT32)])))]),) * 3,
    (NULL, DATE, DATE),
]
CLASHES = [
    (UTC["ms"], UTC["us"]),
    (UTC["ms"], pa.timestamp("ms")),
    (decimal(10, 2), decimal(10, 3)),
    (DATE, INT32),
    (TEXT, INT32),
    (pa.binary(), TEXT),
    (pa.binary(3), pa.binary(4)),
    (INT, FLOAT),
    (INT, DOUBLE),
    (a_map(INT), pa.struct([("a", INT)])),
    (BOOL, INT32),
]


def widened(known: pa.StructType, new: pa.StructType) -> pa.StructType:
    return evolved(KnownColumns(known), KnownColumns(new)).record


@pytest.mark.parametrize(("one", "other", "both"), WIDER, ids=str)
def test_types_widen_to_one_that_holds_both(one: pa.DataType, other: pa.DataType, both: pa.DataType) -> None:
    assert merge(one, other).equals(both)
    assert merge(other, one).equals(both)
    known, new = pa.struct([("f", one)]), pa.struct([("f", other)])
    assert widened(known, new).equals(pa.struct([("f", both)]))


@pytest.mark.parametrize(("one", "other"), CLASHES, ids=str)
def test_a_change_without_a_wider_type_is_refused_with_its_path(one: pa.DataType, other: pa.DataType) -> None:
    assert merge(one, other).equals(DOUBLE if INT in (one, other) and {FLOAT, DOUBLE} & {one, other} else TEXT)
    with pytest.raises(Incompatible, match=r"field 'o\.\[\]' was") as caught:
        widened(pa.struct([("o", pa.list_(one))]), pa.struct([("n", INT), ("o", pa.list_(other))]))
    assert str(caught.value) == f"field 'o.[]' was {one} and is now {other}, and no type holds both"


def test_fields_that_come_or_go_are_no_conflict() -> None:
    assert widened(pa.struct([("a", INT)]), pa.struct([("b", DATE)])).equals(pa.struct([("a", INT), ("b", DATE)]))
    assert widened(EMPTY, pa.struct([("b", DATE)])).equals(pa.struct([("b", DATE)]))


@given(typed_records, typed_records)
def test_a_widened_type_is_what_inferred_types_would_merge_to(known: pa.StructType, new: pa.StructType) -> None:
    try:
        found = widened(known, new)
    except Incompatible:
        return
    assert found.equals(merge(known, new))
    assert widened(found, new).equals(found)
    assert widened(found, known).equals(found)


@given(typed_kinds, typed_kinds, typed_kinds)
def test_it_does_not_matter_in_which_order_types_are_merged(a: pa.DataType, b: pa.DataType, c: pa.DataType) -> None:
    one, other = merge(merge(a, b), c), merge(a, merge(b, c))

    assert json.dumps(to_doc(one), sort_keys=True) == json.dumps(to_doc(other), sort_keys=True)
    assert leaves(one) == leaves(other)


@given(typed_records)
def test_a_typed_schema_is_read_back_as_it_was_stored(record: pa.StructType) -> None:
    assert known_from_text(known_to_text(KnownColumns(record))).record.equals(record)
    assert writable(record).equals(record)
    assert holds_something(record)


@given(typed_records, records_with_empty_ones, st.data())
def test_a_record_without_fields_differs_from_null_in_every_format(
    others: pa.StructType, record: pa.StructType, data: st.DataObject
) -> None:
    kind = fields_with_more(record)
    column = pa.array(data.draw(st.lists(typed_values(record), max_size=4)), record)
    found = cast_column(column, kind)

    found.validate(full=True)
    assert writable(kind).names == [field.name for field in kind if holds_something(field.type)]
    assert json_of(found).equals(json_of(column))
    assert [nulls(value) for value in found.to_pylist()] == [nulls(value) for value in column.to_pylist()]
    assert all(holds_something(inner) for inner in structs_in(kind))
    assert fields_with_more(kind).equals(kind)
    assert fields_with_more(others).equals(others)


def structs_in(kind: pa.DataType) -> list[pa.DataType]:
    """Those within the type."""
    inner = [field.type for field in kind] if pa.types.is_struct(kind) else []
    inner += [kind.value_type] if pa.types.is_list(kind) else [kind.item_type] if pa.types.is_map(kind) else []
    return [found for one in inner for found in [*([one] if pa.types.is_struct(one) else []), *structs_in(one)]]


def nulls(value: Any) -> Any:
    """The value without the fields of records that are null."""
    if isinstance(value, dict):
        return {name: nulls(inner) for name, inner in value.items() if inner is not None}
    return [nulls(item) for item in value] if isinstance(value, list | tuple) else value


def test_a_record_that_gets_fields_later_keeps_its_column() -> None:
    known = TypedColumns(KnownColumns(pa.struct([("by", a_map(EMPTY)), ("gone", EMPTY)])))  # of an older state
    assert known.record.equals(pa.struct([("by", a_map(NO_FIELDS)), ("gone", NO_FIELDS)]))
    for fields, wanted in (
        ([], [("_more", TEXT)]),
        ([("x", NULL)], [("_more", TEXT), ("x", NULL)]),
        ([("x", INT)], [("_more", TEXT), ("x", INT)]),
        ([], [("_more", TEXT), ("x", INT)]),
    ):
        assert known.take(KnownColumns(pa.struct([("by", a_map(pa.struct(fields)))]))) is None
        assert known.record.field("by").type.equals(a_map(pa.struct(wanted)))


def test_names_of_stored_types_never_change() -> None:
    doc = {
        "struct": {
            "a": "int32",
            "b": "float",
            "c": "bytes",
            "d": {"fixed": 16},
            "e": {"decimal": [10, 2]},
            "f": {"decimal": [50, 2]},
            "g": "date",
            "h": "time_ms",
            "i": "time_us",
            "j": "timestamp_ns",
            "k": "local_timestamp_ms",
            "l": {"map": {"list": "int64"}},
        }
    }
    assert to_doc(from_doc(doc)) == doc


def test_a_type_of_a_newer_release_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="'tensor' is no type of a column that this release has"):
        from_doc({"list": "tensor"})


def test_a_map_of_nothing_keeps_its_keys() -> None:
    kind = a_map(NULL)
    column = pa.array([[("k", None)], [], None], kind)

    assert writable(kind).equals(a_map(TEXT))
    assert cast_column(column, writable(kind)).to_pylist() == column.to_pylist()


@pytest.mark.parametrize(
    ("value", "have", "kind", "wanted"),
    [
        (2**31 - 1, INT32, INT, 2**31 - 1),
        (-(2**31), INT32, DOUBLE, -(2.0**31)),
        (0.1, FLOAT, DOUBLE, struct.unpack("f", struct.pack("f", 0.1))[0]),
        (Decimal("-1.50"), decimal(5, 2), decimal(50, 2), Decimal("-1.50")),
        ([("k", 1)], a_map(INT32), a_map(INT), [("k", 1)]),
        ([("k", {"a": 1})], a_map(pa.struct([("a", INT32)])), a_map(pa.struct([("a", TEXT), ("b", INT)])), None),
    ],
)
def test_a_value_stays_the_same_in_a_wider_column(
    value: Any, have: pa.DataType, kind: pa.DataType, wanted: Any
) -> None:
    found = cast_column(pa.array([None, value, None], have).slice(1), kind)

    found.validate(full=True)
    assert found.type.equals(kind)
    assert found.to_pylist() == [[("k", {"a": "1", "b": None})] if wanted is None else wanted, None]


@pytest.mark.parametrize(("have", "kind"), [(INT, INT32), (DOUBLE, FLOAT), (decimal(9, 2), decimal(8, 2)), (DATE, INT)])
def test_typed_rows_are_never_narrowed(have: pa.DataType, kind: pa.DataType) -> None:
    with pytest.raises(TypeError, match="does not widen"):
        cast_column(pa.nulls(1, have), kind, ("a",))


def test_a_long_number_in_a_map_is_never_rounded() -> None:
    have, kind = pa.struct([("m", a_map(INT))]), pa.struct([("m", a_map(DOUBLE))])

    assert may_round(have, kind)
    with pytest.raises(Inexact) as caught:
        cast_column(pa.array([{"m": [("k", 2**53 + 1)]}], have), kind)
    assert as_text_at(kind, caught.value.path).equals(pa.struct([("m", a_map(TEXT))]))


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (decimal(10, 8), Decimal("0.00000001"), "0.00000001"),
        (decimal(10, 2), Decimal("-0.05"), "-0.05"),
        (decimal(10, 2), Decimal("12.30"), "12.30"),
        (decimal(38, 0), Decimal("-" + "9" * 38), "-" + "9" * 38),
        (decimal(76, 76), Decimal("-0." + "0" * 75 + "1"), "-0." + "0" * 75 + "1"),
        (DATE, -719_162, "0001-01-01"),
        (DATE, 2_932_897, "+10000-01-01"),
        (DATE, 2**31 - 1, "+5881580-07-11"),
        (DATE, -719_529, "-0001-12-31"),
        (pa.time32("ms"), 3_723_004, "01:02:03.004"),
        (pa.time64("us"), 1, "00:00:00.000001"),
        (pa.time32("ms"), 86_400_000, "24:00:00.000"),
        (pa.time64("us"), -1, "-00:00:00.000001"),
        (UTC["ms"], -1, "1969-12-31T23:59:59.999Z"),
        (UTC["us"], 253_402_300_800_000_001, "+10000-01-01T00:00:00.000001Z"),
        (UTC["ms"], -(2**63), "-292275055-05-16T16:47:04.192Z"),
        (UTC["ns"], -(2**63), "1677-09-21T00:12:43.145224192Z"),
        (pa.timestamp("us"), 0, "1970-01-01T00:00:00.000000"),
        (pa.binary(2), b"\xff\x00", "/wA="),
    ],
)
def test_a_typed_value_has_this_text_and_is_a_string_in_json(kind: pa.DataType, value: Any, text: str) -> None:
    column = pa.array([None, value], kind).slice(1)

    assert text_of(column).to_pylist() == cast_column(column, TEXT).to_pylist() == [text]
    assert json_of(column).to_pylist() == [f'"{text}"']


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
@example([0.10000000149011612, 16777216.0, 3.4028234663852886e38, 1e-45])
def test_the_text_of_a_float_is_short_and_the_same_float(numbers: list[float]) -> None:
    texts = json_of(pa.array(numbers, FLOAT)).to_pylist()

    assert [np.float32(json.loads(text)) for text in texts] == [np.float32(number) for number in numbers]
    assert all(len(text) <= 15 for text in texts)


@settings(max_examples=200, deadline=None)
@given(typed_kinds.flatmap(lambda kind: st.tuples(st.just(kind), st.lists(typed_values(kind), min_size=1, max_size=4))))
def test_any_typed_column_is_json_that_other_parsers_read(drawn: tuple[pa.DataType, list[Any]]) -> None:
    kind, content = drawn

    found = json_of(pa.array(content, kind)).to_pylist()

    assert [text is None for text in found] == [value is None for value in content]
    for text, value in zip(found, content, strict=True):
        if text is not None:
            check_json(json.loads(text), value, kind)


def check_json(found: Any, value: Any, kind: pa.DataType) -> None:
    if value is None:
        assert found is None
    elif pa.types.is_struct(kind):
        for field in kind:
            check_json(found.get(field.name), value[field.name], field.type)
    elif pa.types.is_list(kind):
        for inner, item in zip(found, value, strict=True):
            check_json(inner, item, kind.value_type)
    elif pa.types.is_map(kind):
        assert list(found) == [key for key, _ in value]
        for key, item in value:
            check_json(found[key], item, kind.item_type)
    elif pa.types.is_decimal(kind):
        assert Decimal(found) == value
        assert "E" not in found
    elif isinstance(value, bytes):
        assert base64.b64decode(found) == value


@given(st.data(), st.integers(1, 76))
def test_decimals_are_the_shortest_bytes_of_their_number(data: st.DataObject, digits: int) -> None:
    most = 10**digits - 1
    near = [n for power in range(0, 250, 8) for n in (2**power - 1, 2**power, 2 ** max(0, power - 1)) if n <= most]
    number = st.integers(-most, most) | st.sampled_from(near) | st.sampled_from(near).map(lambda n: -n)
    numbers = data.draw(st.lists(st.none() | number, min_size=1, max_size=6))
    column = pa.array([None if n is None else Decimal(n) for n in numbers], decimal(digits, 0))
    start = data.draw(st.integers(0, len(numbers)))

    found = decimal_bytes(column.slice(start))

    found.validate(full=True)
    for value, number in zip(found.to_pylist(), numbers[start:], strict=True):
        length = 0 if number is None else max(1, (number if number >= 0 else ~number).bit_length() // 8 + 1)
        assert value == (None if number is None else number.to_bytes(length, "big", signed=True))
    again, outside = decimals_of(found, column.type)
    assert again.equals(pa.concat_arrays([column.slice(start)]))
    assert not outside.to_numpy(zero_copy_only=False).any()


@settings(deadline=None)
@given(typed_rows())
def test_the_text_of_any_typed_row_is_valid(rows: pa.RecordBatch) -> None:
    for column in rows.columns:
        text_of(column).validate(full=True)
        assert text_of(column).null_count == column.null_count
