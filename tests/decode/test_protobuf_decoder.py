"""Protobuf records as columns: every value is the one that Google's runtime reads, by both ways of reading."""

from __future__ import annotations

import logging
import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message import DecodeError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from s3sink_job.decode.proto_columns import RecordReader
from s3sink_job.decode.proto_decoder import MOST_NAMED
from s3sink_job.decode.proto_files import link, message_at
from s3sink_job.decode.proto_rows import read_row
from s3sink_job.decode.proto_types import column_type, parse_message
from s3sink_job.decode.record_bytes import Records
from tests.decode.proto_samples import (
    SchemaMaker,
    as_read,
    decoder,
    filled,
    message_class,
    plain_row,
    schema_of,
    varint,
)

MANY = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
SEEDS = st.integers(0, 2**32)


def column_of(*values: bytes) -> pa.Array:
    return pa.array(values, pa.binary())


def written(text: str, **fields: Any) -> bytes:
    return bytes(message_class(schema_of(text))(**fields).SerializeToString())


def rows_of(column: pa.Array) -> list[Any]:
    column.validate(full=True)
    return [plain_row(row) for row in column]


@MANY
@given(SEEDS, st.integers(0, 8))
def test_both_ways_of_reading_give_the_values_that_were_written(seed: int, count: int) -> None:
    schema, chance = schema_of(SchemaMaker(seed).text()), random.Random(seed)
    made = message_class(schema)
    messages = [filled(made(), chance) for _ in range(count)]
    raw = [message.SerializeToString() for message in messages]
    parsed = parse_message(message_at(link(schema), (0,)))
    records = Records(column_of(*(b"12345" + one for one in raw)))
    columns, alone = RecordReader(parsed).read(records, records.bounds[:-1] + 5, Counter())
    assert not alone.any()
    assert columns.type.equals(column_type(parsed.root))
    one_by_one = pa.array([read_row(parsed, one, Counter()) for one in raw], columns.type)
    assert rows_of(one_by_one) == rows_of(columns)
    assert [as_read(message) for message in messages] == rows_of(columns)


@MANY
@given(SEEDS, st.integers(1, 5))
def test_parts_of_a_message_in_any_order_are_merged_as_google_does(seed: int, count: int) -> None:
    schema, chance = schema_of(SchemaMaker(seed).text()), random.Random(seed)
    made = message_class(schema)
    raw = [
        b"".join(filled(made(), chance).SerializeToString() for _ in range(chance.choice([1, 2, 3])))
        for _ in range(count)
    ]
    found, faults = decoder(schema).decode(column_of(*raw))
    assert not faults
    assert [as_read(made.FromString(one)) for one in raw] == rows_of(found)


@MANY
@given(SEEDS, st.data())
def test_a_damaged_record_never_changes_its_neighbours(seed: int, data: st.DataObject) -> None:
    schema, chance = schema_of(SchemaMaker(seed).text()), random.Random(seed)
    made = message_class(schema)
    good = [filled(made(), chance) for _ in range(3)]
    raw = [message.SerializeToString() for message in good]
    damaged = data.draw(st.binary(max_size=30) | cut_or_changed(raw[1]))
    found, faults = decoder(schema).decode(column_of(raw[0], damaged, raw[2]))
    rows = rows_of(found)
    assert [as_read(good[0]), as_read(good[2])] == [rows[0], rows[2]]
    assert set(faults) <= {1}
    try:
        expected = made.FromString(damaged)
    except DecodeError:
        assert set(faults) == {1}
        assert rows[1] is None
        return
    if faults:
        assert "that no column holds" in faults[1].message
    elif not damaged_map_entries(expected):
        assert as_read(expected) == rows[1]


