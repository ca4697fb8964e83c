"""Arrow's reader for payloads without maps. It gets the types of the schema and refuses what does not fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from s3sink_job.columns.text import concat
from s3sink_job.columns.types import TEXT, Column
from s3sink_job.decode.json_columns import look_like_objects
from s3sink_job.decode.payload_logical import typed
from s3sink_job.decode.payload_schema import DATE, DATE_TIME, NUMBER, OF_JSON_SCHEMA, PLAIN, VALUE, PayloadSchema
from s3sink_job.decode.payload_values import Misfit
from s3sink_job.decode.whole_numbers import check_whole_numbers, with_doubles

Read = Callable[..., Column]
"""`read(payload, schema, ignore=False)`: JSON texts of a schema without maps. `ignore` leaves out unknown members."""
REALS = (NUMBER, "float", "double")
READ_AS: Mapping[str, pa.DataType] = {
    **PLAIN,
    **OF_JSON_SCHEMA,
    "int8": pa.int8(),
    "int16": pa.int16(),
    "bytes": TEXT,
    DATE: TEXT,
    DATE_TIME: TEXT,
}


def read_bytes(payload: Column, schema: PayloadSchema, *, ignore: bool = False) -> Column:
    """Decimals are the base64 of their bytes."""
    return _typed(lambda kind: _read(payload, kind, ignore=ignore), _read_type(schema, TEXT), payload, schema)


def read_numbers(payload: Column, schema: PayloadSchema, *, ignore: bool = False) -> Column:
    """Decimals are numbers."""
    # As a decimal Arrow would also read a string. As a double it refuses one.
    _read(payload, _read_type(schema, pa.float64()), ignore=ignore)
    return _typed(lambda kind: _read(payload, kind, ignore=ignore), _read_type(schema, None), payload, schema)


def _typed(read: Callable[[pa.DataType], Column], kind: pa.DataType, payload: Column, schema: PayloadSchema) -> Column:
    column = read(kind)
    if schema.holds(*REALS):
        check_whole_numbers(column, payload, lambda: read(with_doubles(kind)))
    return column if _is_read_as_it_is(schema) else typed(column, schema)


def _is_read_as_it_is(schema: PayloadSchema) -> bool:
    """Whether Arrow's reader gives just the column: there is no type to convert, no default, nothing left to check."""
    if schema.type in ("struct", "array"):
        return not schema.rest and all(part.optional and _is_read_as_it_is(part) for part in schema.parts)
    # Of numbers it is checked already that none is NaN. Connect's doubles are not looked at before.
    return schema.type not in ("float", "double") and READ_AS.get(schema.type) == schema.kind


def _read_type(schema: PayloadSchema, decimal: pa.DataType | None) -> pa.DataType:
    """The type for Arrow's reader; decimals are read as the one given, or as themselves."""
    match schema.type:
        case "struct":
            return pa.struct([pa.field(name, _read_type(inner, decimal)) for name, inner in schema.fields])
        case "array":
            return pa.list_(_read_type(schema.parts[0], decimal))
    if pa.types.is_decimal(schema.kind):
        return decimal or schema.kind
    return READ_AS[schema.type]


class LineReader:
    """As `read_bytes`, of payloads that are joined to lines already: all are objects, and there is a line for each.

    What follows from the schema is found once: for small batches it would take a tenth of the time.
    """

    def __init__(self, schema: PayloadSchema) -> None:
        """Of a struct with fields."""
        self._schema = schema
        self._kind = _read_type(schema, TEXT)
        self._fields, self._has_reals = list(self._kind), schema.holds(*REALS)
        self._as_it_is = _is_read_as_it_is(schema)

    def read(self, lines: pa.Buffer, payload: Column) -> Column:
        column = pa.StructArray.from_arrays(_parsed(lines, self._kind, len(payload)), fields=self._fields)
        if self._has_reals:
            check_whole_numbers(column, payload, lambda: self._as_doubles(lines, len(payload)))
        return column if self._as_it_is else typed(column, self._schema)

    def _as_doubles(self, lines: pa.Buffer, count: int) -> Column:
        kind = with_doubles(self._kind)
        return pa.StructArray.from_arrays(_parsed(lines, kind, count), fields=list(kind))


def _read(payload: Column, kind: pa.DataType, *, ignore: bool) -> Column:
    """Raises `Misfit` or Arrow's error if any payload does not fit the type."""
    bare = pa.types.is_struct(kind) and kind.num_fields > 0 and look_like_objects(payload)
    lines = payload if bare else concat(f'{{"{VALUE}":', payload, "}")
    whole = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    record = kind if bare else pa.struct([pa.field(VALUE, kind)])
    columns = _parsed(pc.binary_join(whole, "\n")[0].as_buffer(), record, len(payload), ignore=ignore)
    return pa.StructArray.from_arrays(columns, fields=list(kind)) if bare else columns[0]


def _parsed(lines: pa.Buffer, record: pa.StructType, count: int, *, ignore: bool = False) -> list[Column]:
    """The columns of `count` lines, each of which begins and ends like an object."""
    table = pj.read_json(
        pa.BufferReader(lines),
        read_options=pj.ReadOptions(use_threads=False, block_size=max(lines.size, 1 << 16)),
        parse_options=pj.ParseOptions(
            explicit_schema=pa.schema(list(record)), unexpected_field_behavior="ignore" if ignore else "error"
        ),
    )
    table.validate()  # Arrow reads lists of several nulls and nothing else wrongly
    # Each line starts an object and closes one. More rows mean that a payload closes its own.
    if table.num_rows != count:
        raise Misfit("two values in one")
    # Arrow copies even a single chunk if it has to combine them.
    return [part.chunk(0) if part.num_chunks == 1 else part.combine_chunks() for part in table.columns]
