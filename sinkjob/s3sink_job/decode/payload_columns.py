"""Payloads of one schema as a typed column.

Arrow's reader gets the types of the schema, so that it refuses what does not fit. What it refuses is read in smaller
parts, and a part that is still refused is read one by one. So a bad record makes only its neighbours slow.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from s3sink_job.columns.duckdb_functions import TooLarge
from s3sink_job.columns.nested import with_text_keys
from s3sink_job.columns.types import Column
from s3sink_job.decode.bad_records import Fault
from s3sink_job.decode.json_inference import NotARow, json_value
from s3sink_job.decode.payload_logical import required
from s3sink_job.decode.payload_maps import opened, unsure_rows
from s3sink_job.decode.payload_reading import LineReader, Read, read_bytes, read_numbers
from s3sink_job.decode.payload_schema import JSON, PayloadSchema
from s3sink_job.decode.payload_values import Misfit, payload_value

FEW = 16
"""So many rows are read faster one by one."""
PARTS = 16
REFUSED = (Misfit, TooLarge, pa.ArrowInvalid, pa.ArrowNotImplementedError)
"""What a reader of whole columns raises for values that it does not take."""
Decoded = tuple[Column, dict[int, Fault]]
Way = Callable[[Column], Decoded]


class PayloadReader:
    def __init__(self, schema: PayloadSchema) -> None:
        self.schema = schema
        self.record: pa.StructType = with_text_keys(pa.nulls(0, schema.record)).type
        self.taken = False
        """Whether the known columns hold those of this schema. They only widen: once is enough."""
        self._ways = _ways(self)
        """The one that worked the last time comes first."""
        as_lines = schema.type == "struct" and schema.fields and not schema.holds("map", JSON)
        self._lines = LineReader(schema) if as_lines else None

    def read(self, payload: Column) -> tuple[pa.RecordBatch, dict[int, Fault]]:
        """One row for each payload. Bad ones are rows of nulls."""
        column, faults = self.values(payload)
        columns = column.flatten() if self.schema.type == "struct" else [column]
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(self.record))), faults

    def values(self, payload: Column) -> Decoded:
        """One value for each payload; bad ones are null."""
        size = len(payload)
        found = self._fast(payload) if size > FEW else None
        if found is None:
            columns: list[Column] = []
            faults: dict[int, Fault] = {}
            step = max(FEW, -(-size // PARTS))
            for start in range(0, size, step):
                part = payload.slice(start, step)
                column, bad = (self._fast(part) if step > FEW else None) or self.one_by_one(part)
                faults |= {start + row: fault for row, fault in bad.items()}
                columns.append(column)
            found = (pa.concat_arrays(columns) if columns else pa.nulls(0, self.schema.kind)), faults
        return with_text_keys(found[0]), found[1]

    def values_of_lines(self, lines: pa.Buffer, payload: Column) -> Column | None:
        """The values of objects that are joined to lines already; None if any of them may not fit."""
        if self._lines is None:
            return None
        try:
            return required(self._lines.read(lines, payload), self.schema)
        except REFUSED:
            return None

    def one_by_one(self, payload: Column) -> Decoded:
        values, faults = [], {}
        for row, text in enumerate(payload.to_pylist()):
            value = None
            try:
                value = payload_value(json_value(text, may_repeat=True), self.schema)
            except NotARow as error:
                faults[row] = error.fault
            except Misfit as error:
                faults[row] = Fault("SchemaMismatch", f"does not fit its own schema: {error}")
            values.append(value)
        return pa.array(values, self.schema.kind), faults

    def _fast(self, payload: Column) -> Decoded | None:
        """None if any payload may not fit."""
        for number, way in enumerate(self._ways):
            try:
                found = way(payload)
            except REFUSED:
                continue
            self._ways.insert(0, self._ways.pop(number))
            return found
        return None


def _ways(reader: PayloadReader) -> list[Way]:
    schema = reader.schema
    reads = [read_bytes, read_numbers] if _has_decimals(schema) else [read_bytes]
    ways = [] if schema.holds("map", JSON) else [_whole(schema, read) for read in reads]
    return ways + [_in_pieces(reader, read) for read in reads] if schema.has_open_parts else ways


def _whole(schema: PayloadSchema, read: Read) -> Way:
    return lambda payload: (required(read(payload, schema), schema), {})


def _in_pieces(reader: PayloadReader, read: Read) -> Way:
    """By DuckDB, and single rows one by one: those whose text DuckDB may change."""

    def way(payload: Column) -> Decoded:
        text, unsure = unsure_rows(payload)
        if not unsure.any():
            return required(opened(text, reader.schema, read), reader.schema), {}
        alone = np.flatnonzero(unsure)
        values, bad = reader.one_by_one(payload.take(pa.array(alone)))
        sure = required(opened(text.filter(pa.array(~unsure)), reader.schema, read), reader.schema)
        places = np.empty(len(payload), np.int64)
        places[~unsure], places[unsure] = np.arange(len(sure)), len(sure) + np.arange(len(alone))
        column = pa.concat_arrays([sure, values]).take(pa.array(places))
        return column, {int(alone[row]): fault for row, fault in bad.items()}

    return way


def _has_decimals(schema: PayloadSchema) -> bool:
    return pa.types.is_decimal(schema.kind) or any(_has_decimals(part) for part in schema.parts)
