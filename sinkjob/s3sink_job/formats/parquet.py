"""Parquet. The schema of an object is fixed by its last row, so it is encoded before it is sent.

Row groups are encoded as they fill, each run of equal schema into a spill file of its own. Mostly that is one
run, and its file is the object. After a change of schema the runs are read back, widened and encoded anew,
once, whatever the number of changes. What fits into one row group never touches the disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from s3sink_job.encoding import Encoding
from s3sink_job.formats.compression import ByteSink
from s3sink_job.formats.dictionaries import repeating
from s3sink_job.formats.files import sink_file
from s3sink_job.formats.pending import Pending, common_record, exactly
from s3sink_job.schema.cast import Inexact, may_round
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
        self._pending = Pending()
        self._runs: list[Run] = []
        self._ratio = 1.0

    @property
    def held(self) -> int:
        return self._pending.held

    @property
    def size(self) -> int:
        """Exact for what is encoded, by the last row group's ratio for the rest."""
        return sum(run.size for run in self._runs) + int(self._pending.held * self._ratio) + FOOTER_BYTES

    def takes(self, rows: pa.RecordBatch) -> bool:
        return True

    def write(self, rows: pa.RecordBatch) -> None:
        self._pending.add(rows)
        if self._pending.held >= self._encoding.row_group_bytes:
            self.settle()

    def settle(self) -> None:
        """Encodes what is held."""
        if not self._pending:
            return
        rows = self._pending.take()
        record = pa.struct(list(rows.schema))
        run = self._runs[-1] if self._runs and self._runs[-1].record.equals(record) else self._begin(rows)
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
            rows = self._pending.take()
            with self._open(rows, sink_file(self._sink)) as writer:
                writer.write_table(rows, row_group_size=max(1, rows.num_rows))
            return tuple(self._pending.texts)
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
        return tuple(self._pending.texts)

    def abandon(self) -> None:
        for run in self._runs:
            # A full disk may be why; and a writer that is left open would try once more when it is collected.
            with suppress(OSError, pa.ArrowException):
                run.writer.close()
            with suppress(OSError, pa.ArrowException):
                run.file.close()
            self._spill.remove(run.path)

    def _begin(self, rows: pa.Table) -> Run:
        path = self._spill.new_file()
        with self._spill.writing():
            file = pa.OSFile(str(path), "wb")
            run = Run(pa.struct(list(rows.schema)), path, self._open(rows, file), file)
        self._runs.append(run)
        return run

    def _open(self, rows: pa.Table, file: pa.NativeFile) -> pq.ParquetWriter:
        """For an object, or a run, that begins with these rows."""
        return pq.ParquetWriter(
            file,
            rows.schema,
            compression=CODECS[self._encoding.codec],
            compression_level=self._encoding.level,
            use_dictionary=repeating(rows) if self._encoding.dictionary else False,
            write_statistics=self._encoding.statistics,
        )

    def _unite(self) -> None:
        record = common_record(run.record for run in self._runs)
        while any(may_round(run.record, record) for run in self._runs):
            try:
                for rows in self._groups():
                    exactly([rows], record)
                break
            except Inexact as error:
                record = self._pending.as_text(record, error)
        tables: Iterator[pa.Table] = (exactly([rows], record) for rows in self._groups())
        first = next(tables)
        with self._open(first, sink_file(self._sink)) as writer:
            tables = chain([first], tables)
            del first
            for table in tables:
                writer.write_table(table, row_group_size=max(1, table.num_rows))

    def _groups(self) -> Iterator[pa.RecordBatch]:
        for run in self._runs:
            with pq.ParquetFile(run.path) as file:
                for number in range(file.num_row_groups):
                    # More than one where a column is longer than an array of Arrow's can be.
                    yield from file.read_row_group(number, use_threads=False).combine_chunks().to_batches()


def _copy(path: Path, sink: ByteSink) -> None:
    with path.open("rb") as file:
        while data := file.read(COPY_BYTES):
            sink.write(data)
