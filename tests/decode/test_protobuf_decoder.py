"""Protobuf records as columns: every value is the one that Google's runtime reads, by both ways of reading."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
from google.protobuf.message import DecodeError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from s3sink_job.decode.proto_columns import RecordReader
from s3sink_job.decode.proto_files import link, message_at
from s3sink_job.decode.proto_rows import read_row
from s3sink_job.decode.proto_types import column_type, parse_message
from s3sink_job.decode.record_bytes import Records
from tests.decode.proto_samples import SchemaMaker, as_read, decoder, filled, message_class, plain_row, schema_of

MANY = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
SEEDS = st.integers(0, 2**32)


def column_of(*values: bytes) -> pa.Array:
    return pa.array(values, pa.binary())


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
