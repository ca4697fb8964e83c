"""Columns as ORC has them, and back.

ORC has no times of a day and no decimals of more than 38 digits: they are text. Bytes of a fixed size are bytes. All
timestamps are of its type without a time zone, because Spark cannot read the other one. Where the type of a column
cannot be seen in the object, the column's attribute `s3sink.type` names it; timestamps in milliseconds and in UTC,
like those of Kafka, have no attribute.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.nested import with_items, with_leaves
from s3sink_job.columns.text import text_of
from s3sink_job.columns.types import INT, TEXT, Column, from_doc, to_doc

TIME = pa.timestamp("ms", "UTC")
TYPE = b"s3sink.type"
NO_TIME = -1
META_TIMES = (("_timestamp",), ("_airbyte_emitted_at",), ("metadata", "timestamp"))


def stored_type(kind: pa.DataType) -> pa.DataType:
    """The type that a column which is not nested has in an object."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp(kind.unit)
    if pa.types.is_time(kind) or pa.types.is_decimal256(kind):
        return TEXT
    return pa.binary() if pa.types.is_fixed_size_binary(kind) else kind


def storable(column: Column) -> Column:
    return with_leaves(column, lambda kind: not stored_type(kind).equals(kind), _stored)


def _stored(column: Column) -> Column:
    kind = stored_type(column.type)
    return text_of(column) if kind.equals(TEXT) else column.cast(kind)


def declared(field: pa.Field) -> pa.Field:
    """The field of an object, with the type as an attribute where it cannot be seen."""
    kind = field.type
    if pa.types.is_struct(kind):
        return pa.field(field.name, pa.struct([declared(inner) for inner in kind]))
    if pa.types.is_list(kind):
        return pa.field(field.name, pa.list_(declared(kind.value_field)))
    if pa.types.is_map(kind):
        return pa.field(field.name, pa.map_(TEXT, declared(kind.item_field)))
    stored = stored_type(kind)
    seen = kind.equals(TIME) or (stored.equals(kind) and not pa.types.is_timestamp(kind))
    return pa.field(field.name, stored, metadata=None if seen else {TYPE: json.dumps(to_doc(kind))})


def readable(column: Column, field: pa.Field) -> Column:
    """A column as Arrow reads it, with its own types."""
    kind = field.type
    if pa.types.is_struct(kind):
        children = [readable(child, inner) for child, inner in zip(column.flatten(), kind, strict=True)]
        fields = [pa.field(inner.name, child.type) for inner, child in zip(kind, children, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=column.is_null())
    if pa.types.is_list(kind):
        return with_items(column, lambda items: readable(items, kind.value_field))
    if pa.types.is_map(kind):
        return with_items(column, lambda values: readable(values, kind.item_field))
    if named := (field.metadata or {}).get(TYPE):
        return _as(column, from_doc(json.loads(named)))
    return column.cast(TIME) if pa.types.is_timestamp(kind) else column


def _as(column: Column, kind: pa.DataType) -> Column:
    if not pa.types.is_time(kind):
        return column.cast(kind)
    # Arrow has no cast from text to a time of a day.
    day = pc.binary_join_element_wise("1970-01-01T", column, "")
    raw = pc.cast(day, pa.timestamp(kind.unit)).cast(INT)
    return raw.cast(pa.int32() if pa.types.is_time32(kind) else INT).view(kind)


def without_no_time(column: Column, name: str) -> Column:
    """Null in place of Kafka's -1 ms, the time of a record without one: readers of ORC fail on it."""
    if (name,) in META_TIMES and column.type.equals(TIME):
        return _nulled(column)
    fields = {path[1] for path in META_TIMES if path[0] == name and len(path) > 1}
    return _with_fields(column, fields, _nulled) if fields and pa.types.is_struct(column.type) else column


def _nulled(column: Column) -> Column:
    return pc.if_else(pc.equal(column.cast(INT), NO_TIME), pa.scalar(None, column.type), column)


def _with_fields(column: Column, names: set[str], change: Callable[[Column], Column]) -> Column:
    pairs = zip(column.type, column.flatten(), strict=True)
    children = [change(child) if field.name in names and field.type.equals(TIME) else child for field, child in pairs]
    return pa.StructArray.from_arrays(children, fields=list(column.type), mask=column.is_null())
