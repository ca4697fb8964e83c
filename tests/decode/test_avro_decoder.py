"""Avro records as columns: every value is the one that fastavro reads, by both ways of reading."""

from __future__ import annotations

import datetime
import decimal
import json
import uuid
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from s3sink_job.decode import avro_columns
from s3sink_job.decode.avro_columns import read_columns, reader_of
from s3sink_job.decode.avro_decoder import AvroDecoder
from s3sink_job.decode.avro_rows import NotAvro, read_row
from s3sink_job.decode.avro_schema import InvalidSchema, parse_schema
from s3sink_job.decode.avro_types import plain_type
from s3sink_job.decode.writer_schemas import WriterSchema
from tests.decode.avro_samples import read_by_fastavro, records, samples, signed, writer_schema, written

MANY = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))


def column_of(*values: bytes) -> pa.Array:
    return pa.array(values, pa.binary())


def decoded(schema: Any, *values: Any) -> list[Any]:
    found, faults = AvroDecoder(writer_schema(schema)).decode(column_of(*written(schema, *values)))
    assert not faults
    found.validate(full=True)
    return list(found.to_pylist())


def field(kind: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": "f", "type": kind}]}


@MANY
@given(st.data())
def test_both_ways_of_reading_give_the_values_that_were_written(data: st.DataObject) -> None:
    sample = data.draw(records() | samples())
    values = data.draw(st.lists(sample.values, max_size=8))
    raw = [b"\x00" * 5 + one for one in written(sample.schema, *values)]
    schema = parse_schema(writer_schema(sample.schema))
    reader = reader_of(schema.root)
    assert reader is not None
    columns, alone = read_columns(reader, column_of(*raw), 5)
    assert not alone.any()
    columns.validate(full=True)
    assert columns.type.equals(plain_type(schema.root))
    one_by_one = pa.array([read_row(schema, one[5:]) for one in raw], plain_type(schema.root))
    assert columns.to_pylist() == one_by_one.to_pylist()
    assert [plain(row, sample.schema) for row in columns.to_pylist()] == values


def plain(value: Any, schema: Any) -> Any:
    """A value of a column as fastavro has it: one branch of a union instead of all, and maps as dicts."""
    if isinstance(schema, list):
        others = [branch for branch in schema if branch != "null"]
        if len(others) == 1 or value is None:
            return None if value is None else plain(value, others[0])
        name, inner = next((name, inner) for name, inner in value.items() if inner is not None)
        return plain(inner, next(b for b in others if b == name))
    kind = schema["type"] if isinstance(schema, dict) else schema
    match kind:
        case "record":
            return {f["name"]: plain(value[f["name"]], f["type"]) for f in schema["fields"]}
        case "array":
            return [plain(item, schema["items"]) for item in value]
        case "map":
            return {key: plain(item, schema["values"]) for key, item in value}
    return value


@MANY
@given(st.data())
def test_logical_types_mean_what_fastavro_says(data: st.DataObject) -> None:
    schema, values, expected = data.draw(st.sampled_from(LOGICAL))
    chosen = data.draw(st.lists(values, max_size=5))
    found = [row["f"] for row in decoded(field(schema), *({"f": value} for value in chosen))]
    raw = written(field(schema), *({"f": value} for value in chosen))
    assert found == [expected(read_by_fastavro(field(schema), one)["f"]) for one in raw]


MILLIS = st.integers(-62_135_596_800_000, 253_402_300_799_000)
LOGICAL = [
    ({"type": "int", "logicalType": "date"}, st.integers(-700_000, 2_900_000), lambda v: v),
    ({"type": "int", "logicalType": "time-millis"}, st.integers(0, 86_399_999), lambda v: v),
    ({"type": "long", "logicalType": "time-micros"}, st.integers(0, 86_399_999_999), lambda v: v),
    ({"type": "long", "logicalType": "timestamp-millis"}, MILLIS, lambda v: v),
    ({"type": "long", "logicalType": "timestamp-micros"}, MILLIS.map(lambda n: n * 1000), lambda v: v),
    ({"type": "long", "logicalType": "local-timestamp-millis"}, MILLIS, lambda v: v),
    ({"type": "long", "logicalType": "local-timestamp-micros"}, MILLIS.map(lambda n: n * 1000), lambda v: v),
    ({"type": "string", "logicalType": "uuid"}, st.uuids().map(str), str),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 4},
        st.integers(-(10**20) + 1, 10**20 - 1).map(lambda n: signed(n, 12)),
        lambda v: v,
    ),
    (
        {"type": "fixed", "name": "D", "size": 16, "logicalType": "decimal", "precision": 38, "scale": 38},
        st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: signed(n, 16)),
        lambda v: v,
    ),
]


