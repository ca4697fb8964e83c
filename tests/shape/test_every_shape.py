"""Every output format with every shape and every input format of key and value, compared with a model."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3sink_api.spec import MORE
from s3sink_job.columns.known_columns import NO_COLUMNS, KnownColumns, known_from_text, known_to_text
from s3sink_job.columns.types import holds_something
from s3sink_job.shape.headers import HEADERS
from s3sink_job.shape.record_fields import TIME
from s3sink_job.shape.row_builder import BuiltRows, RowBuilder
from s3sink_job.shape.tombstones import tombstones
from s3sink_job.task.encoding import Encoding
from tests.decode.batches import TOPIC, Record, batch_of, json_values, texts
from tests.encodings import changed, encoding
from tests.shape.model import FORMATS, GENERATION, SOURCES, Refused, found_in, has_key_fields, line_of, row_of, shapes

SHAPES = [shape for format in FORMATS for shape in shapes(format)]


def name_of(shape: Encoding) -> str:
    beside = "+".join(shape.shape.envelope) or shape.shape.meta + ("-flat" if shape.shape.flatten else "")
    others = "-map" * (shape.shape.headers_as == "Map") + "-fields" * (shape.shape.key_as == "Fields")
    return f"{shape.output.format}-{beside}{others}"


every_shape = pytest.mark.parametrize("shape", SHAPES, ids=name_of)


def opened(wanted: Encoding, known: pa.StructType | None = None) -> RowBuilder:
    return wanted.row_builder(TOPIC, GENERATION, known)


def decoded(builder: RowBuilder, wanted: Encoding, records: list[Record]) -> BuiltRows:
    found = builder.build(batch_of(*records).select(["partition", "offset", *wanted.columns]))
    found.rows.validate(full=True)
    assert found.rows.num_rows == len(records)
    return found


def check(found: BuiltRows, wanted: Encoding, records: list[Record]) -> None:
    rows = found.rows.to_pylist()
    for number, record in enumerate(records):
        try:
            expected = (line_of if wanted.output.format == "Json" else row_of)(record, number, wanted)
        except Refused:
            assert number in found.bad.messages
            continue
        assert number not in found.bad.messages
        if wanted.output.format == "Json":
            assert json.loads(rows[number]["line"]) == expected
        elif wanted.decoding.value != "Json" and not has_key_fields(wanted):
            assert rows[number] == expected
        else:
            assert is_row(rows[number], expected)


def is_row(row: dict[str, Any], expected: dict[str, Any]) -> bool:
    return found_in(expected, {**dict.fromkeys(expected), **row})


RECORDS = [
    Record(b'{"a":1,"b":{"c":[1.5,null,{"d":"x"}]}}', key=b'{"id":7}', headers=[("h", b"\xff"), ("h", None)]),
    Record(None, key=None, headers=None),
    Record(b'{"b":{},"e":"\\u00e4\\n"}', key=b'"\xc3\xa4"', headers=[("", b"x")], millis=0),
    Record(b"{}", key=b"1"),
    Record(b"{ \n }", key=b"{\r\n}", millis=-1),
    Record(b'{"a":9007199254740993,"n":123456789012345678901234567890}', key=b"null"),
    Record(None, key=b"2"),
]


def good_records(wanted: Encoding) -> list[Record]:
    """A key that is no object cannot be a struct."""
    if not has_key_fields(wanted):
        return RECORDS
    keys = [b'{"id":7}', None, b'{"id":"x","k":{"l":[1]}}', b"{}", b"{\r\n}", b'{"id":null}', b'{"k":{}}']
    return [replace(record, key=key) for record, key in zip(RECORDS, keys, strict=True)]


@every_shape
def test_records_are_as_the_model_says_for_every_key_and_value(shape: Encoding) -> None:
    for key, value in product(SOURCES, SOURCES):
        wanted = changed(shape, key=key, value=value)
        builder = opened(wanted)
        records = good_records(wanted)
        first = decoded(builder, wanted, records)
        assert first.bad.messages == {}
        check(first, wanted, records)

        again = decoded(builder, wanted, records)
        assert (again.rows.to_pylist(), again.bad.messages) == (first.rows.to_pylist(), first.bad.messages)


ODD = [
    Record(b"\xff", key=b"1"),
    Record(b"{}", key=b"\xff"),
    Record(b"[1]", key=b"1"),
    Record(b"null", key=b"1"),
    Record(b'{"a":', key=b"{"),
    Record(b'{"a":NaN}', key=b"NaN"),
    Record(b'{"_key":1}', key=b"1"),
    Record(b'{"_value":1}', key=b"1"),
    Record(b'{"_airbyte_data":1}', key=b"1"),
    Record(b'{"a":1,"\\u005fairbyte_ab_id":1}', key=b"1"),
    Record(b'{"_more":1}', key=b"1"),
    Record(b"a\nb,\"c\";'d'\r", key=b"a\nb"),
    Record(b"", key=b""),
]


@every_shape
def test_a_bad_record_changes_no_other_record(shape: Encoding) -> None:
    for key, value in product(SOURCES, SOURCES):
        wanted = changed(shape, key=key, value=value)
        records = good_records(wanted)
        good, bad = records[:5], [*records[:5], *ODD]
        check(decoded(opened(wanted), wanted, bad), wanted, bad)
        alone, beside = decoded(opened(wanted), wanted, good), decoded(opened(wanted), wanted, bad)
        for row, other in zip(alone.rows.to_pylist(), beside.rows.to_pylist(), strict=False):
            assert all(other[name] == cell for name, cell in row.items() if name not in ("key", "value", "a"))


names = st.sampled_from(["a", "b", "_key", "_airbyte_data", "key", "value", "", "ä"]) | texts.filter(
    lambda n: n != MORE
)
objects = st.dictionaries(names, json_values, max_size=4)
raw = st.none() | st.binary(max_size=5) | objects.map(lambda o: json.dumps(o).encode()) | texts.map(str.encode)
any_record = st.builds(
    Record,
    value=raw | json_values.map(lambda v: json.dumps(v, ensure_ascii=False, indent=1).encode()),
    key=raw,
    headers=st.none() | st.lists(st.tuples(texts, st.none() | st.binary(max_size=3)), max_size=3),
    millis=st.integers(-(2**40), 2**42),
)


@settings(max_examples=300)
@given(st.sampled_from(SHAPES), st.sampled_from(SOURCES), st.sampled_from(SOURCES), st.data())
def test_any_records_are_as_the_model_says(shape: Encoding, key: str, value: str, data: st.DataObject) -> None:
    wanted = changed(shape, key=key, value=value)
    builder = opened(wanted)
    for _ in range(2):
        records = data.draw(st.lists(any_record, min_size=1, max_size=5))
        found = decoded(builder, wanted, records)
        check(found, wanted, records)


@settings(max_examples=200)
@given(st.sampled_from(SHAPES), st.data())
def test_the_fast_and_the_slow_reader_give_the_same_rows(shape: Encoding, data: st.DataObject) -> None:
    records = data.draw(st.lists(st.builds(Record, value=st.none() | objects.map(lambda o: json.dumps(o).encode()))))
    builder = opened(shape)
    builder.build(batch_of(*records, Record(b"{}")).select(["partition", "offset", *shape.columns]))

    known = builder.schema
    fast = decoded(opened(shape, known), shape, [*records, Record(b"{}")])
    slow = decoded(opened(shape, known), shape, [*records, Record(b"{}"), Record(b"\xff{")])

    assert slow.rows.slice(0, len(records) + 1).to_pylist() == fast.rows.to_pylist()
    assert {row: why for row, why in slow.bad.messages.items() if row <= len(records)} == fast.bad.messages


@every_shape
@given(start=st.integers(0, 6), count=st.integers(1, 7))
@settings(max_examples=5)
def test_a_part_of_a_batch_gives_the_same_as_its_records_alone(shape: Encoding, start: int, count: int) -> None:
    whole = batch_of(*RECORDS).select(["partition", "offset", *shape.columns])
    window = whole.slice(start, count)
    alone = whole.take(list(range(start, start + window.num_rows)))

    one, other = opened(shape).build(window), opened(shape).build(alone)

    assert (one.rows.to_pylist(), one.bad.messages) == (other.rows.to_pylist(), other.bad.messages)


@every_shape
def test_an_empty_batch_gives_no_rows(shape: Encoding) -> None:
    for key, value in product(SOURCES, SOURCES):
        wanted = changed(shape, key=key, value=value)
        builder = opened(wanted)
        assert decoded(builder, wanted, []).bad.messages == {}
        full = decoded(builder, wanted, good_records(wanted))
        assert decoded(builder, wanted, []).bad.messages == {}
        check(full, wanted, good_records(wanted))


FULL = changed(encoding(format="Parquet"), envelope=("key", "value", "headers", "metadata"))


def test_the_parts_of_an_envelope_have_their_own_types() -> None:
    rows = decoded(opened(FULL), FULL, [Record(b'{"a":1}')]).rows

    place = [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("timestamp", TIME)]
    assert list(zip(rows.schema.names, rows.schema.types, strict=True)) == [
        ("key", pa.string()),
        ("value", pa.struct([("a", pa.int64())])),
        ("headers", HEADERS),
        ("metadata", pa.struct(place)),
    ]


@pytest.mark.parametrize("values", [[b"{}", None, b"{}"], [None, None], [b'{"a":null}', None], [b'{"a":{}}', None]])
def test_an_empty_object_differs_from_a_tombstone_in_an_envelope(values: list[bytes | None]) -> None:
    for wanted in (FULL, changed(FULL, envelope=("value",))):
        rows = decoded(opened(wanted), wanted, [Record(value) for value in values]).rows

        assert [value is None for value in rows.column("value").to_pylist()] == [value is None for value in values]
        assert holds_something(rows.schema.field("value").type)


def test_the_placeholder_of_an_empty_object_is_not_part_of_the_schema() -> None:
    builder = opened(FULL)
    decoded(builder, FULL, [Record(b"{}")])
    found = decoded(builder, FULL, [Record(b'{"a":1}')])

    assert found.rows.schema.field("value").type == pa.struct([("a", pa.int64())])
    assert builder.schema == KnownColumns(pa.struct([("a", pa.int64())]))


def test_a_column_of_an_envelope_that_was_written_as_text_is_text_from_then_on() -> None:
    builder = opened(FULL)
    decoded(builder, FULL, [Record(b'{"a":[1]}')])

    builder.widen_to_text(("value", "a", "[]"))

    found = decoded(builder, FULL, [Record(b'{"a":[2]}')])
    assert found.rows.column("value").to_pylist() == [{"a": ["2"]}]


KEYS = changed(FULL, key="Json", key_as="Fields", headers_as="Map")


def test_keys_have_types_of_their_own_and_widen_from_slice_to_slice() -> None:
    first = opened(KEYS)
    decoded(first, KEYS, [Record(b'{"a":1}', key=b'{"id":1,"n":{"m":true}}')])
    known = known_from_text(known_to_text(first.schema or NO_COLUMNS))

    second = opened(KEYS, known)
    rows = decoded(second, KEYS, [Record(b'{"a":2}', key=b'{"id":"x"}', headers=[("h", b"1"), ("h", b"2")])]).rows

    assert rows.schema.field("key").type == pa.struct([("id", pa.string()), ("n", pa.struct([("m", pa.bool_())]))])
    assert rows.schema.field("value").type == pa.struct([("a", pa.int64())])
    assert rows.column("key").to_pylist() == [{"id": "x", "n": None}]
    assert rows.column("headers").to_pylist() == [[("h", b"2")]]
    second.widen_to_text(("key", "n", "m"))
    again = decoded(second, KEYS, [Record(b"{}", key=b'{"n":{"m":true}}')]).rows
    assert again.column("key").to_pylist() == [{"id": None, "n": {"m": "true"}}]


def test_typed_keys_keep_the_types_of_their_schemas() -> None:
    schema = {"type": "record", "name": "K", "fields": [{"name": "id", "type": "int"}]}
    schema["fields"] += [{"name": "day", "type": {"type": "int", "logicalType": "date"}}]  # type: ignore[operator]
    wanted = changed(FULL, key="Avro", value="Avro", key_schema=json.dumps(schema), value_schema=json.dumps(schema))
    wanted = changed(wanted, key_as="Fields")
    builder = opened(wanted)
    rows = decoded(builder, wanted, [Record(b"\x02\x04", key=b"\x06\x08"), Record(None, key=None)]).rows

    typed = pa.struct([("id", pa.int32()), ("day", pa.date32())])
    assert rows.schema.field("key").type == rows.schema.field("value").type == typed
    assert rows.column("key").to_pylist() == [{"id": 3, "day": date(1970, 1, 5)}, None]
    assert {path[0] for path in builder.row_sources()} == {"key", "value"}
    again = opened(wanted, known_from_text(known_to_text(builder.schema or NO_COLUMNS)))
    assert decoded(again, wanted, [Record(b"\x02\x04", key=b"\x06\x08")]).rows.schema == rows.schema


def test_a_value_with_the_name_that_stands_for_keys_does_not_disturb_them() -> None:
    builder = opened(KEYS)
    rows = decoded(builder, KEYS, [Record(b'{"\\u0000key":1,"a":2}', key=b'{"id":1}')]).rows

    assert rows.column("value").to_pylist() == [{"\0key": 1, "a": 2}]
    again = decoded(opened(KEYS, builder.schema), KEYS, [Record(b'{"\\u0000key":"x"}', key=b'{"id":2}')]).rows
    assert again.column("key").to_pylist() == [{"id": 2}]
    assert again.column("value").to_pylist() == [{"a": None, "\0key": "x"}]


def test_a_bad_value_that_is_not_written_is_ignored() -> None:
    for format in ("Json", "Parquet"):
        wanted = changed(encoding(format=format), envelope=("key", "metadata"))
        found = decoded(opened(wanted), wanted, [Record(b"\xff"), Record(b"{")])
        assert found.bad.messages == {}


@every_shape
def test_the_schema_can_be_read_from_the_columns_of_an_object(shape: Encoding) -> None:
    builder = opened(shape)
    found = decoded(builder, shape, RECORDS)

    assert opened(shape).known_from(found.rows.schema) == builder.schema


def test_ids_depend_only_on_the_position_of_a_record() -> None:
    wanted = encoding(format="Csv", meta="Airbyte")
    batch = batch_of(*RECORDS)

    def ids(part: pa.RecordBatch, topic: str = TOPIC, generation: int = 1) -> list[str]:
        found = wanted.row_builder(topic, generation).build(part)
        return list(found.rows.column("_airbyte_ab_id").to_pylist())

    every = ids(batch)
    others = ids(batch, generation=2) + ids(batch, "orders2") + ids(batch.set_column(0, "partition", batch["offset"]))
    assert len({*every, *others}) == 4 * len(RECORDS)
    assert ids(batch.slice(2)) == every[2:]
    assert ids(batch.set_column(3, "value", pa.nulls(len(RECORDS), pa.binary()))) == every


def test_only_a_record_without_a_value_is_a_tombstone() -> None:
    batch = batch_of(b"null", None, b"", b"{}", None)

    assert tombstones(batch).to_pylist() == [False, True, False, False, True]
    assert tombstones(batch.slice(1, 2)).to_pylist() == [True, False]


@given(st.lists(st.none() | st.binary(max_size=9), min_size=1, max_size=5), st.sampled_from(SOURCES))
def test_bytes_are_values_as_they_are_and_a_tombstone_has_none(values: list[bytes | None], source: str) -> None:
    wanted = encoding(format="Bytes", value=source, key="Json")

    found = decoded(opened(wanted), wanted, [Record(value, key=b"\xff") for value in values])

    assert found.rows.to_pydict() == {"value": [value or b"" for value in values]}
    assert found.bad.messages == {}
