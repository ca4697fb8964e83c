"""Connect's JSON: every value is in its own row with its type, and a bad record changes no other one."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3sink_job.columns.types import MAX_LEAVES
from s3sink_job.decode import connect_json, payload_columns
from s3sink_job.decode.connect_schema import BadSchema, connect_schema
from s3sink_job.decode.input_format import InputFormat
from s3sink_job.decode.payload_columns import PayloadReader
from tests.decode.connect import DATA, Kind, envelope, kinds, plain, rows_of, struct, structs
from tests.decode.inputs import batch_of_values, columns_of, opened_input

ID = {"field": "id", "type": "int32"}
NAME = {"field": "name", "type": "string", "optional": True}
DECIMAL = {"type": "bytes", "name": f"{DATA}Decimal", "parameters": {"scale": "2"}}


def record(*fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields), **more}


def wrapped(schema: Any, payload: Any) -> bytes:
    return json.dumps({"schema": schema, "payload": payload}).encode()


def decoded(
    *values: bytes | None, by: InputFormat | None = None
) -> tuple[list[dict[str, Any]], dict[int, tuple[str, str]]]:
    """The rows, and the bad ones with reason and message."""
    rows, faults = (by or opened_input("ConnectJson")).rows(batch_of_values(*values))
    rows.validate(full=True)
    assert rows.num_rows == len(values)
    return rows.to_pylist(), {row: tuple(fault) for row, fault in faults.items()}


def same(one: Any, other: Any) -> bool:
    """NaN is the same as NaN, and the order of fields does not count."""
    return repr(_ordered(one)) == repr(_ordered(other))


def _ordered(value: Any) -> Any:
    match value:
        case dict():
            return [(name, _ordered(value[name])) for name in sorted(value)]
        case list() | tuple():
            return [_ordered(item) for item in value]
        case datetime():
            return value.astimezone(UTC)
        case _:
            return value


def test_columns_have_the_types_of_the_schema() -> None:
    fields = [
        *({"field": name, "type": name} for name in ("int8", "int16", "int32", "int64", "float", "double", "boolean")),
        {"field": "text", "type": "string"},
        {"field": "raw", "type": "bytes"},
        {"field": "price", **DECIMAL},
        {"field": "day", "type": "int32", "name": f"{DATA}Date"},
        {"field": "time", "type": "int32", "name": f"{DATA}Time"},
        {"field": "at", "type": "int64", "name": f"{DATA}Timestamp"},
        {"field": "micros", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
        {"field": "tags", "type": "array", "items": {"type": "string"}},
        {"field": "counts", "type": "map", "keys": {"type": "string"}, "values": {"type": "int64"}},
        {"field": "by_id", "type": "map", "keys": {"type": "int32"}, "values": record(ID)},
    ]
    payload = {
        "int8": -128,
        "int16": 32767,
        "int32": 3,
        "int64": 2**63 - 1,
        "float": 0.5,
        "double": 1e300,
        "boolean": True,
        "text": "ä",
        "raw": "AP8=",
        "price": "BNI=",
        "day": 19723,
        "time": 3_600_001,
        "at": 1_700_000_000_123,
        "micros": 1_700_000_000_123_456,
        "tags": ["x"],
        "counts": {"a": 1},
        "by_id": [[7, {"id": 8}]],
    }

    opened = opened_input("ConnectJson")
    rows, bad = decoded(wrapped(record(*fields), payload), by=opened)

    assert bad == {}
    assert rows == [
        {
            **payload,
            "raw": b"\x00\xff",
            "price": Decimal("12.34"),
            "day": date(2024, 1, 1),
            "time": time(1, 0, 0, 1000),
            "at": datetime(2023, 11, 14, 22, 13, 20, 123000, UTC),
            "counts": [("a", 1)],
            "by_id": [("7", {"id": 8})],
        }
    ]
    assert {f.name: str(f.type) for f in columns_of(opened)} == {
        "int8": "int32",
        "int16": "int32",
        "int32": "int32",
        "int64": "int64",
        "float": "float",
        "double": "double",
        "boolean": "bool",
        "text": "string",
        "raw": "binary",
        "price": "decimal128(38, 2)",
        "day": "date32[day]",
        "time": "time32[ms]",
        "at": "timestamp[ms, tz=UTC]",
        "micros": "int64",
        "tags": "list<item: string>",
        "counts": "map<string, int64>",
        "by_id": "map<string, struct<id: int32>>",
    }


@settings(max_examples=150)
@given(st.data(), kinds | structs, st.sampled_from([0, 1000]))
def test_every_value_of_any_schema_is_found_in_its_row(data: st.DataObject, kind: Kind, few: int) -> None:
    values = data.draw(st.lists(kind.values, min_size=1, max_size=4))

    with patch.object(payload_columns, "FEW", few):
        rows, bad = decoded(*(envelope(kind, value) for value in values))

    assert bad == {}
    for row, value in zip(rows, values, strict=True):
        expected = dict.fromkeys(row) if value is None else rows_of(kind, value)
        assert same(row, expected)


@settings(max_examples=100)
@given(st.data(), kinds, kinds, st.sampled_from([0, 1000]))
def test_records_of_two_schemas_keep_their_order(data: st.DataObject, one: Kind, other: Kind, few: int) -> None:
    both = [struct({"one": one}), struct({"other": other})]
    turns = data.draw(st.lists(st.sampled_from(both), min_size=2, max_size=6))
    values = [data.draw(kind.values) for kind in turns]

    with patch.object(payload_columns, "FEW", few):
        rows, bad = decoded(*(envelope(kind, value) for kind, value in zip(turns, values, strict=True)))

    assert bad == {}
    for row, value in zip(rows, values, strict=True):
        assert same({name: row.get(name) for name in ("one", "other")}, {"one": None, "other": None, **value})


BAD = [
    b"",
    b"{",
    b"\xff",
    b"1",
    b"null",
    b"[]",
    b'{"schema":null}',
    b'{"payload":1}',
    b'{"schema":{"type":"int8"},"payload":1,"more":2}',
    b'{"schema":{"type":"int8"},"schema":{"type":"int8"},"payload":1}',
    b'{"schema":{"type":"int8"},"payload":1,"payload":2}',
    b'{"schema":{"type":"int8"},"payload":}',
    b'{"schema":{"type":"int8"},"payload":1}}',
    b'{"schema":{"type":"int8"},"payload":1} {"schema":{"type":"int8"},"payload":1}',
    b'{"schema":{"type":"int8"},"payload":128}',
    b'{"schema":{"type":"int8"},"payload":null}',
    b'{"schema":{"type":"double"},"payload":NaN}',
    b'{"schema":{"type":"nothing"},"payload":1}',
    b'{"schema":7,"payload":1}',
    b'{"schema":{"type":"string"},"payload":"\\ud800"}',
]


@settings(max_examples=100)
@given(st.data(), structs, st.sampled_from([0, 1000]))
def test_bad_records_do_not_affect_the_others(data: st.DataObject, kind: Kind, few: int) -> None:
    broken = st.sampled_from(BAD) | kind.values.map(lambda value: envelope(kind, value)[:-2])
    values = data.draw(st.lists(kind.values | broken, min_size=1, max_size=6))
    column = [value if isinstance(value, bytes) else envelope(kind, value) for value in values]

    with patch.object(payload_columns, "FEW", few):
        rows, bad = decoded(*column)

    assert sorted(bad) == [row for row, value in enumerate(values) if isinstance(value, bytes)]
    for row, value in zip(rows, values, strict=True):
        if not isinstance(value, bytes):
            assert same({name: row[name] for name in value}, value)


@pytest.mark.parametrize("value", BAD)
def test_text_and_columns_agree_on_what_is_an_envelope(value: bytes) -> None:
    good = wrapped({"type": "int8"}, 1)
    opened = opened_input("ConnectJson", "key")

    text, bad_text = opened.json(batch_of_values(good, value))
    _, bad_rows = opened.rows(batch_of_values(None, value))
    field = opened.fields(batch_of_values(good, value), {(): True}, unique_names=False)[()]

    assert list(bad_rows) == [1]
    assert text[0].as_py() == "1"
    assert field.rows()[0].as_py() == "1"
    if 1 in bad_text:
        assert bad_text[1] == bad_rows[1]
        assert field.faults[1] == bad_rows[1]
    else:
        assert bad_rows[1].reason == "SchemaMismatch" or "not one of Connect" in bad_rows[1].message


@pytest.mark.parametrize(
    ("value", "reason", "message"),
    [
        (
            b'{"a":1}',
            "NotConnectJson",
            'value is JSON without "schema" and "payload": set the producer\'s schemas.enable=true, or use format Json',
        ),
        (b"x", "NotJson", "value is not JSON: Expecting value"),
        (b"\xff", "NotUtf8", "value is not UTF-8: invalid start byte at byte 0"),
        (
            b'{"schema":null,"payload":1,"x":2}',
            "NotConnectJson",
            'value has the field \'x\' beside "schema" and "payload"',
        ),
        (b'{"schema":null,"payload":1,"payload":2}', "FieldTwice", "value has the field 'payload' twice"),
    ],
)
def test_a_value_that_is_no_envelope_says_what_to_do(value: bytes, reason: str, message: str) -> None:
    for found in (
        opened_input("ConnectJson").json(batch_of_values(value)),
        opened_input("ConnectJson").rows(batch_of_values(value)),
    ):
        assert found[1][0].reason == reason
        assert found[1][0].message.startswith(message)


@pytest.mark.parametrize(
    ("kind", "payload", "why"),
    [
        ({"type": "int32"}, 2**31, "$ is a number that does not fit into int32"),
        ({"type": "int32"}, 1.5, "$ is a number, and should be int32"),
        ({"type": "int32"}, True, "$ is a boolean, and should be int32"),
        ({"type": "string"}, 1, "$ is a number, and should be string"),
        ({"type": "bytes"}, "a", "$ is a string that is not base64, and should be bytes"),
        ({"type": "int32", "name": f"{DATA}Time"}, 86_400_000, "$ is a number that is not a time of day"),
        (DECIMAL, "", "$ has 0 bytes, and should be decimal128(38, 2)"),
        (DECIMAL, 0.123, "$ has more than 2 digits behind the point"),
        (DECIMAL, 1e40, "$ has too many digits for decimal128(38, 2)"),
        (DECIMAL, "12.50", "$ is a string that is not base64"),
        (DECIMAL, True, "$ is a boolean, and should be decimal128(38, 2)"),
        (record(ID), {}, "$.id is null or missing, and is not optional"),
        (record(ID), {"id": 1, "x": 1}, "$ has the field 'x', which the schema does not have"),
        (record(ID), [], "$ is an array, and should be struct"),
        ({"type": "array", "items": record(ID)}, [{"id": 1}, {"id": "x"}], "$[1].id is a string"),
        ({"type": "map", "keys": {"type": "string"}, "values": {"type": "int8"}}, {"k": "x"}, "$.k is a string"),
        ({"type": "map", "keys": {"type": "string"}, "values": {"type": "int8"}}, [], "$ is an array"),
        ({"type": "map", "keys": {"type": "int8"}, "values": {"type": "int8"}}, {}, "$ is an object"),
        ({"type": "map", "keys": {"type": "int8"}, "values": {"type": "int8"}}, [[1]], "$[0] is an array"),
        ({"type": "map", "keys": {"type": "int8"}, "values": {"type": "int8"}}, [[None, 1]], "$[0] has no key"),
    ],
)
@pytest.mark.parametrize("few", [0, 1000])
def test_a_payload_that_does_not_fit_its_schema_is_named_by_path(kind: Any, payload: Any, why: str, few: int) -> None:
    with patch.object(payload_columns, "FEW", few):
        _, bad = decoded(wrapped(kind, payload), wrapped({**kind, "optional": True}, None))

    assert list(bad) == [0]
    assert bad[0][0] == "SchemaMismatch"
    assert bad[0][1].startswith(f"value does not fit its own schema: {why}")


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({}, "$ has no type"),
        ([], "$ has no type"),
        ({"type": "date"}, "$ has the unknown type 'date'"),
        ({"type": "struct"}, "$ is a struct without fields"),
        ({"type": "array"}, "$.items has no type"),
        (record(ID, ID), "$ has the field 'id' twice"),
        (record({"type": "int32"}), "$.fields[0] has no name"),
        ({"type": "bytes", "name": f"{DATA}Decimal"}, "$ is a Decimal without a whole number as parameters.scale"),
        (record({"field": "d", **DECIMAL, "parameters": {"scale": "99"}}), "$.d is a Decimal of scale 99"),
    ],
)
def test_a_schema_that_is_none_is_named_by_path(schema: Any, why: str) -> None:
    with pytest.raises(BadSchema) as error:
        connect_schema(json.dumps(schema))
    assert str(error.value).startswith(why)

    _, bad = decoded(wrapped(schema, 1))
    assert bad[0][0] == "NotConnectJson"


def test_a_schema_nested_without_end_is_a_bad_record() -> None:
    schema: Any = {"type": "int8"}
    for _ in range(100):
        schema = {"type": "array", "items": schema}

    _, bad = decoded(wrapped(schema, []))

    assert "nested more than" in bad[0][1]


def test_a_key_that_is_not_a_struct_is_one_column() -> None:
    assert decoded(wrapped({"type": "string"}, "x"), None) == ([{"value": "x"}, {"value": None}], {})


def test_a_null_payload_is_a_row_of_nulls() -> None:
    values = [wrapped(record(ID, optional=True), None), wrapped(None, None), None, wrapped(record(ID), {"id": 1})]

    assert decoded(*values) == ([{"id": None}, {"id": None}, {"id": None}, {"id": 1}], {})
    assert opened_input("ConnectJson").json(batch_of_values(*values))[0].to_pylist() == [
        "null",
        "null",
        None,
        '{"id": 1}',
    ]


def test_a_default_stands_for_what_is_missing_but_not_for_an_optional_null() -> None:
    required = {"field": "a", "type": "int32", "default": 7}
    nullable = {"field": "b", "type": "int32", "default": 8, "optional": True}
    for few in (0, 1000):
        with patch.object(payload_columns, "FEW", few):
            rows, bad = decoded(wrapped(record(required, nullable), {}), wrapped(record(required, nullable), {"a": 1}))
        assert (rows, bad) == ([{"a": 7, "b": None}, {"a": 1, "b": None}], {})


def test_payloads_without_a_schema_have_inferred_types() -> None:
    rows, bad = decoded(wrapped(None, {"a": 1, "n": None}), wrapped(None, {"a": 1.5}), wrapped(None, "x"))

    assert bad == {}
    assert rows == [{"a": 1.0, "value": None}, {"a": 1.5, "value": None}, {"a": None, "value": "x"}]


def test_a_payload_without_a_schema_that_fits_no_column_is_the_only_bad_one() -> None:
    opened = opened_input("ConnectJson", known=pa.struct([("a", pa.int64())]))
    values = [wrapped(None, {"a": n}) for n in range(20)]
    values[7] = wrapped(None, {"a": "x"})

    rows, bad = decoded(*values, by=opened)

    assert list(bad) == [7]
    assert bad[7][0] == "SchemaIncompatible"
    assert [row["a"] for row in rows] == [None if n == 7 else n for n in range(20)]


def test_new_fields_and_wider_numbers_are_taken_in_any_order() -> None:
    one = record(ID, {"field": "x", "type": "float"})
    two = record({"field": "id", "type": "int64"}, {"field": "x", "type": "double"}, NAME)
    opened = opened_input("ConnectJson", known=pa.struct([("old", pa.string())]))
    values = [wrapped(one, {"id": 1, "x": 0.5}), wrapped(two, {"id": 2**40, "x": 0.1, "name": "n"})] * 2

    rows, bad = decoded(*values, by=opened)

    wide = pa.struct([("old", pa.string()), ("id", pa.int64()), ("x", pa.float64()), ("name", pa.string())])
    assert bad == {}
    assert columns_of(opened).equals(wide)
    first = {"old": None, "id": 1, "x": 0.5, "name": None}
    assert rows == [first, {"old": None, "id": 2**40, "x": 0.1, "name": "n"}] * 2
    assert decoded(values[0], by=opened) == ([first], {}), "columns never narrow"


def test_a_type_that_does_not_fit_the_known_column_names_both_types() -> None:
    inner = {"field": "in", **record({"field": "a", "type": "string"})}
    opened = opened_input("ConnectJson", known=pa.struct([("in", pa.struct([("a", pa.int32())]))]))
    fine = {"field": "in", **record({"field": "a", "type": "int16"})}

    rows, bad = decoded(wrapped(record(inner), {"in": {"a": "x"}}), wrapped(record(fine), {"in": {"a": 1}}), by=opened)

    assert rows == [{"in": None}, {"in": {"a": 1}}]
    assert list(bad) == [0]
    assert bad[0] == (
        "SchemaIncompatible",
        "value does not fit the known columns: field 'in.a' was int32 and is now string, and no type holds both",
    )


def test_text_is_the_payload_on_one_line_with_every_digit() -> None:
    payload = '{"a": 1.50,\n "b": 0.1234567890123456789012}'
    values = batch_of_values(f'{{"schema":null, "payload":\r\n {payload} }}\n'.encode(), None)

    for found in (opened_input("ConnectJson").json(values), opened_input("ConnectJson").plain(values)):
        assert found[0].to_pylist() == [payload.replace("\n", " "), None]
        assert found[1] == {}


@pytest.mark.parametrize(
    "value",
    [
        '{"schema":{"type":"int8"},"payload":5}',
        ' {\n "schema" : {"type":"int8"} ,\n "payload" : 5 \n} ',
        '{"payload":5,"schema":{"type":"int8"}}',
        '{ "payload" : 5 , "schema": {"type":"int8"} }',
        '{"payload":5,"schema" :{"type":"int8"}}',
        '{"sch\\u0065ma":{"type":"int8"},"p\\u0061yload":5}',
        '{"schema":{"type":"int8","parameters":{"payload":"x"}},"payload":5}',
        '{"schema":{"type":"int8","doc":"\\"payload\\":,"},"payload":5}',
    ],
)
def test_an_envelope_is_read_however_it_is_written(value: str) -> None:
    values = (value.encode(), wrapped({"type": "int8"}, 6))

    assert decoded(*values) == ([{"value": 5}, {"value": 6}], {})
    assert opened_input("ConnectJson").json(batch_of_values(*values))[0].to_pylist() == ["5", "6"]


def test_folders_use_fields_of_the_payload() -> None:
    schema = record(ID, NAME)
    values = batch_of_values(
        wrapped(schema, {"id": 1, "name": "x"}), None, b"{}", wrapped(schema, {"id": 2, "name": None})
    )

    found = opened_input("ConnectJson").fields(values, {("id",): True, ("name",): True}, unique_names=False)

    assert found["id",].rows().to_pylist() == ["1", None, None, "2"]
    assert found["name",].rows().to_pylist() == ["x", None, None, None]
    assert {row: fault.reason for row, fault in found["id",].faults.items()} == {2: "NotConnectJson"}


def test_the_whole_payload_is_a_folder_only_if_it_is_primitive() -> None:
    values = batch_of_values(wrapped({"type": "string"}, "k"), wrapped(record(ID), {"id": 1}))

    found = opened_input("ConnectJson", "key").fields(values, {(): True}, unique_names=False)[()]

    assert found.rows()[0].as_py() == "k"
    assert found.faults[1].reason == "NotAScalar"


def whole_batch(size: int) -> list[bytes]:
    counts = {"field": "counts", "type": "map", "keys": {"type": "string"}, "values": {"type": "int32"}}
    schema = record(ID, {"field": "price", **DECIMAL}, counts, NAME)
    payloads = ({"id": n, "price": "BNI=", "counts": {"a": n, f"k{n}": 1}, "name": f"n{n}"} for n in range(size))
    return [wrapped(schema, payload) for payload in payloads]


@pytest.mark.parametrize("bad", [0, 1])
def test_one_bad_record_makes_only_its_neighbours_slow(bad: int) -> None:
    values = whole_batch(1600)
    values[800 : 800 + bad] = [values[800].replace(b'"BNI="', b'"?"')] * bad

    with patch.object(PayloadReader, "one_by_one", autospec=True, side_effect=PayloadReader.one_by_one) as slow:
        rows, found = decoded(*values)

    assert list(found) == [800] * bad
    assert sum(len(call.args[1]) for call in slow.call_args_list) == 100 * bad
    assert rows[1599]["counts"] == [("a", 1599), ("k1599", 1)]


def test_decimals_as_numbers_are_read_as_fast_as_those_as_bytes() -> None:
    schema = json.dumps(record({"field": "d", **DECIMAL}))
    values = [f'{{"schema":{schema},"payload":{{"d":{n}12345678901234567890.25}}}}'.encode() for n in range(1, 100)]

    with patch.object(PayloadReader, "one_by_one", side_effect=AssertionError):
        rows, bad = decoded(*values)

    assert bad == {}
    assert rows[6]["d"] == Decimal("712345678901234567890.25")


def test_a_decimal_of_digits_in_base64_is_not_taken_for_a_number() -> None:
    values = [wrapped(DECIMAL, 5)] * 20 + [wrapped(DECIMAL, "1250")] + [wrapped(DECIMAL, 5)] * 20

    rows, bad = decoded(*values)

    assert bad == {}
    assert rows[20]["value"] == Decimal(int.from_bytes(b"\xd7\x6e\x74", "big", signed=True)).scaleb(-2)
    assert rows[40]["value"] == Decimal("5.00")


def test_ten_thousand_schemas_in_a_batch_stay_bounded() -> None:
    values = [wrapped(record(ID, version=n), {"id": n}) for n in range(10_000)]
    with patch.object(connect_json, "KEPT_SCHEMAS", 50_000):
        opened = opened_input("ConnectJson")

    rows, bad = decoded(*values, by=opened)

    assert bad == {}
    assert [row["id"] for row in rows] == list(range(10_000))
    assert sum(map(len, opened._readers._kept)) <= 50_000


def test_ten_thousand_schemas_with_other_fields_do_not_make_as_many_columns() -> None:
    values = [wrapped(record({"field": f"f{n}", "type": "int32"}), {f"f{n}": n}) for n in range(10_000)]

    rows, faults = opened_input("ConnectJson").rows(batch_of_values(*values))

    assert rows.num_columns == MAX_LEAVES
    assert sorted(faults) == list(range(MAX_LEAVES, 10_000))
    assert faults[5000].reason == "TooManyColumns"
    assert rows.column("f999").to_pylist()[999] == 999


def test_a_single_schema_may_have_more_columns() -> None:
    kind = struct({f"f{n}": plain("int32", st.none()) for n in range(MAX_LEAVES + 1)})

    rows, bad = decoded(envelope(kind, {f"f{n}": n for n in range(MAX_LEAVES + 1)}))

    assert bad == {}
    assert rows[0][f"f{MAX_LEAVES}"] == MAX_LEAVES


def test_maps_with_other_keys_than_text_have_text_keys_in_every_flush() -> None:
    numbers = {"field": "m", "type": "map", "keys": {"type": "int32"}, "values": {"type": "int32"}}
    opened = opened_input("ConnectJson")
    assert decoded(wrapped(record(numbers), {"m": [[1, 2]]}), by=opened) == ([{"m": [("1", 2)]}], {})
    later = opened_input("ConnectJson", known=opened.schema)
    assert decoded(wrapped(record(numbers), {"m": [[3, 4]]}), by=later) == ([{"m": [("3", 4)]}], {})
