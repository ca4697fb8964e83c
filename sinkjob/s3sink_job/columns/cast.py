"""Casts rows to a wider schema. No value changes; a number may only become its text."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.nested import with_items
from s3sink_job.columns.text import json_of, text_of
from s3sink_job.columns.types import DOUBLE, INT, ITEM, NUMBERS, TEXT, Column, Path, merge


class Inexact(ValueError):
    """A whole number that a column of doubles would round."""

    def __init__(self, path: Path) -> None:
        super().__init__(".".join(path))
        self.path = path


def cast_rows(rows: pa.RecordBatch, record: pa.StructType) -> pa.RecordBatch:
    """The rows with exactly the fields of the record, in its order; missing fields are null."""
    schema = pa.schema(list(record))
    if rows.schema.equals(schema):
        return rows
    have = {field.name: i for i, field in enumerate(rows.schema)}
    arrays = [
        cast_column(rows.column(have[f.name]), f.type, (f.name,)) if f.name in have else pa.nulls(rows.num_rows, f.type)
        for f in record
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def cast_column(column: Column, kind: pa.DataType, path: Path = ()) -> Column:
    have = column.type
    if have.equals(kind):
        return column
    if pa.types.is_null(have):
        return pa.nulls(len(column), kind)
    if have.equals(INT) and kind.equals(DOUBLE):
        try:
            return pc.cast(column, kind)
        except pa.ArrowInvalid:
            raise Inexact(path) from None
    if have in NUMBERS and kind in NUMBERS and merge(have, kind).equals(kind):
        return pc.cast(column, kind)
    if kind.equals(TEXT):
        return json_of(column) if _json_is_bare(have) else text_of(column)
    if pa.types.is_struct(have) and pa.types.is_struct(kind):
        return _as_struct(column, kind, path)
    if pa.types.is_list(have) and pa.types.is_list(kind):
        return with_items(column, lambda items: cast_column(items, kind.value_type, (*path, ITEM)))
    if pa.types.is_map(have) and pa.types.is_map(kind):
        return with_items(column, lambda values: cast_column(values, kind.item_type, (*path, ITEM)))
    if pa.types.is_decimal(have) and pa.types.is_decimal(kind) and merge(have, kind).equals(kind):
        return pc.cast(column, kind)
    raise TypeError(f"{'.'.join(path)}: {have} does not widen to {kind}")


def _json_is_bare(kind: pa.DataType) -> bool:
    """Whether its JSON is no string. A string becomes text without its quotes."""
    return pa.types.is_nested(kind) or kind in NUMBERS or pa.types.is_boolean(kind)


def _as_struct(column: Column, kind: pa.StructType, path: Path) -> Column:
    have = {field.name: child for field, child in zip(column.type, column.flatten(), strict=True)}
    children = [
        cast_column(have[f.name], f.type, (*path, f.name)) if f.name in have else pa.nulls(len(column), f.type)
        for f in kind
    ]
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=column.is_null())


def may_round(have: pa.DataType, kind: pa.DataType) -> bool:
    """Whether a cast would turn whole numbers into doubles anywhere in the type."""
    if pa.types.is_struct(have) and pa.types.is_struct(kind):
        inner = {f.name: f.type for f in kind}
        return any(f.name in inner and may_round(f.type, inner[f.name]) for f in have)
    if pa.types.is_list(have) and pa.types.is_list(kind):
        return may_round(have.value_type, kind.value_type)
    if pa.types.is_map(have) and pa.types.is_map(kind):
        return may_round(have.item_type, kind.item_type)
    return bool(have.equals(INT) and kind.equals(DOUBLE))


def as_text_at(record: pa.DataType, path: Path) -> pa.DataType:
    """The type with text at the path. A path that ends early, at a field that is text already, changes nothing."""
    if not path:
        return TEXT
    if path[0] == ITEM and pa.types.is_list(record):
        return pa.list_(as_text_at(record.value_type, path[1:]))
    if path[0] == ITEM and pa.types.is_map(record):
        return pa.map_(TEXT, as_text_at(record.item_type, path[1:]))
    if not pa.types.is_struct(record):
        return record
    fields = [pa.field(f.name, as_text_at(f.type, path[1:]) if f.name == path[0] else f.type) for f in record]
    return pa.struct(fields)
