"""Output format Orc. Rows that are encoded together become whole stripes, so that none of them stays in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc

from s3sink_job.base.spill import Spill
from s3sink_job.columns.types import Column
from s3sink_job.decode.bad_records import Fault
from s3sink_job.formats.compression import ByteSink
from s3sink_job.formats.output_format import ObjectWriter, OutputFormat
from s3sink_job.formats.row_buffer import FixedSchemaObject
from s3sink_job.formats.settings import Output
from s3sink_job.formats.sink_file import sink_file
from s3sink_job.shape.settings import RowKind

TIME = pa.timestamp("ms", "UTC")
CODECS = {"None": "uncompressed", "Snappy": "snappy", "Lz4": "lz4", "Zstd": "zstd", "Deflate": "zlib"}
ENOUGH = 64 * 2**20
STRIPE_ROWS = 65_536
MAGIC = b"ORC"
FOOTER_BYTES = 1024
NO_TIME = -1
MOST_MILLIS = 2**63 // 1_000_000
ZONES = Path("/usr/share/zoneinfo")


class OrcFormat(OutputFormat):
    name = "Orc"
    extension = ".orc"
    content_type = "application/vnd.apache.orc"
    rows = RowKind.COLUMNS
    compresses_within = True

    def open(self, output: Output, sink: ByteSink, spill: Spill) -> ObjectWriter:
        return FixedSchemaObject(lambda record: OrcEncoder(output, sink), ENOUGH)

    def read(self, data: bytes, output: Output) -> pa.Table:
        find_time_zones()
        table = orc.ORCFile(pa.BufferReader(data)).read()
        return table.cast(pa.schema([pa.field(f.name, _in_millis(f.type)) for f in table.schema]))

    def unwritable(self, rows: pa.RecordBatch, output: Output) -> dict[int, Fault]:
        """Rows with a time that Arrow, and so `verify`, cannot read from ORC."""
        why = "holds a time beyond the years 1678 to 2261, which many readers of ORC have no nanoseconds for"
        return {
            row: Fault("TimeOutOfRange", f"column {name!r} {why}")
            for name, column in zip(rows.schema.names, rows.columns, strict=True)
            for times in _times(column)
            for row in pc.indices_nonzero(
                pc.or_(pc.less(times, -MOST_MILLIS), pc.greater(times, MOST_MILLIS))
            ).to_pylist()
        }

    def comparable(self, rows: pa.Table, output: Output, found: pa.Schema) -> pa.Table:
        if rows.num_columns:
            columns = [without_no_time(pa.concat_arrays(column.chunks)) for column in rows.combine_chunks().columns]
            rows = pa.Table.from_arrays(columns, schema=rows.schema)
        return super().comparable(rows, output, found)


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
            whole = [masked(without_time_zone(pa.concat_arrays([column]))) for column in batch.columns]
            self._writer.write(pa.Table.from_arrays(whole, batch.schema.names))
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


def without_time_zone(column: Column) -> Column:
    """Times in UTC, by ORC's type without a time zone: Spark cannot read the other one."""
    return _with_times(column, lambda times: times.cast(pa.int64()).cast(pa.timestamp("ms")))


def without_no_time(column: Column) -> Column:
    """Null in place of Kafka's -1 ms, the time of a record without one: readers of ORC fail on it."""
    return _with_times(column, lambda times: times)


def _with_times(column: Column, change: Callable[[Column], Column]) -> Column:
    kind = column.type
    if pa.types.is_timestamp(kind):
        none = pc.equal(column.cast(pa.int64()), NO_TIME)
        return change(pc.if_else(none, pa.scalar(None, kind), column))
    if not pa.types.is_struct(kind) or not any(pa.types.is_timestamp(field.type) for field in kind):
        return column
    children = [_with_times(child, change) for child in column.flatten()]
    fields = [pa.field(field.name, child.type) for field, child in zip(kind, children, strict=True)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=column.is_null())


def _times(column: Column) -> Iterator[Column]:
    """The times in a column, in milliseconds, also in fields of structs."""
    if pa.types.is_timestamp(column.type):
        yield column.cast(pa.int64())
    elif pa.types.is_struct(column.type):
        for child in column.flatten():
            yield from _times(child)


def _in_millis(kind: pa.DataType) -> pa.DataType:
    """Arrow's reader gives nanoseconds, whatever was written."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _in_millis(f.type)) for f in kind])
    if pa.types.is_list(kind):
        return pa.list_(_in_millis(kind.value_type))
    return TIME if pa.types.is_timestamp(kind) else kind


def masked(column: Column) -> Column:
    """Null wherever a struct around it is null: Arrow's writer would move children of a null struct to the next row."""
    kind = column.type
    if pa.types.is_struct(kind):
        children = [masked(child) for child in column.flatten()]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=column.is_null())
    if pa.types.is_list(kind):
        column = pa.concat_arrays([column])  # a copy without an offset
        return pa.ListArray.from_arrays(column.offsets, masked(column.values), type=kind, mask=column.is_null())
    return column


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