def test_types_without_a_counterpart_in_python_are_exact() -> None:
    nanos = {"type": "long", "logicalType": "timestamp-nanos"}
    column, _ = AvroDecoder(writer_schema(field(nanos))).decode(column_of(*written(field(nanos), {"f": -(2**63)})))
    assert column.field(0).cast(pa.int64()).to_pylist() == [-(2**63)]
    duration = {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}
    raw = b"\x01\x00\x00\x00\x02\x00\x00\x00\xff\xff\xff\xff"
    assert decoded(field(duration), {"f": raw}) == [{"f": {"months": 1, "days": 2, "milliseconds": 2**32 - 1}}]
    given_id = uuid.UUID("12345678-9abc-def0-1234-56789abcdef0")
    kind = ["null", {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}]
    assert decoded(field(kind), {"f": given_id.bytes}, {"f": None}) == [{"f": str(given_id)}, {"f": None}]
    wide = {"type": "bytes", "logicalType": "decimal", "precision": 90, "scale": 3}
    assert decoded(field(wide), {"f": signed(-(10**80), 40)}) == [{"f": f"-1{'0' * 77}.000"}]


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 3}, pa.binary()),
        ({"type": "bytes", "logicalType": "decimal"}, pa.binary()),
        ({"type": "string", "logicalType": "date"}, pa.string()),
        ({"type": "int", "logicalType": "made-up"}, pa.int32()),
        ({"type": "fixed", "name": "F", "size": 3, "logicalType": "uuid"}, pa.binary(3)),
    ],
)
def test_a_logical_type_that_does_not_hold_is_left_out(schema: Any, kind: pa.DataType) -> None:
    assert AvroDecoder(writer_schema(field(schema))).type.field("f").type.equals(kind)


def test_a_union_of_several_types_is_a_struct_with_one_field_set() -> None:
    schema = field(
        ["null", "int", "string", {"type": "record", "name": "a.b.C", "fields": [{"name": "x", "type": "int"}]}]
    )
    rows = decoded(schema, {"f": 1}, {"f": "t"}, {"f": {"x": 2}}, {"f": None})
    assert rows == [
        {"f": {"int": 1, "string": None, "C": None}},
        {"f": {"int": None, "string": "t", "C": None}},
        {"f": {"int": None, "string": None, "C": {"x": 2}}},
        {"f": None},
    ]


def test_a_recursive_record_is_json_inside() -> None:
    node = {
        "type": "record",
        "name": "N",
        "fields": [{"name": "v", "type": "bytes"}, {"name": "next", "type": ["null", "N"]}],
    }
    deep = {"v": b"\x01", "next": {"v": b"\x02", "next": {"v": b"\x03", "next": None}}}
    rows = decoded(node, deep, {"v": b"", "next": None})
    assert json.loads(rows[0]["next"]) == {"v": "Ag==", "next": {"v": "Aw==", "next": None}}
    assert rows[1] == {"v": b"", "next": None}


def test_schemas_may_refer_to_others() -> None:
    inner = {"type": "record", "name": "a.Inner", "fields": [{"name": "x", "type": "int"}]}
    middle = {"type": "record", "name": "a.Middle", "fields": [{"name": "inner", "type": "a.Inner"}]}
    outer = {
        "type": "record",
        "name": "Outer",
        "fields": [{"name": "one", "type": "a.Middle"}, {"name": "two", "type": "a.Inner"}],
    }
    found, faults = AvroDecoder(writer_schema(outer, inner, middle)).decode(column_of(b"\x02\x04"))
    assert not faults
    assert found.to_pylist() == [{"one": {"inner": {"x": 1}}, "two": {"x": 2}}]