def damaged_map_entries(message: Any) -> bool:
    """Google's runtime keeps an entry with a field that it does not know with the fields that it does not know."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    entries = {
        field.number
        for field in message.DESCRIPTOR.fields
        if field.message_type is not None and field.message_type.GetOptions().map_entry
    }
    if any(unknown.field_number in entries for unknown in UnknownFieldSet(message)):
        return True
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            values = list(value.values()) if field.message_type.fields[1].message_type is not None else []
        else:
            values = list(value) if field.is_repeated else [value]
        if any(damaged_map_entries(inner) for inner in values):
            return True
    return False


def cut_or_changed(raw: bytes) -> st.SearchStrategy[bytes]:
    cut = st.integers(0, len(raw)).map(lambda at: raw[:at])
    if not raw:
        return cut
    changed = st.tuples(st.integers(0, len(raw) - 1), st.integers(0, 255)).map(
        lambda at: raw[: at[0]] + bytes([at[1]]) + raw[at[0] + 1 :]
    )
    return cut | changed | st.binary(max_size=4).map(lambda more: raw + more)


def test_floats_within_json_text_have_their_own_digits() -> None:
    """As in JSON objects, and not those of the double with the same value."""
    text = """
        syntax = "proto3";
        import "google/protobuf/wrappers.proto";
        message M {
          M m = 1; float f = 2; repeated float list = 3; map<string, float> map = 4;
          google.protobuf.FloatValue maybe = 5; double d = 6;
        }
    """
    inner = {"f": 0.1, "list": [16777216.0, float("inf")], "map": {"k": -0.3}, "maybe": {"value": 3e-39}, "d": 0.1}
    raw = written(text, m=inner)
    expected = '{"f":0.1,"list":[16777216.0,"inf"],"map":{"k":-0.3},"maybe":3e-39,"d":0.1}'
    for value in (raw, raw * 2):  # the second one is read alone
        found, faults = decoder(schema_of(text)).decode(pa.array([value], pa.binary()))
        assert not faults
        again = expected.replace("]", ',16777216.0,"inf"]') if value != raw else expected
        assert found[0].as_py()["m"] == again


def test_unknown_fields_are_left_out_counted_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    reader = decoder(schema_of('syntax = "proto3"; message M { int32 a = 1; M m = 2; }'))
    raw = b"\x08\x05" + b"\x48\x01" * 2 + b"\x12\x02\x50\x01"
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            found, faults = reader.decode(pa.array([raw, b"\x48\x01\x08"], pa.binary()))
    assert found[0].as_py() == {"a": 5, "m": '{"a":0}'}
    assert set(faults) == {1}
    assert reader.unknown == {("M", 9): 6, ("M", 10): 3}, "without those of the bad record"
    assert reader.unknown_fields == 3, "of the last batch"
    assert len(caplog.records) == 1
    assert "M: values that the schema has no field for are left out: M field 9: 2, M field 10: 1" in caplog.text


def test_unknown_fields_of_any_number_keep_log_and_memory_small(caplog: pytest.LogCaptureFixture) -> None:
    """Such as bytes of another kind that read as fields by chance."""
    reader, numbers = decoder(schema_of('syntax = "proto3"; message M { int32 a = 1; }')), range(2, 2_002)
    with caplog.at_level(logging.WARNING):
        for number in numbers:
            reader.decode(pa.array([varint(8 * number) + b"\x01"] * 3, pa.binary()))
            assert reader.unknown_fields == 3
    assert reader.unknown.total() == 6_000
    assert len(reader.unknown) == MOST_NAMED + 1
    assert sum(len(record.getMessage()) for record in caplog.records) < 30_000
    assert all(f"M field {number}: 3" in caplog.text for number in numbers[:MOST_NAMED])
    assert f"M field {numbers[MOST_NAMED]}:" not in caplog.text
    assert "others: 3\n" in caplog.text
    assert "others: 2700\n" in caplog.text, "again when there are ten times as many"


def test_groups_of_proto2_are_read() -> None:
    text = "message M { optional group G = 1 { optional int32 x = 1; repeated group H = 2 { optional int32 y = 1; } } }"
    raw = written(text, g={"x": 1, "h": [{"y": 2}, {"y": 3}]})
    found, faults = decoder(schema_of(text)).decode(pa.array([raw, b""], pa.binary()))
    assert (found.to_pylist(), dict(faults)) == ([{"g": {"x": 1, "h": [{"y": 2}, {"y": 3}]}}, {"g": None}], {})


def test_lists_that_only_a_few_records_have_do_not_take_a_step_for_each_item() -> None:
    text = 'syntax = "proto3"; message M { repeated string s = 1; repeated int32 n = 2; }'
    long = written(text, s=[str(n) for n in range(3_000)], n=range(3_000))
    found, faults = decoder(schema_of(text)).decode(pa.array([b"", long, b"\x0a\x01x"], pa.binary()))
    assert not faults
    assert [len(row["s"]) for row in found.to_pylist()] == [0, 3_000, 1]
    assert found[1]["n"].as_py() == list(range(3_000))
