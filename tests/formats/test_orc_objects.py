"""ORC objects: every row comes back, nothing stays in memory, and the schema may widen until rows are encoded."""

from __future__ import annotations

import gc
import io
import os
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from s3sink_job.formats.orc import STRIPE_ROWS
from s3sink_job.formats.output_format import ObjectWriter
from tests.encodings import output
from tests.formats.samples import (
    BATCHES,
    FIRST,
    LARGE,
    NO_DISK,
    TIME,
    batch,
    open_object,
    read_back,
    rows_of,
    unwritable,
    written,
)

ORC = output("Orc")
CODECS = {"None": "UNCOMPRESSED", "Snappy": "SNAPPY", "Lz4": "LZ4", "Zstd": "ZSTD", "Deflate": "ZLIB"}


def without_no_time(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Kafka's time of a record without one is null in ORC."""
    none = datetime(1969, 12, 31, 23, 59, 59, 999000, UTC)
    return [{name: None if value == none else value for name, value in row.items()} for row in rows]


def by_arrow(data: bytes) -> list[dict[str, Any]]:
    return list(orc.ORCFile(io.BytesIO(data)).read().to_pylist())


@pytest.mark.parametrize("codec", CODECS)
def test_every_value_comes_back_whatever_the_compression(codec: str) -> None:
    wanted = output("Orc", codec)

    data = written(wanted, *BATCHES)

    assert orc.ORCFile(io.BytesIO(data)).compression == CODECS[codec]
    assert read_back(data, wanted).to_pylist() == without_no_time(rows_of(*BATCHES))


def test_a_part_of_a_batch_is_written_and_nothing_beside_it() -> None:
    kept = FIRST.select([name for name in FIRST.schema.names if name != "later"])
    for start in range(4):
        part = kept.slice(start, 2)
        assert read_back(written(ORC, part), ORC).to_pylist() == without_no_time(part.to_pylist())


def test_rows_beyond_one_stripe_are_in_their_order() -> None:
    count = STRIPE_ROWS + 1_000
    content = {"n": list(range(count)), "o": [{"l": [{"k": n}]} if n % 3 else None for n in range(count)]}

    data = written(ORC, batch(content))

    assert orc.ORCFile(io.BytesIO(data)).nstripes == 2
    assert by_arrow(data) == batch(content).to_pylist()


def test_a_value_of_5_mb_comes_back() -> None:
    rows = batch({"t": [LARGE, "after", None]})

    assert by_arrow(written(ORC, rows)) == rows.to_pylist()


def test_rows_without_any_column_can_be_counted() -> None:
    empty = pa.RecordBatch.from_struct_array(pa.array([{}] * 3, pa.struct([])))

    assert len(by_arrow(written(ORC, empty))) == 3


@pytest.mark.parametrize("codec", CODECS)
def test_the_size_is_known_and_nothing_held_after_settling(codec: str) -> None:
    sink = io.BytesIO()
    writer = open_object(output("Orc", codec), sink, NO_DISK)
    for seed in range(4):
        before = len(sink.getvalue())
        writer.write(batch({"n": list(range(seed, 20_000)), "t": [f"{n * 7919}" for n in range(seed, 20_000)]}))
        writer.settle()
        assert len(sink.getvalue()) > before + 10_000
        assert writer.held == 0

    size = writer.size
    writer.close()
    assert size == pytest.approx(len(sink.getvalue()), rel=0.01, abs=1_024)


def test_rows_that_need_a_wider_schema_are_not_taken_once_it_is_written() -> None:
    writer = open_object(ORC, io.BytesIO(), NO_DISK)
    writer.write(batch({"n": [1]}))
    assert writer.takes(batch({"n": [1.5]}))
    writer.settle()

    assert writer.takes(batch({"n": [2]}))
    assert not writer.takes(batch({"n": [1.5]}))
    assert not writer.takes(batch({"m": [1]}))


class Broken(Exception):
    pass


class BreakingSink:
    def __init__(self, after: int) -> None:
        self.left = after

    def write(self, data: bytes | memoryview) -> int:
        self.left -= 1
        if self.left < 0:
            raise Broken("no more")
        return len(data)


def write_and_settle(writer: ObjectWriter, times: int) -> None:
    for _ in range(times):
        writer.write(batch({"n": list(range(2_000)), "t": [str(n * 7919) for n in range(2_000)]}))
        writer.settle()


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("after", [0, 1, 2, 3])
@pytest.mark.parametrize("format", ["Orc", "Avro", "Csv"])
def test_what_the_upload_raises_is_raised(format: str, after: int) -> None:
    writer = open_object(output(format), BreakingSink(after), NO_DISK)

    with pytest.raises(Broken, match="no more"):
        write_and_settle(writer, times=9)
    writer.abandon()
    del writer
    gc.collect()


BOUND = 9_223_372_036_854
"""Milliseconds: beyond it 64 bits do not hold the nanoseconds."""
FAR = [0, BOUND, -BOUND // 1_000 * 1_000 + 1_000, BOUND + 1, -BOUND - 1, 2**63 - 1, -(2**63), None]


@pytest.mark.parametrize("nested", [False, True])
def test_a_time_that_readers_fail_on_is_reported_and_others_come_back(nested: bool) -> None:
    times = pa.array(FAR, TIME)
    column = pa.StructArray.from_arrays([times], ["timestamp"]) if nested else times
    rows = pa.RecordBatch.from_arrays([column], ["metadata"])

    refused = unwritable(rows, ORC)

    assert sorted(refused) == [3, 4, 5, 6]
    assert refused[3].startswith("column 'metadata' holds a time beyond the years 1678 to 2261")
    kept = rows.take([0, 1, 2, 7])
    assert read_back(written(ORC, kept), ORC).to_batches()[0].column(0).equals(kept.column(0))
    for row in refused:
        with pytest.raises(pa.ArrowInvalid, match="out of range"):
            read_back(written(ORC, rows.slice(row, 1)), ORC)


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_a_fraction_of_a_second_before_1970_is_reported_at_any_depth(unit: str) -> None:
    """Arrow writes a negative fraction, on which Spark fails whatever the other rows hold."""
    second = {"ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    times = pa.array([-1, -second, 1, -second - 1, None], pa.timestamp(unit))
    deep = pa.array([[("k", [value])] for value in times], pa.map_(pa.string(), pa.list_(times.type)))
    rows = pa.RecordBatch.from_arrays([times, deep], ["time", "deep"])

    for name in rows.schema.names:
        refused = unwritable(rows.select([name]), ORC)
        assert sorted(refused) == [0, 3]
        assert refused[0].startswith(f"column {name!r} holds a time before 1970 with a fraction of a second")


def test_formats_that_hold_any_time_refuse_none() -> None:
    rows = pa.RecordBatch.from_arrays([pa.array(FAR, TIME)], ["_timestamp"])

    for format in ("Parquet", "Avro"):
        assert unwritable(rows, output(format)) == {}


def test_times_are_written_where_the_system_has_no_time_zones() -> None:
    script = (
        "from pathlib import Path; from s3sink_job.formats import orc; orc.ZONES = Path('/nowhere');"
        "from tests.encodings import output; from tests.formats.samples import *; import os;"
        "data = written(output('Orc'), FIRST);"
        "assert read_back(data, output('Orc')).column('_timestamp')[0].as_py() == AT;"
        "assert 'tzdata' in os.environ['TZDIR']"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("TZDIR", None)

    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
