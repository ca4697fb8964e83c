"""Decodes the records of one Avro schema: all at once, and single ones where that does not work."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from s3sink_job.columns.types import Column
from s3sink_job.decode.avro_columns import read_columns, reader_of
from s3sink_job.decode.avro_logical import logical_columns
from s3sink_job.decode.avro_rows import INVALID, NotAvro, read_row
from s3sink_job.decode.avro_schema import parse_schema
from s3sink_job.decode.avro_types import column_type, plain_type
from s3sink_job.decode.bad_records import NO_FAULTS, Fault, Faults
from s3sink_job.decode.text_cache import TextCache
from s3sink_job.decode.writer_schemas import WriterSchema, size_of

BEYOND = "holds a value that its logical type cannot: a time beyond a day, or a decimal with more digits than it has"
KEPT_TEXT = 4 * 2**20
"""Characters of schemas that stay parsed. A parsed one takes some forty times its text."""


class AvroDecoder:
    def __init__(self, schema: WriterSchema) -> None:
        """Raises `InvalidSchema`."""
        self._schema = parse_schema(schema)
        self._plain = plain_type(self._schema.root)
        self._reader = reader_of(self._schema.root)
        self.type: pa.DataType = column_type(self._schema.root)

    def decode(self, column: Column, skip: int = 0) -> tuple[Column, Faults]:
        """The values, without the first `skip` bytes of each. Rows at fault are null. The column has no null."""
        if self._reader is None:
            values, alone = pa.nulls(len(column), self._plain), np.arange(len(column))
        else:
            values, wrong = read_columns(self._reader, column, skip)
            alone = np.flatnonzero(wrong)
        faults: dict[int, Fault] = {}
        if len(alone):
            rows = self._read_alone(column, skip, alone.tolist(), faults)
            places = np.arange(len(column))
            places[alone] = len(column) + np.arange(len(alone))
            values = pa.concat_arrays([values, rows]).take(pa.array(places))
        values, beyond = logical_columns(values, self._schema.root)
        if beyond.any():
            faults |= dict.fromkeys(np.flatnonzero(beyond).tolist(), Fault(INVALID, BEYOND))
        return values, faults or NO_FAULTS

    def _read_alone(self, column: Column, skip: int, rows: Iterable[int], faults: dict[int, Fault]) -> Column:
        found: list[Any] = []
        for row in rows:
            try:
                found.append(read_row(self._schema, column[row].as_py()[skip:]))
            except NotAvro as error:
                found.append(None)
                faults[row] = error.fault
        return pa.array(found, self._plain)


_DECODERS = TextCache(AvroDecoder, size_of, KEPT_TEXT)


def decoder_of(schema: WriterSchema) -> AvroDecoder:
    """Kept by the process. Raises `InvalidSchema`."""
    return _DECODERS.of(schema)
