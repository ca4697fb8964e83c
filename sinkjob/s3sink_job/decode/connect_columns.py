"""Payloads of one schema as a typed column.

Arrow's reader gets the types of the schema, so that it refuses what does not fit. What it refuses is read in smaller
parts, and a part that is still refused is read one by one. So a bad record makes only its neighbours slow.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from s3sink_job.columns.duckdb_functions import TooLarge
from s3sink_job.columns.nested import with_text_keys
from s3sink_job.columns.text import concat
from s3sink_job.columns.types import TEXT, Column
from s3sink_job.decode.bad_records import Fault
from s3sink_job.decode.connect_logical import required, typed
from s3sink_job.decode.connect_maps import with_maps
from s3sink_job.decode.connect_schema import PLAIN, VALUE, ConnectSchema
from s3sink_job.decode.connect_values import Misfit, connect_value
from s3sink_job.decode.json_inference import NotARow, parse

FEW = 16
"""So many rows are read faster one by one."""
PARTS = 16
READ_AS = {**PLAIN, "int8": pa.int8(), "int16": pa.int16(), "bytes": TEXT}
NOT_AN_ENVELOPE = Fault("NotJson", "is not JSON")
"""The payload is not JSON. The fault is found from the whole value, which the caller has."""


class PayloadReader:
    def __init__(self, schema: ConnectSchema) -> None:
        self.schema = schema
        self.record: pa.StructType = with_text_keys(pa.nulls(0, schema.record)).type
        self.taken = False
        """Whether the known columns hold those of this schema. They only widen: once is enough."""
        self._has_maps, self._has_decimals = schema.holds("map"), _has_decimals(schema)
        self._numeric = False
        """Whether decimals were numbers the last time, and not bytes."""

    def read(self, payload: Column) -> tuple[pa.RecordBatch, dict[int, Fault]]:
        """One row for each payload. Bad ones are rows of nulls."""
        size = len(payload)
        column = self._fast(payload) if size > FEW else None
        if column is not None:
            return self._rows(column), {}
        faults: dict[int, Fault] = {}
        columns = []
        step = max(FEW, -(-size // PARTS))
        for start in range(0, size, step):
            part = payload.slice(start, step)
            column = self._fast(part) if step > FEW else None
            if column is None:
                column, bad = self._slow(part)
                faults |= {start + row: fault for row, fault in bad.items()}
            columns.append(column)
        return self._rows(pa.concat_arrays(columns)), faults

    def _rows(self, column: Column) -> pa.RecordBatch:
        column = with_text_keys(column)
        columns = column.flatten() if self.schema.type == "struct" else [column]
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(self.record)))

    def _slow(self, payload: Column) -> tuple[Column, dict[int, Fault]]:
        values, faults = [], {}
        for row, text in enumerate(payload.to_pylist()):
            value = None
            try:
                found = parse(f'{{"{VALUE}":{text}}}')
                if len(found) > 1:
                    faults[row] = NOT_AN_ENVELOPE
                else:
                    value = connect_value(found[VALUE], self.schema)
            except NotARow as error:
                faults[row] = NOT_AN_ENVELOPE if error.fault.reason == NOT_AN_ENVELOPE.reason else error.fault
            except Misfit as error:
                faults[row] = Fault("SchemaMismatch", f"does not fit its own schema: {error}")
            values.append(value)
        return pa.array(values, self.schema.kind), faults

    def _fast(self, payload: Column) -> Column | None:
        """The column; None if any payload may not fit."""
        for numeric in (self._numeric, not self._numeric):
            try:
                found = self._typed(payload, numeric=numeric)
            except (Misfit, TooLarge, pa.ArrowInvalid, pa.ArrowNotImplementedError):
                if not self._has_decimals:
                    return None
            else:
                self._numeric = numeric
                return found
        return None

    def _typed(self, payload: Column, *, numeric: bool) -> Column:
        if not self._has_maps:
            column = (_read_numbers if numeric else _read_bytes)(payload, self.schema)
        elif numeric:
            raise Misfit("DuckDB would round decimals")
        else:
            column = with_maps(payload, self.schema, _read_bytes)
        return required(column, self.schema)


def _has_decimals(schema: ConnectSchema) -> bool:
    return pa.types.is_decimal(schema.kind) or any(_has_decimals(part) for part in schema.parts)


def _read_bytes(payload: Column, schema: ConnectSchema) -> Column:
    return typed(_read(payload, _read_type(schema, TEXT)), schema)


def _read_numbers(payload: Column, schema: ConnectSchema) -> Column:
    # As a decimal Arrow would also read a string. As a double it refuses one.
    _read(payload, _read_type(schema, pa.float64()))
    return typed(_read(payload, _read_type(schema, None)), schema)


def _read_type(schema: ConnectSchema, decimal: pa.DataType | None) -> pa.DataType:
    """The type for Arrow's reader; decimals are read as the one given, or as themselves."""
    match schema.type:
        case "struct":
            return pa.struct([pa.field(name, _read_type(inner, decimal)) for name, inner in schema.fields])
        case "array":
            return pa.list_(_read_type(schema.parts[0], decimal))
    if pa.types.is_decimal(schema.kind):
        return decimal or schema.kind
    return READ_AS[schema.type]


def _read(payload: Column, kind: pa.DataType) -> Column:
    """The payloads by Arrow's reader. Raises `Misfit` or Arrow's error if any does not fit the type."""
    lines = concat(f'{{"{VALUE}":', payload, "}")
    whole = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    data = pc.binary_join(whole, "\n")[0].as_buffer()
    table = pj.read_json(
        pa.BufferReader(data),
        read_options=pj.ReadOptions(use_threads=False, block_size=max(data.size, 1 << 16)),
        parse_options=pj.ParseOptions(
            explicit_schema=pa.schema([pa.field(VALUE, kind)]), unexpected_field_behavior="error"
        ),
    )
    table.validate()  # Arrow reads lists of several nulls and nothing else wrongly
    # Each line starts an object and closes one. More rows mean that a payload closes its own.
    if table.num_rows != len(payload):
        raise Misfit("two values in one")
    return pa.concat_arrays(table.column(VALUE).chunks)
