"""Decodes the records of one Avro schema: all at once, and single ones where that does not work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from s3sink_job.columns.types import Column
from s3sink_job.decode.avro_columns import read_columns, reader_of
from s3sink_job.decode.avro_logical import logical_columns
from s3sink_job.decode.avro_rows import INVALID, NotAvro, read_row
from s3sink_job.decode.avro_schema import AvroType, parse_schema
from s3sink_job.decode.avro_sources import sources_of
from s3sink_job.decode.avro_types import column_type, plain_type
from s3sink_job.decode.bad_records import NO_FAULTS, Fault, Faults
from s3sink_job.decode.record_bytes import Mask, Records
from s3sink_job.decode.row_groups import with_rows
from s3sink_job.decode.text_cache import TextCache
from s3sink_job.decode.writer_schemas import WriterSchema, size_of

BEYOND = "holds a value that its logical type cannot: a time beyond a day, or a decimal with more digits than it has"
KEPT_TEXT = 4 * 2**20
"""Characters of schemas that stay parsed. A parsed one takes some forty times its text."""


class AvroDecoder:
    unknown_fields = 0

    def __init__(self, schema: WriterSchema) -> None:
        """Raises `InvalidSchema`."""
        self._schema = parse_schema(schema)
        self.root = self._schema.root
        self._reader = reader_of(self.root)
        self.type: pa.DataType = column_type(self.root)
        self.sources = sources_of(self.root)

    @property
    def reads_columns(self) -> bool:
        """Whether records are read all at once, as far as they are good."""
        return self._reader is not None

    def decode(self, column: Column, skip: int = 0, records: Records | None = None) -> tuple[Column, Faults]:
        """The values, without the first `skip` bytes of each. Rows at fault are null. The column has no null.

        `records` are the bytes of the column, if the caller has them already.
        """
        if self._reader is None:
            values, alone = pa.nulls(len(column), plain_type(self.root)), np.ones(len(column), np.bool_)
        else:
            values, alone = read_columns(self._reader, column, skip, records)
        return completed(values, alone, self.root, self.type, lambda row: self.read_alone(column[row].as_py()[skip:]))

    def read_alone(self, data: bytes) -> Any:
        """Raises `NotAvro`."""
        return read_row(self._schema, data)


def completed(
    values: Column, alone: Mask, root: AvroType, kind: pa.DataType, read: Callable[[int], Any]
) -> tuple[Column, Faults]:
    """The values as columns of logical types, with the rows that have to be read alone. Rows at fault are null."""
    faults: dict[int, Fault] = {}
    if alone.any():
        rows = np.flatnonzero(alone)
        values = with_rows(values, rows, [_read_alone(row, read, faults) for row in rows.tolist()])
    if not kind.equals(values.type):
        values, beyond = logical_columns(values, root)
        if beyond.any():
            faults |= dict.fromkeys(np.flatnonzero(beyond).tolist(), Fault(INVALID, BEYOND))
    return values, faults or NO_FAULTS


def _read_alone(row: int, read: Callable[[int], Any], faults: dict[int, Fault]) -> Any:
    try:
        return read(row)
    except NotAvro as error:
        faults[row] = error.fault
        return None


_DECODERS = TextCache(AvroDecoder, size_of, KEPT_TEXT)


def decoder_of(schema: WriterSchema) -> AvroDecoder:
    """Kept by the process. Raises `InvalidSchema`."""
    return _DECODERS.of(schema)
