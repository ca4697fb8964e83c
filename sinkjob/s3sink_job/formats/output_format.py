"""What an output format is and offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

import pyarrow as pa

from s3sink_api.formats import FORMATS, FormatType
from s3sink_job.base.spill import Spill
from s3sink_job.columns.nested import column_items
from s3sink_job.columns.types import NULL, TEXT, Path
from s3sink_job.decode.bad_records import Fault
from s3sink_job.formats.compression import CODEC_EXTENSIONS, CONTENT_ENCODINGS, ByteSink
from s3sink_job.formats.row_buffer import common_record, exactly
from s3sink_job.formats.settings import Output
from s3sink_job.formats.source_notes import NO_NOTES, SourceNotes
from s3sink_job.shape.settings import RowKind


class ObjectWriter(Protocol):
    """Writes the rows of one object into the sink it was opened on, in order."""

    @property
    def size(self) -> int:
        """The length of the object if it were closed now: exact after `settle`, an estimate otherwise."""
        ...

    @property
    def held(self) -> int:
        """Bytes of rows in memory that are not encoded yet."""
        ...

    def takes(self, rows: pa.RecordBatch) -> bool:
        """Whether the rows can be written: not if they need a wider schema than the one already encoded."""
        ...

    def write(self, rows: pa.RecordBatch) -> None: ...

    def settle(self) -> None:
        """Encodes all rows in memory. Each call makes compression a little worse."""
        ...

    def close(self) -> tuple[Path, ...]:
        """Ends the object. Returns the columns that had to be written as text."""
        ...

    def abandon(self) -> None:
        """Frees what it holds outside of memory."""
        ...


class OutputFormat(ABC):
    name: FormatType
    extension: str
    content_type: str
    """Of the content without compression: readers find the compression by the extension."""
    rows: RowKind
    """What it takes."""
    compresses_within = False
    """Whether compression is part of the format. Otherwise the whole object is compressed."""

    tells_schemas = False
    """Whether objects have a place for the schemas that their records were written with."""

    @property
    def one_record_objects(self) -> bool:
        """Whether each record is an object by itself."""
        return FORMATS[self.name].one_record_objects

    @property
    def keeps_types(self) -> bool:
        """Whether objects keep the types of their columns. If not, `verify` needs the schema they were written by."""
        return self.rows is not RowKind.TEXT_COLUMNS

    @abstractmethod
    def open(self, output: Output, sink: ByteSink, spill: Spill, notes: SourceNotes = NO_NOTES) -> ObjectWriter:
        """Begins an object. `notes` is for formats that have a place for them."""

    @abstractmethod
    def read(self, data: bytes, output: Output) -> pa.Table:
        """The rows of an object, to check what was written."""

    def unwritable(self, rows: pa.RecordBatch, output: Output) -> dict[int, Fault]:
        """The rows that the format cannot hold. The caller must leave them out."""
        return {}

    def comparable(self, rows: pa.Table, output: Output, found: pa.Schema) -> pa.Table:
        """The rows in the form in which `read` gives them, with extra columns for values that `found` has no place for.

        Raises `Inexact` or `TypeError` for values that the columns found cannot hold.
        """
        record = pa.struct(list(found))
        wider = common_record([record, _used_columns(rows)])
        batches = rows.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]
        return exactly(batches, record if wider.equals(record) else wider)

    def opens_in_spark_with_nanoseconds(self, output: Output) -> bool:
        """Whether Spark opens objects of rows that have timestamps in nanoseconds."""
        return True

    def object_extension(self, codec: str) -> str:
        return self.extension if self.compresses_within else self.extension + CODEC_EXTENSIONS[codec]

    def content_encoding(self, codec: str, own_extension: str) -> str:
        """Set only if an extension of the user's choice hides the codec.

        Otherwise clients would decompress twice: by this header, and by the extension.
        """
        if self.compresses_within or not own_extension or own_extension.endswith(CODEC_EXTENSIONS[codec]):
            return ""
        return CONTENT_ENCODINGS.get(codec, "")


def _used_columns(table: pa.Table) -> pa.StructType:
    """The type of the rows, without fields that have no value in any row."""
    names, columns = table.schema.names, table.combine_chunks().columns
    return pa.struct([(name, _used_type(pa.concat_arrays(c.chunks))) for name, c in zip(names, columns, strict=True)])


def _used_type(column: pa.Array) -> pa.DataType:
    if column.null_count == len(column):
        return NULL
    if pa.types.is_struct(column.type):
        children = zip(column.type.names, column.flatten(), strict=True)
        return pa.struct([(name, _used_type(child)) for name, child in children])
    if pa.types.is_map(column.type):
        return pa.map_(TEXT, _used_type(column_items(column)[0]))
    return pa.list_(_used_type(column.flatten())) if pa.types.is_list(column.type) else column.type