@pytest.mark.parametrize(
    "text", ["", "{", "[]x", '{"type": "record"}', '{"type": "Nobody"}', '"Nobody"', "7", '{"type":"enum","name":"E"}']
)
def test_a_text_that_is_no_schema_is_refused_in_words(text: str) -> None:
    with pytest.raises(InvalidSchema, match="not an Avro schema"):
        AvroDecoder(WriterSchema("AVRO", text))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "fixed", "name": "F", "size": 0},
        {"type": "fixed", "name": "F", "size": -1},
        {"type": "fixed", "name": "F", "size": 2**40},
        {"type": "fixed", "name": "F", "size": "4"},
        {"type": "enum", "name": "E", "symbols": []},
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}, {"name": "a", "type": "long"}]},
        {"type": "record", "name": "R", "fields": [{"name": "\ud800", "type": "int"}]},
        ["string", {"type": "string", "logicalType": "uuid"}],
    ],
    ids=str,
)
def test_a_schema_that_no_column_can_hold_is_refused_in_words(schema: Any) -> None:
    with pytest.raises(InvalidSchema, match="not an Avro schema"):
        AvroDecoder(writer_schema(schema))


def test_a_logical_type_that_is_no_name_is_left_out() -> None:
    assert AvroDecoder(writer_schema({"type": "int", "logicalType": ["date"]})).type == pa.int32()
    huge = {"type": "bytes", "logicalType": "decimal", "precision": 1_000_001, "scale": 1_000_000}
    assert AvroDecoder(writer_schema(huge)).type == pa.binary()


def test_a_small_schema_cannot_become_a_huge_one() -> None:
    """Each record has the one before it twice."""
    kind: Any = "int"
    text = [{"type": "record", "name": "R0", "fields": [{"name": "x", "type": kind}]}]
    for level in range(1, 40):
        fields = [{"name": name, "type": f"R{level - 1}"} for name in ("a", "b")]
        text.append({"type": "record", "name": f"R{level}", "fields": fields})
    with pytest.raises(InvalidSchema, match="100000 types"):
        AvroDecoder(writer_schema(text[-1], *text[:-1]))


def test_records_that_hold_each_other_are_read() -> None:
    def fields(*names: str) -> list[Any]:
        return [{"name": name.lower(), "type": ["null", name], "default": None} for name in names]

    one = {"type": "record", "name": "A", "fields": fields("B")}
    text = json.dumps(one).replace('"B"', json.dumps({"type": "record", "name": "B", "fields": fields("A")}))
    (row,) = decoded(json.loads(text), {"b": {"a": {"b": None}}})
    assert json.loads(row["b"]["a"]) == {"b": None}


def test_a_map_key_that_is_not_text_is_the_only_bad_record() -> None:
    schema = {"type": "map", "values": "string"}
    good = written(schema, {"k": "v"})[0]
    found, faults = AvroDecoder(writer_schema(schema)).decode(column_of(good, b"\x02\x02\xff\x02b\x00", good))
    assert set(faults) == {1}
    assert found.to_pylist() == [[("k", "v")], None, [("k", "v")]]


def test_a_decimal_of_thousands_of_digits_is_a_bad_record() -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 100, "scale": 0}
    raw = written(field(kind), {"f": b"\x7f" * 2_000}, {"f": b"\x07"})
    found, faults = AvroDecoder(writer_schema(field(kind))).decode(column_of(*raw))
    assert set(faults) == {0}
    assert found.to_pylist() == [{"f": None}, {"f": "7"}]


@MANY
@given(st.data())
def test_a_bad_record_never_changes_its_neighbours(data: st.DataObject) -> None:
    """Any bytes may be in a record: it is bad, or it has a value that both ways of reading agree on."""
    sample = data.draw(records())
    good = written(sample.schema, *data.draw(st.lists(sample.values, min_size=1, max_size=4)))
    other = data.draw(st.binary(max_size=30) | st.sampled_from(good).flatmap(_damaged))
    at = data.draw(st.integers(0, len(good)))
    raw = [*good[:at], other, *good[at:]]
    decoder = AvroDecoder(writer_schema(sample.schema))
    expected, _ = decoder.decode(column_of(*good))
    found, faults = decoder.decode(column_of(*raw))
    found.validate(full=True)
    assert not set(faults) - {at}
    assert found.take(pa.array([row for row in range(len(raw)) if row != at])).equals(expected)
    try:
        read_row(parse_schema(writer_schema(sample.schema)), other)
    except NotAvro:
        assert at in faults
    else:
        alone, _ = decoder.decode(column_of(other))
        assert str(found.slice(at, 1)) == str(alone)


def _damaged(value: bytes) -> st.SearchStrategy[bytes]:
    cut = st.integers(0, len(value)).map(lambda n: value[:n])
    longer = st.binary(min_size=1, max_size=3).map(lambda more: value + more)
    changed = st.tuples(st.integers(0, max(0, len(value) - 1)), st.integers(0, 255)).map(
        lambda change: value[: change[0]] + bytes([change[1]]) + value[change[0] + 1 :]
    )
    return cut | longer | changed


