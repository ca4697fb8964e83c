"""Parquet. The schema of an object is fixed by its last row, so it is encoded before it is sent.

Row groups are encoded as they fill, each run of equal schema into a spill file of its own. Mostly that is one
run, and its file is the object. After a change of schema the runs are read back, widened and encoded anew,
once, whatever the number of changes. What fits into one row group never touches the disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from s3sink_job.encoding import Encoding
from s3sink_job.formats.compression import ByteSink
from s3sink_job.schema.cast import Inexact, as_text_at, cast_rows, may_round
from s3sink_job.schema.types import TEXT, merge_all, writable
from s3sink_job.spec import MORE
from s3sink_job.spill import Spill

CODECS = {"None": "none", "Gzip": "gzip", "Snappy": "snappy", "Lz4": "lz4", "Zstd": "zstd", "Brotli": "brotli"}
COPY_BYTES = 1 << 20
FOOTER_BYTES = 512


@dataclass
class Run:
    """Row groups of one schema in a file."""

    record: pa.StructType
    path: Path
    writer: pq.ParquetWriter
    file: pa.NativeFile

    @property
    def size(self) -> int:
        return int(self.file.tell())


class ParquetObject:
    def __init__(self, encoding: Encoding, sink: ByteSink, spill: Spill) -> None:
        self._encoding, self._sink, self._spill = encoding, sink, spill
        self._pending: list[pa.RecordBatch] = []
        self._held = 0
        self._runs: list[Run] = []
        self._ratio = 1.0
        self._texts: list[tuple[str, ...]] = []

    @property
    def held(self) -> int:
        return self._held

    @property
    def size(self) -> int:
        """Exact for what is encoded, by the last row group's ratio for the rest."""
        return sum(run.size for run in self._runs) + int(self._held * self._ratio) + FOOTER_BYTES

    def write(self, rows: pa.RecordBatch) -> None:
        self._pending.append(rows)
        self._held += rows.nbytes
        if self._held >= self._encoding.row_group_bytes:
            self.settle()

    def settle(self) -> None:
        """Encodes what is held."""
        if not self._pending:
            return
        rows = self._take()
        record = pa.struct(list(rows.schema))
        run = self._runs[-1] if self._runs and self._runs[-1].record.equals(record) else self._begin(record)
        before, held = run.size, rows.nbytes
        with self._spill.writing():
            run.writer.write_table(rows, row_group_size=max(1, rows.num_rows))
        self._ratio = (run.size - before) / max(1, held)
        self._spill.grew(run.path, run.size)
        # A row group is by far the largest thing in memory; what it took would stay with Arrow until the next one.
        del rows
        pa.default_memory_pool().release_unused()

    def close(self) -> tuple[tuple[str, ...], ...]:
        if not self._runs:
            rows = self._take()
            with self._open(pa.struct(list(rows.schema)), _sink_file(self._sink)) as writer:
                writer.write_table(rows, row_group_size=max(1, rows.num_rows))
            return tuple(self._texts)
        self.settle()
        with self._spill.writing():
            for run in self._runs:
                run.writer.close()
                run.file.close()
        if len(self._runs) == 1:
            _copy(self._runs[0].path, self._sink)
        else:
            self._unite()
        for run in self._runs:
            self._spill.remove(run.path)
        return tuple(self._texts)

    def abandon(self) -> None:
        for run in self._runs:
            # A full disk may be why; and a writer that is left open would try once more when it is collected.
            with suppress(OSError, pa.ArrowException):
                run.writer.close()
            with suppress(OSError, pa.ArrowException):
                run.file.close()
            self._spill.remove(run.path)

    def _take(self) -> pa.Table:
        batches, self._pending, self._held = self._pending, [], 0
        record = _record(pa.struct(list(b.schema)) for b in batches)
        while True:
            try:
                return _exactly(batches, record)
            except Inexact as error:
                record = self._as_text(record, error)

    def _begin(self, record: pa.StructType) -> Run:
        path = self._spill.new_file()
        with self._spill.writing():
            file = pa.OSFile(str(path), "wb")
            run = Run(record, path, self._open(record, file), file)
        self._runs.append(run)
        return run

    def _open(self, record: pa.StructType, file: pa.NativeFile) -> pq.ParquetWriter:
        return pq.ParquetWriter(
            file,
            pa.schema(list(record)),
            compression=CODECS[self._encoding.codec],
            compression_level=self._encoding.level,
            use_dictionary=self._encoding.dictionary,
            write_statistics=self._encoding.statistics,
        )

    def _unite(self) -> None:
        record = _record(run.record for run in self._runs)
        while any(may_round(run.record, record) for run in self._runs):
            try:
                for rows in self._groups():
                    _exactly([rows], record)
                break
            except Inexact as error:
                record = self._as_text(record, error)
        with self._open(record, _sink_file(self._sink)) as writer:
            for rows in self._groups():
                table = _exactly([rows], record)
                writer.write_table(table, row_group_size=max(1, table.num_rows))

    def _as_text(self, record: pa.StructType, error: Inexact) -> pa.StructType:
        self._texts.append(error.path)
        return as_text_at(record, error.path)

    def _groups(self) -> Iterator[pa.RecordBatch]:
        for run in self._runs:
            with pq.ParquetFile(run.path) as file:
                for number in range(file.num_row_groups):
                    yield file.read_row_group(number, use_threads=False).combine_chunks().to_batches()[0]


def _record(records: Iterable[pa.StructType]) -> pa.StructType:
    """What all of them fit into, and Parquet can hold: at least one column, or the rows could not be counted."""
    record = writable(merge_all(records))
    return record if len(record) else pa.struct([pa.field(MORE, TEXT)])


def _exactly(batches: list[pa.RecordBatch], record: pa.StructType) -> pa.Table:
    return pa.Table.from_batches([cast_rows(b, record) for b in batches], pa.schema(list(record)))


def _copy(path: Path, sink: ByteSink) -> None:
    with path.open("rb") as file:
        while data := file.read(COPY_BYTES):
            sink.write(data)


def _sink_file(sink: ByteSink) -> pa.NativeFile:
    return pa.PythonFile(_Writable(sink), mode="w")


class _Writable:
    """As much of a file as Arrow asks of one it writes to."""

    def __init__(self, sink: ByteSink) -> None:
        self._sink = sink
        self.closed = False

    def write(self, data: bytes | pa.Buffer) -> int:
        # Arrow may use a buffer again once it is written.
        return self._sink.write(bytes(data))

    def flush(self) -> None:
        return

    def close(self) -> None:
        self.closed = True

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False
