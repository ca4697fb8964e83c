"""Columns of every type in every format: what is read back, by our readers and by others, is what was written."""

from __future__ import annotations

import base64
import csv
import io
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from pyarrow import orc

from s3sink_job.columns.nested import with_leaves
from s3sink_job.columns.text import text_of
from s3sink_job.formats.avro import Serializer, avro_schema
from s3sink_job.formats.orc_columns import storable
from s3sink_job.formats.settings import Output
from s3sink_job.proof.object_contents import difference
from tests.columns.typed_kinds import typed_rows
from tests.encodings import output
from tests.formats.samples import batch, comparable, read_back, unwritable, written

PARQUET, AVRO, ORC, CSV = (output(format) for format in ("Parquet", "Avro", "Orc", "Csv"))
TEXT = pa.string()
AT = datetime(1965, 3, 4, 5, 6, 7, tzinfo=UTC)
NEW = datetime(2026, 1, 2, 3, 4, 5, 6_000, tzinfo=UTC)
SAMPLE = batch(
    {
        "int": [2**31 - 1, -(2**31), None],
        "float": [1.5, float("-inf"), None],
        "bytes": [b"\xff\xfe\x00", b"", None],
        "fixed": [bytes(range(16)), b"\xff" * 16, None],
        "odd": [b"abc", b"\x00\xff\x80", None],
        "dec": [Decimal("-12.30"), Decimal("99999999.99"), None],
        "wide": [Decimal("-0.01"), Decimal("9" * 48 + ".99"), None],
        "date": [date(1, 1, 1), date(9999, 12, 31), None],
        "t_ms": [time(1, 2, 3, 4_000), time(23, 59, 59, 999_000), None],
        "t_us": [time(1, 2, 3, 4), time(0), None],
        "ms": [AT, NEW, None],
        "us": [AT, NEW.replace(microsecond=6), None],
        "local": [AT.replace(tzinfo=None), NEW.replace(tzinfo=None), None],
        "map": [[("k", 1), ('"', None)], [], None],
        "deep": [[("k", [{"d": Decimal("1.50")}, None])], [], None],
    },
    int=pa.int32(),
    float=pa.float32(),
    bytes=pa.binary(),
    fixed=pa.binary(16),
    odd=pa.binary(3),
    dec=pa.decimal128(10, 2),
    wide=pa.decimal256(50, 2),
    date=pa.date32(),
    t_ms=pa.time32("ms"),
    t_us=pa.time64("us"),
    ms=pa.timestamp("ms", "UTC"),
    us=pa.timestamp("us", "UTC"),
    local=pa.timestamp("us"),
    map=pa.map_(TEXT, pa.int64()),
    deep=pa.map_(TEXT, pa.list_(pa.struct([("d", pa.decimal128(5, 2))]))),
)


def good(rows: pa.RecordBatch, wanted: Output) -> pa.RecordBatch:
    bad = unwritable(rows, wanted)
    assume(len(bad) < rows.num_rows)
    return rows.filter(pa.array([row not in bad for row in range(rows.num_rows)], pa.bool_()))


def check_reading_back(rows: pa.RecordBatch, wanted: Output) -> pa.Table:
    found = read_back(written(wanted, rows), wanted)
    assert not difference(comparable(rows, wanted, found.schema), found)
    return found


@pytest.mark.parametrize("wanted", [PARQUET, AVRO, ORC], ids=lambda wanted: wanted.format)
@settings(max_examples=150, deadline=None)
@given(rows=typed_rows())
def test_any_typed_row_is_read_back_with_its_types(wanted: Output, rows: pa.RecordBatch) -> None:
    kept = good(rows, wanted)

    found = check_reading_back(kept, wanted)

    assert found.schema.equals(rows.schema)
    assert not difference(pa.Table.from_batches([kept]), found)


@settings(max_examples=150, deadline=None)
@given(rows=typed_rows())
def test_any_typed_row_is_read_back_from_csv(rows: pa.RecordBatch) -> None:
    check_reading_back(good(rows, CSV), CSV)


@settings(max_examples=100, deadline=None)
@given(rows=typed_rows())
def test_arrow_reads_any_typed_row_from_orc(rows: pa.RecordBatch) -> None:
    kept = good(rows, ORC)

    found = orc.ORCFile(io.BytesIO(written(ORC, kept))).read()

    stored = pa.table({name: storable(c) for name, c in zip(kept.schema.names, kept.columns, strict=True)})
    assert not difference(in_nanos(stored), found)


def in_nanos(table: pa.Table) -> pa.Table:
    """Arrow's reader gives nanoseconds, whatever was written."""

    columns = [
        with_leaves(pa.concat_arrays(c.chunks), pa.types.is_timestamp, lambda leaf: leaf.cast(pa.timestamp("ns")))
        for c in table.columns
    ]
    return pa.table(dict(zip(table.schema.names, columns, strict=True)))


@settings(max_examples=100, deadline=None)
@given(rows=typed_rows())
def test_the_slow_way_to_write_avro_gives_the_same_bytes(rows: pa.RecordBatch) -> None:

    serialize = Serializer(avro_schema(pa.struct(list(rows.schema))))
    whole = pa.RecordBatch.from_arrays([pa.concat_arrays([c]) for c in rows.columns], schema=rows.schema)

    fast = [datum for datums in serialize(whole) for datum in datums.to_pylist()]

    assert fast == serialize._one_by_one(whole).to_pylist()


