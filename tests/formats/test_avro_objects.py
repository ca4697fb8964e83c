"""Avro objects: other readers get every value back, with names that Avro allows."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import fastavro
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3sink_api.spec import LEVELS
from s3sink_job.decode.json_columns import JsonColumns
from s3sink_job.formats.avro import BLOCK_BYTES, Serializer, avro_schema
from s3sink_job.formats.avro_names import avro_name, source_name
from tests.encodings import output
from tests.formats.samples import (
    BATCHES,
    FIRST,
    LARGE,
    NO_DISK,
    TIME,
    batch,
    comparable,
    open_object,
    read_back,
    rows_of,
    written,
)

AVRO = output("Avro")
CODECS = {
    "None": "null",
    "Snappy": "snappy",
    "Zstd": "zstandard",
    "Bzip2": "bzip2",
    "Deflate": "deflate",
    "Xz": "xz",
}
LEVELLED = [(codec, level) for codec in CODECS for level in (None, *LEVELS.get(codec, ())[:2])]


def by_fastavro(data: bytes) -> list[Any]:
    return list(fastavro.reader(io.BytesIO(data)))


def renamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {avro_name(name): renamed(inner) for name, inner in value.items()}
    return [renamed(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("codec", "level"), LEVELLED)
def test_every_value_comes_back_whatever_the_compression(codec: str, level: int | None) -> None:
    wanted = output("Avro", codec, level)

    data = written(wanted, *BATCHES)

    reader = fastavro.reader(io.BytesIO(data))
    assert reader.codec == CODECS[codec]
    assert list(reader) == renamed(rows_of(*BATCHES))
    assert read_back(data, wanted).to_pylist() == rows_of(*BATCHES)


@pytest.mark.parametrize("codec", ["None", "Snappy", "Deflate"])
def test_polars_reads_it(codec: str) -> None:
    rows = batch({"n": [1, None], "t": ["é", ""], "d": [0.5, None], "b": [True, False], "l": [[1, 2], []]})

    assert pl.read_avro(io.BytesIO(written(output("Avro", codec), rows))).to_dicts() == rows.to_pylist()


def test_many_rows_are_many_blocks_and_a_large_one_has_its_own() -> None:
    rows = batch({"n": list(range(20_000)), "t": [f"{n:050}" for n in range(20_000)]})

    data = written(AVRO, rows, batch({"t": [LARGE], "n": [1]}), rows.slice(7, 3))

    blocks = list(fastavro.block_reader(io.BytesIO(data)))
    assert sum(block.num_records for block in blocks) == 20_004
    assert len(blocks) >= 20_000 * 50 // BLOCK_BYTES
    assert all(block.num_records > 0 for block in blocks)
    found = by_fastavro(data)
    assert found[:20_000] == rows.to_pylist()
    assert found[20_000] == {"n": 1, "t": LARGE}
    assert found[20_001:] == rows.slice(7, 3).to_pylist()


def test_names_that_avro_does_not_allow_are_kept_as_a_property() -> None:
    rows = batch({"a b": [{"x.y": 1, "1st": "é"}], "é": [[{"x.y": 2}]], "plain": [1]})

    data = written(AVRO, rows)

    schema: Any = fastavro.reader(io.BytesIO(data)).writer_schema
    assert [f["name"] for f in schema["fields"]] == ["a_u0020_b", "_u00e9_", "plain"]
    assert [f.get("sourceName") for f in schema["fields"]] == ["a b", "é", None]
    assert read_back(data, AVRO).to_pylist() == rows.to_pylist()


def test_nested_records_with_the_same_name_are_not_confused() -> None:
    rows = batch(
        {
            "a": [{"b": {"x": 1}, "a": {"y": "t"}}],
            "b": [{"x": 2.5, "a": [{"a": {"z": True}}]}],
            "a_b": [{"x": "s"}],
            "Row": [{"Row": {"Row": 1}}],
        }
    )

    assert by_fastavro(written(AVRO, rows)) == rows.to_pylist()


def test_columns_named_as_types_are_written() -> None:
    rows = batch({"bytes": [b"\xff"], "string": ["x"], "type": [{"items": b"\xfe", "fields": [b"\x00"]}]})

    data = written(AVRO, rows)

    assert by_fastavro(data) == rows.to_pylist()
    assert read_back(data, AVRO).to_pylist() == rows.to_pylist()


def test_times_beyond_the_year_9999_are_read_back() -> None:
    rows = pa.RecordBatch.from_arrays([pa.array([2**62, -(2**62), 0, None], TIME)], ["_timestamp"])

    assert read_back(written(AVRO, rows), AVRO).column(0).combine_chunks().equals(rows.column(0))


def test_rows_without_any_column_can_be_counted() -> None:
    empty = pa.RecordBatch.from_struct_array(pa.array([{}] * 3, pa.struct([])))

    assert len(by_fastavro(written(AVRO, empty))) == 3


def test_a_part_of_a_batch_is_written_and_nothing_beside_it() -> None:
    kept = FIRST.select([name for name in FIRST.schema.names if name != "later"])
    for start in range(4):
        assert by_fastavro(written(AVRO, kept.slice(start, 2))) == kept.slice(start, 2).to_pylist()


def test_a_long_number_beside_doubles_is_text_and_reported() -> None:
    sink = io.BytesIO()
    writer = open_object(AVRO, sink, NO_DISK)
    writer.write(batch({"n": [{"m": [2**53 + 1]}]}))
    writer.write(batch({"n": [{"m": [0.5]}]}))

    assert writer.close() == (("n", "m", "[]"),)
    assert by_fastavro(sink.getvalue()) == [{"n": {"m": [str(2**53 + 1)]}}, {"n": {"m": ["0.5"]}}]


def test_rows_that_need_a_wider_schema_are_not_taken_once_it_is_written() -> None:
    writer = open_object(AVRO, io.BytesIO(), NO_DISK)
    writer.write(batch({"n": [1.5], "o": [{"a": 1}]}))
    assert writer.takes(batch({"o": [{"b": 1}]}))
    writer.settle()

    assert writer.takes(batch({"n": [2]}))
    assert writer.takes(batch({"o": [None], "unknown": [None]}))
    assert not writer.takes(batch({"o": [{"b": 1}]}))
    assert not writer.takes(batch({"n": [2**53 + 1]}))


@pytest.mark.parametrize("codec", CODECS)
def test_the_size_after_settling_is_exactly_that_of_the_object(codec: str) -> None:
    sink = io.BytesIO()
    writer = open_object(output("Avro", codec), sink, NO_DISK)
    for seed in range(3):
        writer.write(batch({"n": list(range(seed, 5_000)), "t": [f"{n * 7919}" for n in range(seed, 5_000)]}))
        writer.settle()

    assert writer.held == 0
    assert writer.size == len(sink.getvalue())
    writer.close()
    assert writer.size == len(sink.getvalue())


pieces = st.sampled_from([*"au0_1 é.\0𝄞", "_u0031_", "_u00e9", "u0031_"])
names = st.lists(pieces, max_size=6).map("".join)


@settings(max_examples=500)
@given(one=names, other=names)
def test_no_two_names_become_one(one: str, other: str) -> None:
    for name in (one, other):
        assert re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", avro_name(name))
        assert source_name(avro_name(name)) == name
    assert (avro_name(one) == avro_name(other)) == (one == other)


json_objects = st.dictionaries(
    st.sampled_from(["a", "b c", "é", "_u0031_", "1"]),
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.sampled_from([1, 0.5, "x", "", "é\0"]),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xy"), inner, max_size=2),
        max_leaves=4,
    ),
    max_size=3,
)


@settings(max_examples=100)
@given(batches=st.lists(st.lists(json_objects, min_size=1, max_size=3), min_size=1, max_size=4))
def test_any_json_comes_back(batches: list[list[dict[str, Any]]]) -> None:
    columns, decoded = JsonColumns(), []
    for values in batches:
        rows, bad = columns.decode(pa.array([json.dumps(value).encode() for value in values], pa.binary()))
        assert not bad
        decoded.append(rows)

    data = written(AVRO, *decoded)

    found = read_back(data, AVRO)
    assert by_fastavro(data) == renamed(found.to_pylist())
    wanted = [comparable(rows, AVRO, found.schema) for rows in decoded]
    assert pa.concat_tables(wanted).to_pylist() == found.to_pylist()


def test_rows_that_the_library_fails_on_are_written_one_by_one() -> None:
    """It fails on slices of columns with structs in structs."""
    content: dict[str, list[Any]] = {
        "o": [{"x": {"y": 1}}, {"x": None}, {"x": {"y": 2}}],
        "a b": [b"\xff", None, b""],
        "l": [[{"é": 0.5}], [], None],
        "t": [2**62, None, -1],
    }
    rows = batch({name: values * 2 for name, values in content.items()}, t=TIME)
    serialize = Serializer(avro_schema(pa.struct(list(rows.schema))))

    slow = [datum for datums in serialize(rows.slice(3)) for datum in datums.to_pylist()]

    assert slow == [datum for datums in serialize(batch(content, t=TIME)) for datum in datums.to_pylist()]
