"""CSV objects: other readers get every value back, and null is not empty text."""

from __future__ import annotations

import base64
import io
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3sink_api.spec import LEVELS
from s3sink_job.formats.compression import decompress
from s3sink_job.formats.settings import Output
from tests.encodings import changed_output, output
from tests.formats.samples import (
    AT,
    BATCHES,
    FIRST,
    LARGE,
    NO_DISK,
    TIME,
    batch,
    extension_of,
    open_object,
    read_back,
    rows_of,
    unwritable,
    written,
)

CSV = output("Csv")
CODECS = ("None", "Gzip", "Lz4", "Zstd", "Brotli", "Bzip2", "Xz")
LEVELLED = [(codec, level) for codec in CODECS for level in (None, *LEVELS.get(codec, ())[:1])]


def by_duckdb(content: bytes, wanted: Output, folder: Path) -> list[dict[str, Any]]:
    path = folder / "object.csv"
    path.write_bytes(content)
    quotes = "" if wanted.csv.quote == "None" else '"'
    options = {
        "all_varchar": "true",
        "header": str(wanted.csv.header).lower(),
        "delim": f"'{wanted.csv.delimiter}'",
        "quote": f"'{quotes}'",
        "escape": f"'{quotes}'",
        "nullstr": "''",
        "allow_quoted_nulls": "false",
        "auto_detect": "false" if not wanted.csv.header else "true",
        "max_line_size": "60000000",
        "parallel": "false",
    }
    asked = ", ".join(f"{name}={value}" for name, value in options.items())
    return list(duckdb.sql(f"SELECT * FROM read_csv('{path}', {asked})").to_arrow_table().to_pylist())


