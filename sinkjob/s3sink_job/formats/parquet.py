"""Output format Parquet. The last row of an object may still widen its schema, so it is encoded before it is sent.

Full row groups are encoded into a spill file, one file for each run of row groups with the same schema. Usually there
is one run, and its file is the object. If the schema changed, the runs are read back, widened and encoded again, once
for all changes. An object of one row group never touches the disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from s3sink_job.base.spill import Spill
from s3sink_job.columns.cast import Inexact, may_round
from s3sink_job.columns.microseconds import in_microseconds
from s3sink_job.columns.types import Path as ColumnPath
from s3sink_job.formats.compression import ByteSink
from s3sink_job.formats.output_format import ObjectWriter, OutputFormat
from s3sink_job.formats.parquet_dictionaries import repeating
from s3sink_job.formats.row_buffer import RowBuffer, common_record, exactly
from s3sink_job.formats.settings import Output
from s3sink_job.formats.sink_file import sink_file
from s3sink_job.formats.source_notes import NO_NOTES, SourceNotes
from s3sink_job.shape.settings import RowKind

CODECS = {"None": "none", "Gzip": "gzip", "Snappy": "snappy", "Lz4": "lz4", "Zstd": "zstd", "Brotli": "brotli"}
COPY_BYTES = 1 << 20
FOOTER_BYTES = 512
SCHEMAS = "s3sink.schemas"
"""The key of the metadata with the schemas that the records were written with."""


class ParquetFormat(OutputFormat):
    name = "Parquet"
    extension = ".parquet"
    content_type = "application/vnd.apache.parquet"
    rows = RowKind.COLUMNS
    compresses_within = True
    tells_schemas = True

    def open(self, output: Output, sink: ByteSink, spill: Spill, notes: SourceNotes = NO_NOTES) -> ObjectWriter:
        return ParquetObject(output, sink, spill, notes)

    def read(self, data: bytes, output: Output) -> pa.Table:
        return pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)

    def comparable(self, rows: pa.Table, output: Output, found: pa.Schema) -> pa.Table:
        if output.parquet.timestamps == "Micros":
            batches = rows.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]
            rows = pa.Table.from_batches([in_microseconds(batch) for batch in batches])
        return super().comparable(rows, output, found)

    def opens_in_spark_with_nanoseconds(self, output: Output) -> bool:
        return output.parquet.timestamps == "Micros"


@dataclass
class SpilledRowGroups:
    """Row groups of one schema in a file."""

    record: pa.StructType
    path: Path
    writer: pq.ParquetWriter
    file: pa.NativeFile

    @property
    def size(self) -> int:
        return int(self.file.tell())


class ParquetObject:
    def __init__(self, output: Output, sink: ByteSink, spill: Spill, notes: SourceNotes) -> None:
        self._notes = notes
        self._output, self._sink, self._spill = output, sink, spill
        self._pending = RowBuffer()
        self._runs: list[SpilledRowGroups] = []
        self._ratio = 1.0

    @property
    def held(self) -> int:
        return self._pending.held

    @property
    def size(self) -> int:
        """Exact for encoded rows; the rest is estimated by the ratio of the last row group."""
        return sum(run.size for run in self._runs) + int(self._pending.held * self._ratio) + FOOTER_BYTES

    def takes(self, rows: pa.RecordBatch) -> bool:
        return True

    def write(self, rows: pa.RecordBatch) -> None:
        self._pending.add(in_microseconds(rows) if self._output.parquet.timestamps == "Micros" else rows)
        if self._pending.held >= self._output.parquet.row_group_bytes:
            self.settle()

    def settle(self) -> None:
        """Encodes the rows in memory as a row group."""
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
        # A row group is by far the largest thing in memory, and Arrow would keep its memory until the next one.
        del rows
        pa.default_memory_pool().release_unused()

    def close(self) -> tuple[ColumnPath, ...]:
        if not self._runs:
            rows = self._pending.take()
            with self._open(rows, sink_file(self._sink)) as writer:
                writer.write_table(rows, row_group_size=max(1, rows.num_rows))
                self._describe(writer)
            return tuple(self._pending.texts)
        self.settle()
        with self._spill.writing():
            for run in self._runs:
                self._describe(run.writer)
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
            # The disk may be full. A writer that stays open would try to write again when it is garbage collected.
            with suppress(OSError, pa.ArrowException):
                run.writer.close()
            with suppress(OSError, pa.ArrowException):
                run.file.close()
            self._spill.remove(run.path)

    def _begin(self, rows: pa.Table) -> SpilledRowGroups:
        path = self._spill.new_file()
        with self._spill.writing():
            file = pa.OSFile(str(path), "wb")
            run = SpilledRowGroups(pa.struct(list(rows.schema)), path, self._open(rows, file), file)
        self._runs.append(run)
        return run

    def _open(self, rows: pa.Table, file: pa.NativeFile) -> pq.ParquetWriter:
        """The writer of an object, or a run, that begins with these rows."""
        return pq.ParquetWriter(
            file,
            rows.schema,
            compression=CODECS[self._output.codec],
            compression_level=self._output.level,
            use_dictionary=repeating(rows) if self._output.parquet.dictionary else False,
            write_statistics=self._output.parquet.statistics,
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
            self._describe(writer)

    def _describe(self, writer: pq.ParquetWriter) -> None:
        if text := self._notes.schemas_text():
            writer.add_key_value_metadata({SCHEMAS: text})

    def _groups(self) -> Iterator[pa.RecordBatch]:
        for run in self._runs:
            with pq.ParquetFile(run.path) as file:
                for number in range(file.num_row_groups):
                    # More than one batch if a column is longer than an Arrow array can be.
                    yield from file.read_row_group(number, use_threads=False).combine_chunks().to_batches()


def _copy(path: Path, sink: ByteSink) -> None:
    with path.open("rb") as file:
        while data := file.read(COPY_BYTES):
            sink.write(data)
