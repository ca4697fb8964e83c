"""Output format Orc. Rows that are encoded together become whole stripes, so that none of them stays in memory."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc

from s3sink_job.base.spill import Spill
from s3sink_job.columns.nested import rows_where, with_items
from s3sink_job.columns.time_text import not_in_a_day
from s3sink_job.columns.types import Column
from s3sink_job.decode.bad_records import Fault
from s3sink_job.formats.compression import ByteSink
from s3sink_job.formats.orc_columns import declared, readable, storable, without_no_time
from s3sink_job.formats.output_format import ObjectWriter, OutputFormat
from s3sink_job.formats.row_buffer import FixedSchemaObject
from s3sink_job.formats.settings import Output
from s3sink_job.formats.sink_file import sink_file
from s3sink_job.formats.source_notes import NO_NOTES, SourceNotes
from s3sink_job.shape.settings import RowKind

CODECS = {"None": "uncompressed", "Snappy": "snappy", "Lz4": "lz4", "Zstd": "zstd", "Deflate": "zlib"}
ENOUGH = 64 * 2**20
STRIPE_ROWS = 65_536
MAGIC = b"ORC"
FOOTER_BYTES = 1024
MOST_NANOS = 2**63 - 1
BEYOND = "holds a time beyond the years 1678 to 2261, which many readers of ORC have no nanoseconds for"
FRACTION = "holds a time before 1970 with a fraction of a second: readers in Java fail on an object with one"
NO_TIME_OF_DAY = "holds a time that is not within a day"
ZONES = Path("/usr/share/zoneinfo")


class OrcFormat(OutputFormat):
    name = "Orc"
    extension = ".orc"
    content_type = "application/vnd.apache.orc"
    rows = RowKind.COLUMNS
    compresses_within = True

    def open(self, output: Output, sink: ByteSink, spill: Spill, notes: SourceNotes = NO_NOTES) -> ObjectWriter:
        return FixedSchemaObject(lambda record: OrcEncoder(output, sink), ENOUGH)

    def read(self, data: bytes, output: Output) -> pa.Table:
        find_time_zones()
        table = orc.ORCFile(pa.BufferReader(data)).read()
        columns = [readable(pa.concat_arrays(c.chunks), f) for c, f in zip(_whole(table), table.schema, strict=True)]
        return pa.Table.from_arrays(columns, table.schema.names)

    def unwritable(self, rows: pa.RecordBatch, output: Output) -> dict[int, Fault]:
        """Rows with a time that readers, and for some of them `verify`, cannot read from ORC."""
        found: dict[int, Fault] = {}
        for name, column in zip(rows.schema.names, rows.columns, strict=True):
            times = without_no_time(column, name)
            for wanted, test, why in CHECKS:
                for row in rows_where(times, wanted, test):
                    found.setdefault(row, Fault("TimeOutOfRange", f"column {name!r} {why}"))
        return found

    def comparable(self, rows: pa.Table, output: Output, found: pa.Schema) -> pa.Table:
        if rows.num_columns:
            named = zip(_whole(rows), rows.schema.names, strict=True)
            columns = [without_no_time(pa.concat_arrays(column.chunks), name) for column, name in named]
            rows = pa.Table.from_arrays(columns, schema=rows.schema)
        return super().comparable(rows, output, found)


def _whole(table: pa.Table) -> list[pa.ChunkedArray]:
    """Each column with a chunk, even without rows."""
    return [c if c.num_chunks else pa.chunked_array([pa.nulls(0, c.type)]) for c in table.columns]


def _beyond_nanos(times: Column) -> Column:
    most = MOST_NANOS // NANOS[times.type.unit]
    raw = times.cast(pa.int64())
    return pc.fill_null(pc.or_(pc.less(raw, -most), pc.greater(raw, most)), False)


def _fraction_before_1970(times: Column) -> Column:
    """Arrow writes a negative fraction of a second for these."""
    raw, second = times.cast(pa.int64()), 1_000_000_000 // NANOS[times.type.unit]
    whole = pc.equal(pc.multiply(pc.divide(raw, second), second), raw)
    return pc.fill_null(pc.and_(pc.less(raw, 0), pc.invert(whole)), False)


NANOS = {"ms": 1_000_000, "us": 1_000, "ns": 1}
CHECKS = (
    (pa.types.is_timestamp, _beyond_nanos, BEYOND),
    (pa.types.is_timestamp, _fraction_before_1970, FRACTION),
    (pa.types.is_time, not_in_a_day, NO_TIME_OF_DAY),
)


class OrcEncoder:
    held = 0

    def __init__(self, output: Output, sink: ByteSink) -> None:
        find_time_zones()
        self._sink = sink
        self._gathered = _Gathered()
        # With this size each batch is a stripe: the writer checks the size after each batch.
        self._writer = orc.ORCWriter(
            sink_file(self._gathered), compression=CODECS[output.codec], stripe_size=1, batch_size=STRIPE_ROWS
        )
        self._sent = 0

    @property
    def size(self) -> int:
        # The magic bytes are written with the first rows, but are not part of them.
        return max(self._sent, len(MAGIC)) + FOOTER_BYTES

    def write(self, rows: pa.Table) -> None:
        for batch in rows.combine_chunks().to_batches(max_chunksize=STRIPE_ROWS):
            # A copy of each column: for a slice of a column Arrow's writer reads its children from the column's start.
            named = zip(batch.columns, batch.schema.names, strict=True)
            whole = [masked(storable(without_no_time(pa.concat_arrays([c]), name))) for c, name in named]
            self._writer.write(pa.Table.from_arrays(whole, schema=pa.schema([declared(f) for f in batch.schema])))
            self._send()

    def settle(self) -> None:
        return

    def close(self) -> None:
        self._writer.close()
        self._send()

    def _send(self) -> None:
        for data in self._gathered.take():
            self._sink.write(data)
            self._sent += len(data)


def masked(column: Column) -> Column:
    """Null wherever a struct around it is null: Arrow's writer would move children of a null struct to the next row."""
    kind = column.type
    if pa.types.is_struct(kind):
        children = [masked(child) for child in column.flatten()]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=column.is_null())
    return with_items(column, masked) if pa.types.is_list(kind) or pa.types.is_map(kind) else column


class _Gathered:
    """Collects what Arrow's writer writes: an error of the sink within the writer would end the process."""

    def __init__(self) -> None:
        self._parts: list[bytes | memoryview] = []

    def write(self, data: bytes | memoryview) -> int:
        self._parts.append(data)
        return len(data)

    def take(self) -> list[bytes | memoryview]:
        parts, self._parts = self._parts, []
        return parts


def find_time_zones() -> None:
    """The library needs a time zone database even for UTC; not every system has one."""
    if "TZDIR" not in os.environ and not ZONES.exists() and (package := find_spec("tzdata")) and package.origin:
        os.environ["TZDIR"] = str(Path(package.origin).parent / "zoneinfo")
