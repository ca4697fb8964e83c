"""What `verify` reads from an object equals the rows of Kafka, unless something is missing or different."""

from __future__ import annotations

import pyarrow as pa
import pytest

from s3sink_job.formats.settings import Output
from tests.encodings import changed_output, output
from tests.formats.samples import BATCHES, FIRST, batch, comparable, read_back, written

CSV = output("Csv")
ALL = [
    *(output(format) for format in ("Parquet", "Avro", "Orc", "Csv")),
    *(changed_output(CSV, quote=quote, header=header) for quote in ("Minimal", "All") for header in (True, False)),
]


def together(*batches: pa.RecordBatch) -> pa.Table:
    """Kafka's rows with all fields as columns."""
    return pa.concat_tables([pa.Table.from_batches([b]) for b in batches], promote_options="permissive")


@pytest.mark.parametrize("wanted", ALL, ids=lambda e: f"{e.format}-{e.csv.quote}-{e.csv.header}")
def test_what_was_written_compares_equal(wanted: Output) -> None:
    found = read_back(written(wanted, *BATCHES), wanted)

    should = comparable(together(*BATCHES), wanted, found.schema)

    assert should.equals(found)


@pytest.mark.parametrize("format", ["Parquet", "Avro", "Orc", "Csv"])
def test_the_order_of_columns_and_narrower_types_make_no_difference(format: str) -> None:
    wanted = output(format)
    found = read_back(written(wanted, batch({"n": [0.5], "t": ["x"]}), batch({"n": [10**15], "t": ["y"]})), wanted)

    should = comparable(batch({"t": ["y"], "n": [10**15]}), wanted, found.schema)

    assert should.to_pylist() == found.to_pylist()[1:]


@pytest.mark.parametrize("format", ["Parquet", "Avro", "Orc", "Csv"])
@pytest.mark.parametrize(
    ("inside", "in_kafka"),
    [
        ({"n": [1], "t": ["x"]}, {"n": [1], "t": ["x"], "more": [1]}),
        ({"n": [1], "o": [{"a": 1}]}, {"n": [1], "o": [{"a": 1, "b": 2}]}),
        ({"n": [1], "t": [None]}, {"n": [1], "t": ["x"]}),
        ({"n": [1], "t": ["x"]}, {"n": [1], "t": [None]}),
        ({"n": [1], "t": [""]}, {"n": [1], "t": [None]}),
        ({"n": [1], "l": [[1]]}, {"n": [1], "l": [[1, None]]}),
    ],
)
def test_a_missing_or_different_value_is_found(
    format: str, inside: dict[str, list[object]], in_kafka: dict[str, list[object]]
) -> None:
    wanted = output(format)
    found = read_back(written(wanted, batch(inside)), wanted)

    assert comparable(batch(in_kafka), wanted, found.schema).to_pylist() != found.to_pylist()


@pytest.mark.parametrize("format", ["Parquet", "Avro", "Orc", "Csv"])
def test_fields_that_other_records_have_make_no_difference(format: str) -> None:
    wanted = output(format)
    rows = batch({"n": [1, 2], "o": [{"a": 1, "b": None}, {"a": 1, "b": 2}], "other": [None, "x"]})
    found = read_back(written(wanted, batch({"n": [1], "o": [{"a": 1}]})), wanted)

    should = comparable(rows.slice(0, 1), wanted, found.schema)

    assert should.to_pylist() == found.to_pylist()


def test_without_quotes_null_and_empty_text_are_equal() -> None:
    wanted = changed_output(CSV, quote="None")
    rows = batch({"n": [1, 2], "t": ["", None]})
    found = read_back(written(wanted, rows), wanted)

    assert comparable(rows, wanted, found.schema).equals(found)


def test_in_a_file_of_one_column_null_and_empty_text_are_equal() -> None:
    rows = batch({"t": ["a", "", None]})
    found = read_back(written(CSV, rows), CSV)

    assert comparable(rows, CSV, found.schema).equals(found)


@pytest.mark.parametrize("format", ["Json", "Text"])
@pytest.mark.parametrize("codec", ["None", "Xz", "Lz4"])
def test_lines_are_one_column(format: str, codec: str) -> None:
    rows = pa.RecordBatch.from_arrays([pa.array([b'{"a":1}', b"", b"x"], pa.binary())], ["line"])
    wanted = output(format, codec)

    assert read_back(written(wanted, rows, rows), wanted).to_pylist() == (rows.to_pylist() * 2)


@pytest.mark.parametrize("format", ["Parquet", "Avro", "Orc", "Csv"])
def test_half_an_object_is_never_taken_for_a_whole_one(format: str) -> None:
    wanted = output(format, "Zstd")
    data = written(wanted, FIRST)

    with pytest.raises((EOFError, ValueError, OSError, pa.ArrowException)):
        read_back(data[: len(data) * 2 // 3], wanted)
