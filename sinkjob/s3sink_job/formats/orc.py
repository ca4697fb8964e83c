"""ORC. All rows that are encoded at one time become whole stripes, so that nothing of them stays in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc

from s3sink_job.encoding import Encoding
from s3sink_job.formats.compression import ByteSink
from s3sink_job.formats.files import sink_file
from s3sink_job.formats.pending import FixedObject

Column: TypeAlias = pa.Array
CODECS = {"None": "uncompressed", "Snappy": "snappy", "Lz4": "lz4", "Zstd": "zstd", "Deflate": "zlib"}
ENOUGH = 64 * 2**20
STRIPE_ROWS = 65_536
MAGIC = b"ORC"
FOOTER_BYTES = 1024
NO_TIME = -1
MOST_MILLIS = 2**63 // 1_000_000
ZONES = Path("/usr/share/zoneinfo")


class OrcObject(FixedObject):
    def __init__(self, encoding: Encoding, sink: ByteSink) -> None:
        super().__init__(lambda record: OrcEncoder(encoding, sink, record), ENOUGH)


class OrcEncoder:
    held = 0

    def __init__(self, encoding: Encoding, sink: ByteSink, record: pa.StructType) -> None:
        find_time_zones()
        self._sink = sink
        self._gathered = _Gathered()
        # A stripe is full when it has any size at all: the writer looks after each batch that it takes.
        self._writer = orc.ORCWriter(
            sink_file(self._gathered), compression=CODECS[encoding.codec], stripe_size=1, batch_size=STRIPE_ROWS
        )
        self._sent = 0

    @property
    def size(self) -> int:
        # What it begins with comes with the first rows, but says nothing about them.
        return max(self._sent, len(MAGIC)) + FOOTER_BYTES

    def write(self, rows: pa.Table) -> None:
        for batch in rows.combine_chunks().to_batches(max_chunksize=STRIPE_ROWS):
            # Arrow's writer looks for the children of a part of a column at the column's start.
            whole = [masked(on_the_wall(pa.concat_arrays([column]))) for column in batch.columns]
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


def on_the_wall(column: Column) -> Column:
    """Times as a clock in UTC shows them: Spark cannot read files with ORC's other type of time."""
    return _with_times(column, lambda times: times.cast(pa.int64()).cast(pa.timestamp("ms")))


def told_times(column: Column) -> Column:
    """Without the time of a record that has none, which for Kafka is -1: readers fail on it."""
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


def unwritable(rows: pa.RecordBatch) -> dict[int, str]:
    """The rows with a time that Arrow, and so `verify`, cannot read from ORC, with why. A caller leaves them out."""
    why = "holds a time beyond the years 1678 to 2261, which many readers of ORC have no nanoseconds for"
    return {
        row: f"column {name!r} {why}"
        for name, column in zip(rows.schema.names, rows.columns, strict=True)
        for times in _times(column)
        for row in pc.indices_nonzero(pc.or_(pc.less(times, -MOST_MILLIS), pc.greater(times, MOST_MILLIS))).to_pylist()
    }


def _times(column: Column) -> Iterator[Column]:
    """In milliseconds, also those of a struct's fields."""
    if pa.types.is_timestamp(column.type):
        yield column.cast(pa.int64())
    elif pa.types.is_struct(column.type):
        for child in column.flatten():
            yield from _times(child)


def masked(column: Column) -> Column:
    """Null wherever something around it is: Arrow's writer would give what lies below a null object to the next."""
    kind = column.type
    if pa.types.is_struct(kind):
        children = [masked(child) for child in column.flatten()]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=column.is_null())
    if pa.types.is_list(kind):
        column = pa.concat_arrays([column])  # without an offset of its own
        return pa.ListArray.from_arrays(column.offsets, masked(column.values), type=kind, mask=column.is_null())
    return column


class _Gathered:
    """What Arrow's writer wrote until it is sent on: an error in the midst of its work would end the process."""

    def __init__(self) -> None:
        self._parts: list[bytes | memoryview] = []

    def write(self, data: bytes | memoryview) -> int:
        self._parts.append(data)
        return len(data)

    def take(self) -> list[bytes | memoryview]:
        parts, self._parts = self._parts, []
        return parts


def find_time_zones() -> None:
    """The library wants a file of the time zone database even for UTC; not every system has one."""
    if "TZDIR" not in os.environ and not ZONES.exists() and (package := find_spec("tzdata")) and package.origin:
        os.environ["TZDIR"] = str(Path(package.origin).parent / "zoneinfo")