def test_fastavro_reads_logical_types() -> None:
    rows = list(fastavro.reader(io.BytesIO(written(AVRO, SAMPLE))))

    wanted: list[dict[str, Any]] = SAMPLE.to_pylist(maps_as_pydicts="strict")
    assert rows == wanted


def test_duckdb_reads_parquet(tmp_path: Path) -> None:
    # DuckDB has no decimals of more than 38 digits.
    kept = SAMPLE.select([name for name in SAMPLE.schema.names if name != "wide"])
    (tmp_path / "o.parquet").write_bytes(written(PARQUET, kept))

    found = duckdb.sql(f"SET TimeZone = 'UTC'; SELECT * FROM '{tmp_path}/o.parquet'").to_arrow_table()

    for name in kept.schema.names:
        have = found.column(name).combine_chunks()
        want = kept.column(name)
        have = have.cast(want.type) if not pa.types.is_nested(want.type) else have
        assert have.to_pylist() == want.to_pylist(), name


def test_parquet_has_statistics_of_dates_and_decimals() -> None:
    group = pq.ParquetFile(io.BytesIO(written(PARQUET, SAMPLE))).metadata.row_group(0)
    found = {group.column(n).path_in_schema: group.column(n).statistics for n in range(group.num_columns)}

    assert (found["date"].min, found["date"].max) == (date(1, 1, 1), date(9999, 12, 31))
    assert (found["dec"].min, found["dec"].max) == (Decimal("-12.30"), Decimal("99999999.99"))
    assert found["map.key_value.key"].has_min_max


def test_other_readers_of_csv_find_texts_that_python_parses() -> None:
    (first, second, third) = csv.DictReader(io.StringIO(written(CSV, SAMPLE).decode()))

    assert third == dict.fromkeys(SAMPLE.schema.names, "")
    assert base64.b64decode(first["fixed"]) == bytes(range(16))
    assert (first["dec"], second["wide"]) == ("-12.30", "9" * 48 + ".99")
    assert date.fromisoformat(first["date"]) == date(1, 1, 1)
    assert time.fromisoformat(first["t_us"]) == time(1, 2, 3, 4)
    assert (first["us"], first["local"]) == ("1965-03-04T05:06:07.000000Z", "1965-03-04T05:06:07.000000")
    assert (first["map"], second["map"]) == ('{"k":1,"\\"":null}', "{}")
    assert first["deep"] == '{"k":[{"d":"1.50"},null]}'


@pytest.mark.parametrize("wanted", [PARQUET, AVRO, ORC, CSV], ids=lambda wanted: wanted.format)
def test_a_column_that_widens_within_an_object_keeps_all_values(wanted: Output) -> None:
    def rows(n: pa.DataType, d: pa.DataType) -> pa.RecordBatch:
        values = {"n": [7, None], "d": [Decimal("1.5"), None], "m": [[("k", 1)], []]}
        return batch(values, n=n, d=d, m=pa.map_(TEXT, n))

    narrow, wide = rows(pa.int32(), pa.decimal128(5, 1)), rows(pa.int64(), pa.decimal256(50, 1))

    found = read_back(written(wanted, narrow, wide), wanted)

    should = [comparable(part, wanted, found.schema) for part in (narrow, wide)]
    assert not difference(pa.concat_tables(should), found)
    assert wanted is CSV or found.schema.equals(wide.schema)


@pytest.mark.parametrize("wanted", [PARQUET, AVRO, ORC], ids=lambda wanted: wanted.format)
def test_older_objects_without_columns_for_empty_records_are_as_expected(wanted: Output) -> None:
    empty, now = pa.struct([]), pa.struct([("_more", TEXT)])
    before = batch(
        {"n": [1, 2], "mark": [{}, None], "named": [[("a", {})], []]}, mark=empty, named=pa.map_(TEXT, empty)
    )
    rows = batch({"n": [1, 2], "mark": [{}, None], "named": [[("a", {})], []]}, mark=now, named=pa.map_(TEXT, now))
    found = read_back(written(wanted, before), wanted)
    assert found.schema.names == ["n", "named"]
    assert comparable(rows, wanted, found.schema).equals(found)
    found = read_back(written(wanted, rows), wanted)
    assert found.column("mark").to_pylist() == [{"_more": None}, None]
    changed = batch({"n": [1, 2], "mark": [None, {}], "named": [[], []]}, mark=now, named=pa.map_(TEXT, now))
    assert difference(comparable(changed, wanted, found.schema), found)


def test_csv_refuses_years_that_readers_cannot_parse_at_any_depth() -> None:
    days = pa.array([0, 2_932_896, 2_932_897, -719_162, -719_163], pa.date32())
    deep = pa.array(
        [[{"d": value}] for value in days.cast(pa.int32()).to_pylist()], pa.list_(pa.struct([("d", days.type)]))
    )
    rows = pa.RecordBatch.from_arrays([days, deep], ["d", "deep"])

    assert sorted(unwritable(rows.select(["d"]), CSV)) == sorted(unwritable(rows.select(["deep"]), CSV)) == [2, 4]


def test_orc_refuses_what_is_no_time_of_a_day() -> None:
    rows = batch({"t": [0, 86_399_999, 86_400_000, -1]}, t=pa.time32("ms"))

    assert sorted(unwritable(rows, ORC)) == [2, 3]
    assert pc.all(text_of(rows.column("t")).is_valid()).as_py()