def cell(value: Any) -> str | None:
    """The text of a value, written by Python."""
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case bytes():
            return base64.b64encode(value).decode()
        case datetime():
            return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case dict() | list():
            return json.dumps(bare(value), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        case float() if value.is_integer():
            return str(int(value))
        case _:
            return str(value)


def bare(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: bare(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [bare(item) for item in value]
    plain = value is None or isinstance(value, bool | int | str)
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    return value if plain else cell(value)


def cells(rows: list[dict[str, Any]]) -> list[dict[str, str | None]]:
    return [{name: cell(value) for name, value in row.items()} for row in rows]


@pytest.mark.parametrize(("codec", "level"), LEVELLED)
def test_every_value_comes_back_whatever_the_compression(codec: str, level: int | None, tmp_path: Path) -> None:
    wanted = output("Csv", codec, level)

    content = decompress(written(wanted, *BATCHES), codec)

    assert by_duckdb(content, wanted, tmp_path) == cells(rows_of(*BATCHES))


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", "5", "."])
@pytest.mark.parametrize("quote", ["Minimal", "All"])
def test_null_and_empty_text_differ_with_every_delimiter_and_quoting(
    delimiter: str, quote: str, tmp_path: Path
) -> None:
    wanted = changed_output(CSV, delimiter=delimiter, quote=quote)

    data = written(wanted, *BATCHES)

    assert by_duckdb(data, wanted, tmp_path) == cells(rows_of(*BATCHES))
    assert read_back(data, wanted).to_pylist() == cells(rows_of(*BATCHES))


@pytest.mark.parametrize("codec", ["Gzip", "Zstd"])
def test_polars_and_duckdb_read_compressed_objects_by_their_name(codec: str, tmp_path: Path) -> None:
    wanted = output("Csv", codec)
    path = tmp_path / f"object{extension_of(wanted)}"
    path.write_bytes(written(wanted, batch({"n": [1, 2], "t": ["a,b", 'q"'], "d": [0.1, 1e300]})))

    expected = [{"n": 1, "t": "a,b", "d": 0.1}, {"n": 2, "t": 'q"', "d": 1e300}]
    assert pl.read_csv(path).to_dicts() == expected
    assert duckdb.sql(f"SELECT * FROM read_csv('{path}')").to_arrow_table().to_pylist() == expected


def test_only_what_needs_quotes_has_them() -> None:
    rows = batch({"n": [1, None], "t": ["a", "b,c"], 'x"y': ["", None], "o": [{"k": 1}, None]})

    assert written(CSV, rows) == b'n,t,"x""y",o\n1,a,"","{""k"":1}"\n,"b,c",,\n'
    assert written(changed_output(CSV, quote="All"), rows.slice(1)) == b'"n","t","x""y","o"\n,"b,c",,\n'


def test_a_file_without_a_header_starts_with_its_first_row() -> None:
    assert written(changed_output(CSV, header=False), batch({"a": [1], "b": ["x"]})) == b"1,x\n"


def test_a_value_of_5_mb_is_one_field() -> None:
    data = written(CSV, batch({"n": [1], "t": [LARGE]}), batch({"n": [2], "t": ["after"]}))

    assert read_back(data, CSV).to_pylist() == [{"n": "1", "t": LARGE}, {"n": "2", "t": "after"}]
    assert pl.read_csv(io.BytesIO(data)).to_dicts() == [{"n": 1, "t": LARGE}, {"n": 2, "t": "after"}]


@pytest.mark.parametrize("quote", ["Minimal", "All"])
def test_a_null_that_stands_alone_is_still_a_row(quote: str) -> None:
    wanted = changed_output(CSV, quote=quote)
    data = written(wanted, batch({"t": ["a", None, "", "b"]}))

    assert [line.strip(b'"') for line in data.splitlines()] == [b"t", b"a", b"", b"", b"b"]
    assert b"\n\n" not in data


def test_rows_without_any_column_can_be_counted() -> None:
    empty = pa.RecordBatch.from_struct_array(pa.array([{}] * 3, pa.struct([])))

    assert read_back(written(CSV, empty), CSV).num_rows == 3


def test_a_number_looks_the_same_in_a_column_of_doubles() -> None:
    whole = [0, -1, 10**15, 2**53, -(2**53), 123_456_789]

    alone = written(CSV, batch({"n": whole, "k": [1] * 6}))
    widened = written(CSV, batch({"n": [0.5], "k": [1]}), batch({"n": whole, "k": [1] * 6}))

    assert widened.splitlines()[2:] == alone.splitlines()[1:]


def test_rows_that_need_a_wider_schema_are_not_taken_once_the_header_is_written() -> None:
    writer = open_object(CSV, io.BytesIO(), NO_DISK)
    writer.write(batch({"n": [1.5], "t": ["x"]}))
    assert writer.takes(batch({"other": [1]}))
    writer.settle()

    assert writer.takes(batch({"n": [2], "t": [None]}))
    assert writer.takes(batch({"t": [3]}))
    assert not writer.takes(batch({"n": [2**53 + 1]}))
    assert not writer.takes(batch({"n": ["text"]}))
    assert not writer.takes(batch({"other": [1]}))
    with pytest.raises(ValueError, match="wider schema"):
        writer.write(batch({"other": [1]}))


@pytest.mark.parametrize("codec", CODECS)
def test_the_size_after_settling_is_the_size_of_the_object(codec: str) -> None:
    sink = io.BytesIO()
    writer = open_object(output("Csv", codec), sink, NO_DISK)
    rows = batch({"n": list(range(5_000)), "t": [f"text {n * 7919 % 1000}" for n in range(5_000)]})
    for _ in range(3):
        writer.write(rows)
    assert writer.held >= rows.nbytes
    writer.settle()

    size = writer.size
    assert writer.held == 0
    assert size == len(sink.getvalue())
    writer.close()
    assert len(sink.getvalue()) - size < 32


NO_QUOTES = changed_output(CSV, quote="None")


def test_a_value_that_needs_quotes_is_reported_with_its_column() -> None:
    rows = batch(
        {
            "n": [1, 2, 3, 4, 5, 6],
            "t": ["plain", "a,b", 'a"b', "a\nb", None, "a\rb"],
            "o": [None, None, None, None, {"k": 1}, None],
        }
    )

    refused = unwritable(rows, NO_QUOTES)

    assert sorted(refused) == [1, 2, 3, 4, 5]
    assert refused[1] == "column 't' holds the delimiter, a quote or a line break: use csv.quote Minimal"
    assert "'o'" in refused[4]
    assert unwritable(rows, CSV) == {}
    kept = rows.take([0])
    assert written(NO_QUOTES, kept) == b"n,t,o\n1,plain,\n"


def test_a_column_with_a_name_that_needs_quotes_is_left_out_with_its_rows() -> None:
    rows = batch({"n": [1, 2], "a,b": ["x", None]})

    assert list(unwritable(rows, NO_QUOTES)) == [0]
    assert written(NO_QUOTES, rows.slice(1)) == b"n\n2\n"
    bare = changed_output(NO_QUOTES, header=False)
    assert unwritable(rows, bare) == {}
    assert written(bare, rows) == b"1,x\n2,\n"


def test_an_empty_line_is_not_written_for_a_row() -> None:
    rows = batch({"t": ["a", None, ""]})

    assert sorted(unwritable(rows, NO_QUOTES)) == [1, 2]
    assert unwritable(rows, CSV) == {}


def test_no_empty_line_is_written_beside_a_column_without_a_header() -> None:
    rows = batch({"a": ["x", None, "z"], "x,y": [None] * 3}, **{"x,y": pa.string()})

    assert list(unwritable(rows, NO_QUOTES)) == [1]
    assert written(NO_QUOTES, rows.take([0, 2])) == b"a\nx\nz\n"


def test_an_only_column_without_a_name_is_refused() -> None:
    rows = batch({"": ["x", None]})

    refused = unwritable(rows, NO_QUOTES)

    assert sorted(refused) == [0, 1]
    assert refused[0].startswith("column '' has no name and is the only one")
    assert unwritable(rows, CSV) == {}
    assert unwritable(batch({"": ["x"], "a": [1]}), NO_QUOTES) == {}
    assert list(unwritable(rows, changed_output(NO_QUOTES, header=False))) == [1]


def test_a_time_without_a_text_is_reported() -> None:
    far = pa.array([0, 253_402_300_799_999, 253_402_300_800_000, 2**62, -(2**62), None], TIME)
    rows = pa.RecordBatch.from_arrays([far], ["_timestamp"])

    refused = unwritable(rows, CSV)

    assert sorted(refused) == [2, 3, 4]
    assert "_timestamp" in refused[2]
    assert written(CSV, rows.slice(1, 1)) == b"_timestamp\n9999-12-31T23:59:59.999Z\n"


texts = st.text(st.sampled_from('ab,;"\r\n\t é€𝄞\\\0{}'), max_size=8)
doubles = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=150)
@given(
    table=st.lists(st.tuples(st.none() | texts, st.none() | st.integers(-(2**63), 2**63 - 1), st.none() | doubles)),
    delimiter=st.sampled_from([",", ";", "\t", "a", "\\", "é"]),
    quote=st.sampled_from(["Minimal", "All"]),
    header=st.booleans(),
)
def test_any_row_comes_back(
    table: list[tuple[str | None, int | None, float | None]], delimiter: str, quote: str, header: bool
) -> None:
    wanted = changed_output(CSV, delimiter=delimiter, quote=quote, header=header)
    columns = list(zip(*table, strict=True)) or [(), (), ()]
    kinds = (pa.string(), pa.int64(), pa.float64())
    arrays = [pa.array(list(values), kind) for values, kind in zip(columns, kinds, strict=True)]
    if not table:
        return

    found = read_back(written(wanted, pa.RecordBatch.from_arrays(arrays, ["t", "n", "d"])), wanted)

    for (text, number, double), row in zip(table, found.to_pylist(), strict=True):
        got_text, got_number, got_double = row.values()
        assert got_text == text
        assert (None if got_number is None else int(got_number)) == number
        assert (None if got_double is None else float(got_double)) == double


@settings(max_examples=100)
@given(names=st.lists(texts, unique=True, max_size=4), values=st.lists(st.lists(st.none() | texts, max_size=3)))
def test_nested_values_are_json_with_the_same_content(names: list[str], values: list[list[str | None]]) -> None:
    content = [dict.fromkeys(names, value) for value in values]
    kind = pa.struct([(name, pa.list_(pa.string())) for name in names])
    if not content or not names:
        return
    rows = pa.RecordBatch.from_arrays([pa.array(content, kind), pa.array([1] * len(content))], ["o", "k"])

    found = read_back(written(CSV, rows), CSV).column("o").to_pylist()

    assert [json.loads(text) for text in found] == content


def test_a_part_of_a_batch_is_written_and_nothing_beside_it() -> None:
    for start in range(4):
        part = FIRST.slice(start, 1)
        data = written(changed_output(CSV, quote="All"), part)
        names = [field.name for field in FIRST.schema if field.name != "later"]
        assert read_back(data, CSV).to_pylist() == cells(part.select(names).to_pylist())
    assert cell(AT) == "2026-02-28T23:59:59.007Z"
