"""Columns as JSON has them, with the logical types of their Connect schema.

A value that does not fit raises `Misfit` for the whole column. Which value it is, and where, is found out elsewhere.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.decimals import decimals_of
from s3sink_job.columns.duckdb_functions import query
from s3sink_job.columns.types import TEXT, Column
from s3sink_job.decode.payload_schema import DATE_TIME, PayloadSchema
from s3sink_job.decode.payload_values import DAY, Misfit, payload_value


def typed(column: Column, schema: PayloadSchema) -> Column:
    """A struct, list or leaf as Arrow's reader gives it."""
    if pa.types.is_struct(column.type):
        return _struct(column, schema)
    if pa.types.is_list(column.type):
        (of_items,) = schema.parts
        items = required(typed(column.values, of_items), of_items)
        return pa.ListArray.from_arrays(column.offsets, items, type=schema.kind, mask=column.is_null())
    return _leaf(column, schema)


def _struct(column: Column, schema: PayloadSchema) -> Column:
    if not len(schema.kind):
        return column
    present = column.is_valid()
    children = [
        required(typed(child, inner), inner, present)
        for child, (_, inner) in zip(column.flatten(), schema.fields, strict=True)
    ]
    if schema.rest:
        children.append(pa.nulls(len(column), TEXT))
    return pa.StructArray.from_arrays(children, fields=list(schema.kind), mask=column.is_null())


def required(column: Column, schema: PayloadSchema, present: Column | None = None) -> Column:
    """The column with its default where a value is missing, though its parent is present."""
    if schema.optional or not column.null_count:
        return column
    missing = column.is_null() if present is None else pc.and_(column.is_null(), present)
    if not pc.any(missing, min_count=0).as_py():
        return column
    return pc.if_else(missing, pa.scalar(payload_value(None, schema), schema.kind), column)


def _leaf(column: Column, schema: PayloadSchema) -> Column:
    kind = schema.kind
    if pa.types.is_floating(kind) and not _all(pc.is_finite(column)):
        raise Misfit("NaN is not JSON")
    if column.type.equals(kind):
        return column
    if schema.type == "bytes":
        return _decimals(column, schema) if pa.types.is_decimal(kind) else from_base64(column)
    if pa.types.is_time(kind) and not _all(pc.and_(pc.greater_equal(column, 0), pc.less(column, DAY))):
        raise Misfit("not a time of day")
    return _instants(column, kind) if schema.type == DATE_TIME else column.cast(kind)


def _instants(column: Column, kind: pa.DataType) -> Column:
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:  # RFC 3339 has `t` and `z`, too, and hardly anybody writes them
        return pc.ascii_upper(column).cast(kind)


def _decimals(column: Column, schema: PayloadSchema) -> Column:
    if schema.scale < 0:
        raise Misfit("a negative scale, which the column cannot have")
    raw = from_base64(column)
    found, outside = decimals_of(raw, schema.kind)
    if pc.any(pc.or_(outside, pc.fill_null(pc.equal(pc.binary_length(raw), 0), False)), min_count=0).as_py():
        raise Misfit("a decimal without bytes, or with too many digits")
    return found


def from_base64(column: Column) -> Column:
    # DuckDB would fail the whole column because of one value that is not base64.
    raw = query("SELECT TRY(from_base64(v)) AS r FROM batch", column)
    if raw.null_count > column.null_count:
        raise Misfit("not base64")
    return raw.cast(pa.binary())


def _all(mask: Column) -> bool:
    return bool(pc.all(mask, min_count=0).as_py())