@pytest.mark.parametrize(
    ("schema", "raw", "why"),
    [
        ("string", b"\x0aab", "ends within $: it was cut, or was written by another schema"),
        ("string", b"", "ends within $"),
        ("string", b"\x01", "has the length -1 at $"),
        ("string", b"\x02\xff", "has text at $ that is not UTF-8"),
        ({"type": "map", "values": "int"}, b"\x02\x02\xff\x02\x00", "has text at $ that is not UTF-8"),
        ("int", b"\x02\x02", "has 1 bytes behind its last field"),
        ("int", b"\xff\xff\xff\xff\xff\x01", "which has 32 bits"),
        ("long", b"\xff" * 11, "has a number of more than 64 bits at $"),
        ("long", b"\xff" * 9 + b"\x02", "has a number of more than 64 bits at $"),
        ("boolean", b"\x02", "has the byte 2 for a boolean at $"),
        (["null", "int"], b"\x04", "has number 2 for a branch of a union at $, which has 2"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x02", "has number 1 for a symbol at $"),
        (field({"type": "array", "items": "string"}), b"\x04\x02a\x04b", "ends within $.f[1]"),
        (field({"type": "array", "items": "null"}), b"\xfe\xff\xff\xff\x0f\x00", "more than it has bytes"),
        ({"type": "array", "items": "null"}, b"\xc0\x84\x3d" * 3000 + b"\x00", "more than it has bytes"),
        ({"type": "int", "logicalType": "time-millis"}, b"\x01", "a time beyond a day"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 0},
            b"\x02\x64",
            "more digits than it has",
        ),
    ],
)
def test_what_is_wrong_with_a_record_is_said_with_its_place(schema: Any, raw: bytes, why: str) -> None:
    _, faults = AvroDecoder(writer_schema(schema)).decode(column_of(raw))
    assert set(faults) == {0}
    assert faults[0].reason == "InvalidAvro"
    assert why in faults[0].message


def test_a_very_long_list_is_read_and_costs_the_others_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = field({"type": "array", "items": ["null", "string"]})
    rows = [{"f": ["a", None]}, {"f": [str(n) for n in range(5_000)]}, {"f": []}]
    assert decoded(schema, *rows) == rows
    steps = 0
    read = avro_columns._List.read_items

    def counted(self: Any, cursor: Any) -> Any:
        nonlocal steps
        steps += 1
        return read(self, cursor)

    monkeypatch.setattr(avro_columns._List, "read_items", counted)
    decoded(schema, *rows)
    assert steps <= avro_columns.LONG_LIST


def test_lists_in_several_blocks_are_one_list() -> None:
    decoder = AvroDecoder(writer_schema({"type": "array", "items": "int"}))
    found, faults = decoder.decode(column_of(b"\x02\x02\x01\x02\x04\x00", b"\x00", b"\x02\x06\x02\x08\x00"))
    assert not faults
    assert found.to_pylist() == [[1, 2], [], [3, 4]]


def test_slices_of_a_batch_are_read_where_they_begin() -> None:
    raw = column_of(*written("string", "a", "bb", "ccc", "dddd"))
    found, faults = AvroDecoder(writer_schema("string")).decode(raw.slice(1, 2))
    assert not faults
    assert found.to_pylist() == ["bb", "ccc"]


def test_dates_and_decimals_become_columns_of_their_type() -> None:
    schema = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "d", "type": {"type": "int", "logicalType": "date"}},
            {"name": "n", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}]},
            {"name": "l", "type": {"type": "array", "items": {"type": "long", "logicalType": "timestamp-millis"}}},
            {"name": "m", "type": {"type": "map", "values": {"type": "int", "logicalType": "time-millis"}}},
        ],
    }
    row = {"d": -1, "n": signed(-123, 1), "l": [0, 1], "m": {"k": 1}}
    (found,) = decoded(schema, row)
    assert found == {
        "d": datetime.date(1969, 12, 31),
        "n": decimal.Decimal("-1.23"),
        "l": [datetime.datetime(1970, 1, 1, 0, 0, 0, n * 1000, datetime.UTC) for n in (0, 1)],
        "m": [("k", datetime.time(0, 0, 0, 1000))],
    }
