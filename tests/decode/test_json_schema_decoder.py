"""Records of a JSON Schema: every value is in its column, and a value that does not fit makes its record bad."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3sink_job.decode import payload_columns
from s3sink_job.decode.json_schema_decoder import JsonSchemaDecoder
from s3sink_job.decode.record_bytes import Records
from s3sink_job.decode.settings import JsonSchemaOptions
from tests.decode.json_schema_samples import WRITERS, Kind, decoder, kinds, records, written

MORE = "_more"


def column(*values: bytes) -> pa.Array:
    return pa.array(values, pa.binary())


def decoded(by: JsonSchemaDecoder, *values: bytes) -> tuple[list[Any], dict[int, tuple[str, str]]]:
    found, faults = by.decode(column(*values))
    found.validate(full=True)
    assert found.type == by.type
    return found.to_pylist(), {row: tuple(fault) for row, fault in faults.items()}


def one(schema: Any, value: Any) -> Any:
    (found,), faults = decoded(decoder(schema), json.dumps(value).encode())
    assert not faults
    return found


def is_json(schema: Any) -> bool:
    return schema == {} or schema.get("type") == ["string", "integer"]


def as_expected(value: Any, schema: Any) -> Any:
    """A value of a column with text that holds JSON parsed, by the schema."""
    branches = [s for word in ("oneOf", "anyOf") for s in schema.get(word, []) if s != {"type": "null"}]
    if branches:
        return as_expected(value, branches[0])
    if value is None:
        return None
    plain = {name: inner for name, inner in schema.items() if name != "nullable"}
    if is_json(plain):
        return json.loads(value)
    if isinstance(value, list) and "items" in schema:
        # An array of anything is text as a whole only if it has no items.
        return [as_expected(item, schema["items"]) for item in value]
    if "properties" in schema:
        row = {name: as_expected(value[name], inner) for name, inner in schema["properties"].items()}
        return {**row, MORE: value[MORE] and json.loads(value[MORE])} if MORE in value else row
    if isinstance(schema.get("additionalProperties"), dict):
        if isinstance(value, str):
            return json.loads(value)
        return {name: as_expected(item, schema["additionalProperties"]) for name, item in value}
    return value


def stable(value: Any) -> str:
    """NaN and -0.0 do not come; instants are the same in any zone."""
    return repr(_instants(value))


def _instants(value: Any) -> Any:
    match value:
        case dict():
            return sorted((name, _instants(inner)) for name, inner in value.items())
        case list():
            return [_instants(item) for item in value]
        case datetime():
            return value.astimezone(UTC).replace(tzinfo=None)
        case float() if value == 0:
            return 0.0
        case _:
            return value


@settings(max_examples=60, deadline=None)
@given(data=st.data(), kind=records() | kinds(), how=WRITERS, few=st.sampled_from([0, 100]))
def test_each_value_is_in_its_column(data: st.DataObject, kind: Kind, how: dict[str, Any], few: int) -> None:
    values = data.draw(st.lists(kind.values, min_size=1, max_size=4))
    with patch.object(payload_columns, "FEW", few):
        found, faults = decoded(decoder(kind.schema), *written(values, how))

    assert not faults
    wanted = [None if value is None else kind.expected(value) for value in values]
    assert [stable(as_expected(row, kind.schema)) for row in found] == [stable(row) for row in wanted]


@settings(max_examples=60, deadline=None)
@given(data=st.data(), kind=records(), other=records(), how=WRITERS)
def test_columns_at_once_and_rows_alone_agree(
    data: st.DataObject, kind: Kind, other: Kind, how: dict[str, Any]
) -> None:
    """Also for records that do not fit: `verify` reads other batches than the flush did."""
    values = written(data.draw(st.lists(kind.values | other.values, min_size=1, max_size=4)), how)
    by = decoder(kind.schema)
    with patch.object(payload_columns, "FEW", 0):
        fast, faults = by.decode(column(*values))
    alone = [by.decode(column(value)) for value in values]

    assert fast.to_pylist() == [found[0].as_py() for found, _ in alone]
    assert {row: f.reason for row, f in faults.items()} == {
        row: bad[0].reason for row, (_, bad) in enumerate(alone) if bad
    }


ODD = [b'{"a":1}{"a":2}', b'{"a":1}\n{"a":2}', b"{}", b"", b" {} ", b"[1]", b"{", b'{"a":"\xff"}', b'{"\n":1}']


@settings(max_examples=80, deadline=None)
@given(data=st.data(), kind=records(), how=WRITERS, frame=st.binary(min_size=5, max_size=5))
def test_frames_in_front_of_records_change_nothing(
    data: st.DataObject, kind: Kind, how: dict[str, Any], frame: bytes
) -> None:
    """Whatever bytes a frame has, and whatever is behind it."""
    values = written(data.draw(st.lists(kind.values, min_size=1, max_size=20)), how)
    values += data.draw(st.lists(st.sampled_from(ODD), max_size=1))
    by, framed = decoder(kind.schema), column(*(frame + value for value in values))
    wanted, faults = by.decode(column(*values))
    found, found_faults = by.decode(framed, len(frame), Records(framed))

    found.validate(full=True)
    assert found.equals(wanted)
    assert found_faults == faults


NUMBERS = ["1.50", "1e2", "0.00001", "-0", "1e400", "12345678901234567890123", "0.1000000000000000055", "1.0", "100.00"]


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("rows", [1, 40])
def test_text_with_json_has_numbers_as_they_are_written(number: str, rows: int) -> None:
    by = decoder({"type": "object", "properties": {"a": {}}})
    record = b'{"a": [%s], "b": {"c": %s}}' % (number.encode(), number.encode())

    found, faults = decoded(by, *[record] * rows)

    as_is = number.lstrip("-") if number == "-0" else number
    assert (found, faults) == ([{"a": f"[{as_is}]", MORE: f'{{"b":{{"c":{as_is}}}}}'}] * rows, {})


@pytest.mark.parametrize(
    ("schema", "value", "why"),
    [
        ({"type": "integer"}, '"1"', "$.a is a string, and should be integer"),
        ({"type": "integer"}, "1.5", "$.a is a number with a fraction, and should be integer"),
        ({"type": "integer"}, "9223372036854775808", "$.a is a number that does not fit into int64"),
        ({"type": "integer"}, "1e999999999999", "$.a is a number that does not fit into int64"),
        ({"type": "integer"}, "true", "$.a is a boolean, and should be integer"),
        ({"type": "number"}, "9007199254740993", "$.a is a whole number that no double holds"),
        ({"type": "number"}, "1e400", "$.a is a number that does not fit into double"),
        ({"type": "number"}, '"NaN"', "$.a is a string, and should be number"),
        ({"type": "string"}, "1", "$.a is a number, and should be string"),
        ({"type": "boolean"}, "0", "$.a is a number, and should be boolean"),
        ({"type": "null"}, "0", "$.a is a number, and should be null"),
        ({"type": "array", "items": {"type": "integer"}}, '[1,{"b":2}]', "$.a[1] is an object, and should be integer"),
        ({"additionalProperties": {"type": "integer"}}, '{"k":"v"}', "$.a.k is a string, and should be integer"),
        ({"additionalProperties": False}, '{"k":1}', "$.a has the field 'k', which the schema does not have"),
        ({"type": "string", "format": "date"}, '"31.1.2026"', "$.a is a string that is no date like 2026-01-31"),
        ({"type": "string", "format": "date-time"}, '"2026-01-31T10:00:00"', "$.a is a string that is no date-time"),
        ({"type": "string", "format": "date-time"}, '"2026-01-31T10:00:00.1234567Z"', "is no date-time like"),
    ],
)
@pytest.mark.parametrize("neighbours", [0, 60])
def test_a_value_that_does_not_fit_makes_its_record_bad(schema: Any, value: str, why: str, neighbours: int) -> None:
    by = decoder({"type": "object", "properties": {"a": schema}})

    found, faults = decoded(by, *[b'{"a":null}'] * neighbours, f'{{"a":{value}}}'.encode())

    assert found == [{"a": None, MORE: None}] * neighbours + [None]
    assert list(faults) == [neighbours]
    assert faults[neighbours][0] == "SchemaMismatch"
    assert why in faults[neighbours][1]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "NotJson"),
        (b"{", "NotJson"),
        (b'{"a":1}{"a":2}', "NotJson"),
        (b'{"a":NaN}', "NotJson"),
        (b'{"a":1,}', "NotJson"),
        (b'{"a":"\\ud800"}', "NotJson"),
        (b"\xff", "NotUtf8"),
        (b'{"a":1,"a":1}', "FieldTwice"),
        (b"[1]", "SchemaMismatch"),
        (b'{"b":' + b"[" * 600 + b"]" * 600 + b"}", "TooDeep"),
        (b"[" * 100_000, "TooDeep"),
    ],
)
@pytest.mark.parametrize("neighbours", [0, 60])
def test_what_is_no_record_is_bad_and_its_neighbours_are_not(value: bytes, reason: str, neighbours: int) -> None:
    by = decoder({"type": "object", "properties": {"a": {"type": "integer"}}})

    found, faults = decoded(by, *[b'{"a":1}'] * neighbours, value)

    assert found == [{"a": 1, MORE: None}] * neighbours + [None]
    assert {row: f[0] for row, f in faults.items()} == {neighbours: reason}


def test_null_and_a_missing_property_are_null_in_any_column() -> None:
    by = decoder({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})

    assert decoded(by, b"{}", b'{"a":null}', b"null") == ([{"a": None, MORE: None}] * 2 + [None], {})


CONNECT = "org.apache.kafka.connect.data."
EPOCH = "1970-01-01 00:00:00"


@pytest.mark.parametrize(
    ("schema", "value", "wanted"),
    [
        ({"type": "integer", "connect.type": "int32", "title": f"{CONNECT}Date"}, 20000, "2024-10-04"),
        ({"type": "integer", "connect.type": "int32", "title": f"{CONNECT}Time"}, 3_600_001, "01:00:00.001000"),
        (
            {"type": "integer", "connect.type": "int64", "title": f"{CONNECT}Timestamp"},
            1,
            f"{EPOCH}.001000+00:00",
        ),
        ({"type": "integer", "connect.type": "int8"}, 7, "7"),
        ({"type": "number", "connect.type": "float32"}, 0.5, "0.5"),
        ({"type": "number", "connect.type": "float64"}, "NaN", "nan"),
        ({"type": "string", "connect.type": "bytes"}, "/wA=", "b'\\xff\\x00'"),
    ],
)
def test_types_of_connect_are_kept(schema: Any, value: Any, wanted: str) -> None:
    assert str(one(schema, value)) == wanted


@pytest.mark.parametrize("value", ["12.30", '"BM4="'])
@pytest.mark.parametrize("rows", [1, 40])
def test_decimals_of_connect_are_numbers_or_bytes(value: str, rows: int) -> None:
    decimal = {"type": "number", "title": f"{CONNECT}Decimal", "connect.type": "bytes"}
    schema = {"type": "object", "properties": {"a": {**decimal, "connect.parameters": {"scale": "2"}}, "b": {}}}

    found, faults = decoded(decoder(schema), *[f'{{"a":{value}}}'.encode()] * rows)

    assert (found, faults) == ([{"a": Decimal("12.30"), "b": None, MORE: None}] * rows, {})


@pytest.mark.parametrize("neighbours", [0, 60])
def test_times_have_letters_of_any_case_and_leave_out_minutes_as_the_page_says(neighbours: int) -> None:
    by = decoder({"type": "object", "properties": {"at": {"type": "string", "format": "date-time"}}})
    texts = ["2026-01-31t10:00:00z", "2026-01-31T10:00:00.5z", "2026-01-31 11:00:00+01:00", "2026-01-31T10Z"]
    texts += ["2026-01-31T11:00+0100", "2026-01-31T11:00:00+01"]
    ten = datetime(2026, 1, 31, 10, tzinfo=UTC)

    found, faults = decoded(by, *[b'{"at":null}'] * neighbours, *(json.dumps({"at": text}).encode() for text in texts))

    assert faults == {}
    assert [row["at"] for row in found[neighbours:]] == [ten, ten.replace(microsecond=500_000), *[ten] * 4]


@pytest.mark.parametrize(
    "text", ["2026-01-31T23:59:60Z", "2026-01-31T10:00:00tz", "2026-01-31", "2026-01-31T24:00:00Z"]
)
def test_other_times_are_bad_records(text: str) -> None:
    by = decoder({"type": "object", "properties": {"at": {"type": "string", "format": "date-time"}}})

    found, faults = decoded(by, json.dumps({"at": text}).encode(), b'{"at":"2026-01-31t10:00:00z"}')

    assert (list(faults), found[0]) == ([0], None)
    assert "$.at is a string that is no date-time like" in faults[0][1]
    assert found[1]["at"] is not None


def test_times_stay_text_where_the_manifest_wants_it() -> None:
    schema = {"type": "object", "properties": {"at": {"type": "string", "format": "date-time"}}}
    by = decoder(schema, JsonSchemaOptions(times_as_text=True))

    assert decoded(by, b'{"at":"2026-01-31T10:00:00.1234567"}') == (
        [{"at": "2026-01-31T10:00:00.1234567", MORE: None}],
        {},
    )
