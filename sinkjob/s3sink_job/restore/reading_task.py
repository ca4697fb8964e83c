"""The first half of the Spark task of a restore: reads the objects of a slice, and returns its records in order.

The second half, `RecordSender.java`, sends them. Each record has a position: its number among all rows of the slice. It
does not depend on filters, so that whole objects can be skipped when a restore resumes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_api.spec import Destination
from s3sink_job.base.errors import FinalError
from s3sink_job.base.retry import RetryPolicy
from s3sink_job.base.secrets import Secrets
from s3sink_job.base.spill import Spill, SpillPlace
from s3sink_job.base.times import iso
from s3sink_job.columns.types import Column
from s3sink_job.proof.flush_history import WrittenObject
from s3sink_job.proof.object_contents import read_rows
from s3sink_job.restore.checksums import record_digests
from s3sink_job.restore.plan import RestoreSlice, Selection
from s3sink_job.restore.record_order import in_order, rows_of, runs_of
from s3sink_job.restore.stored_records import records_of
from s3sink_job.shape.dead_letters import HEADERS
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.factory import open_bucket

BATCH_BYTES = 2 * 2**20
BATCH_ROWS = 10_000
SCHEMA = pa.schema(
    [
        ("slice", pa.int32()),
        ("position", pa.int64()),
        ("partition", pa.int32()),
        ("timestamp", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", HEADERS),
        ("digest", pa.int64()),
    ]
)
SPARK_SCHEMA = (
    "slice int, position bigint, partition int, timestamp bigint, key binary, value binary, "
    "headers array<struct<key: string, value: binary>>, digest bigint"
)


@dataclass(frozen=True)
class TakenTimes:
    """The timestamps that the target takes and keeps, in milliseconds; None for any."""

    oldest: int | None = None
    newest: int | None = None
    why_oldest: str = ""
    why_newest: str = ""

    def check(self, times: Column, place: str) -> None:
        if not len(times):
            return
        first, last = pc.min_max(times).as_py().values()
        if self.oldest is not None and first < self.oldest:
            raise FinalError(f"{place}: a record of {iso(first / 1000)} is too old: {self.why_oldest}", reason="TooOld")
        if self.newest is not None and last > self.newest:
            raise FinalError(f"{place}: a record of {iso(last / 1000)} is too new: {self.why_newest}", reason="TooNew")


@dataclass(frozen=True)
class ReadingTask:
    slices: Sequence[RestoreSlice]
    positions: Sequence[int]
    """Of the slices: the rows before it were sent."""
    order: Sequence[int]
    """Which slice is sent by which task."""
    selection: Selection
    times: Mapping[str, TakenTimes]
    """By target topic."""
    untimed: int
    """The timestamp of records without one: when the restore began, in milliseconds."""
    destination: Destination
    secrets: Secrets
    retrying: RetryPolicy
    spill: SpillPlace

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        bucket = open_bucket(self.destination, self.secrets, self.retrying)
        spill = Spill(self.spill)
        try:
            for task in (number for batch in batches for number in batch.column(0).to_pylist()):
                yield from self._slice(self.order[task], bucket, spill)
        finally:
            spill.close()

    def _slice(self, number: int, bucket: Bucket, spill: Spill) -> Iterator[pa.RecordBatch]:
        wanted, at = self.slices[number], 0
        for run in runs_of(wanted.objects):
            if at + rows_of(run) <= self.positions[number]:
                at += rows_of(run)
                continue
            for records in in_order(run, lambda written: stored_records(bucket, written, wanted), spill):
                positions = pa.array(np.arange(at, at + records.num_rows))
                at += records.num_rows
                numbered = records.append_column("position", positions)
                left = numbered.filter(pc.greater_equal(numbered.column("position"), self.positions[number]))
                for piece in in_pieces(chosen(left, self.selection, self.untimed)):
                    yield self._sendable(piece, number)

    def _sendable(self, records: pa.Table, number: int) -> pa.RecordBatch:
        wanted = self.slices[number]
        self.times[wanted.topic].check(records.column("timestamp"), f"{wanted} after position {self.positions[number]}")
        count = records.num_rows
        partition = pa.nulls(count, pa.int32()) if wanted.partition is None else pa.repeat(wanted.partition, count)
        columns = {name: _whole(records.column(name)) for name in SCHEMA.names if name in records.column_names}
        columns |= {"slice": pa.repeat(number, count), "partition": partition}
        columns["digest"] = pa.array(record_digests(records).view(np.int64))
        return pa.RecordBatch.from_arrays([columns[f.name].cast(f.type) for f in SCHEMA], schema=SCHEMA)


def stored_records(bucket: Bucket, written: WrittenObject, part: RestoreSlice) -> pa.Table:
    """The records in an object. Raises if it is not what its manifest says."""
    entry, own = written.entry, bucket.named(written.entry.bucket)
    rows = read_rows(own, entry, written.encoding)
    if rows is None:
        raise FinalError(
            f"{own.url(entry.key)} is not in the bucket: restore the object, or leave its records out with --offsets. "
            f"It had the offsets {entry.first} to {entry.last} of {entry.topic}-{entry.partition}",
            reason="ObjectMissing",
        )
    if rows.num_rows != entry.rows:
        raise FinalError(
            f"{own.url(entry.key)} has {rows.num_rows:,} rows, but {entry.rows:,} were written: it was changed since",
            reason="ObjectChanged",
        )
    return records_of(rows, entry, written.encoding, part.left_out, part.bounds.get(entry.key))


def chosen(records: pa.Table, selection: Selection, untimed: int) -> pa.Table:
    """The records to be sent, each with a timestamp."""
    times, offsets = records.column("timestamp"), records.column("offset")
    times = pc.if_else(pc.fill_null(pc.less(times, 0), True), pa.scalar(untimed, pa.int64()), times)
    records = records.set_column(records.schema.get_field_index("timestamp"), "timestamp", times)
    keep = pc.invert(records.column("left_out"))
    if selection.since is not None:
        keep = pc.and_(keep, pc.greater_equal(times, selection.since))
    if selection.until is not None:
        keep = pc.and_(keep, pc.less(times, selection.until))
    if selection.first is not None:
        keep = pc.and_(keep, pc.greater_equal(offsets, selection.first))
    if selection.end is not None:
        keep = pc.and_(keep, pc.less(offsets, selection.end))
    return records.filter(keep)


def in_pieces(records: pa.Table) -> Iterator[pa.Table]:
    """Of limited length in bytes and rows, and at least one record."""
    if not records.num_rows:
        return
    lengths = np.zeros(records.num_rows, np.int64)
    for name in ("key", "value"):
        own = pc.fill_null(pc.binary_length(records.column(name)), 0)
        lengths += own.to_numpy().astype(np.int64)
    ends = np.cumsum(lengths)
    start = 0
    while start < records.num_rows:
        before = ends[start - 1] if start else 0
        end = int(np.searchsorted(ends, before + BATCH_BYTES, side="right"))
        end = min(max(end, start + 1), start + BATCH_ROWS, records.num_rows)
        yield records.slice(start, end - start)
        start = end


def _whole(column: pa.ChunkedArray) -> Column:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
