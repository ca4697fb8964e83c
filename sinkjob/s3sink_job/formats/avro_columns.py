"""Columns as the Avro library takes them, and back.

The library has whole numbers, floats, text and what nests them. Everything else is given to it as one of these with
the same bytes in Avro: bytes and decimals as text, times as whole numbers, a `fixed` as a record of floats.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from s3sink_job.columns.decimals import decimal_bytes, decimals_of
from s3sink_job.columns.nested import with_items, with_leaves
from s3sink_job.columns.types import TEXT, Column, with_leaf_types
from s3sink_job.formats.avro_names import avro_name
from s3sink_job.formats.avro_schema import words

WORD_TYPES = {8: "f8", 4: "f4"}


def physical(kind: pa.DataType) -> pa.DataType:
    """The type with the same memory that a view gives: numbers for times."""
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return pa.int32()
    return pa.int64() if pa.types.is_time64(kind) or pa.types.is_timestamp(kind) else kind


def encodable(rows: pa.RecordBatch, *, bytes_as: pa.DataType, split_fixed: bool) -> pa.RecordBatch:
    """The rows with names of Avro and with types that the library takes."""

    def made(column: Column) -> Column:
        if pa.types.is_decimal(column.type):
            return decimal_bytes(column)
        return in_words(column) if split_fixed and words(column.type.byte_width) else column.cast(pa.binary())

    def taken(kind: pa.DataType) -> pa.DataType:
        return bytes_as if pa.types.is_binary(kind) else physical(kind)

    columns = [with_leaves(column, _is_made, made) for column in rows.columns]
    viewed = [column.view(_renamed(with_leaf_types(column.type, taken))) for column in columns]
    return pa.RecordBatch.from_arrays(viewed, [avro_name(name) for name in rows.schema.names])


def _is_made(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind))


def _renamed(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(avro_name(field.name), _renamed(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_renamed(kind.value_type))
    return pa.map_(TEXT, _renamed(kind.item_type)) if pa.types.is_map(kind) else kind


def in_words(column: Column) -> Column:
    """A `fixed` as a record of floats: Avro writes both without a length, and floats as the bytes they have."""
    column = pa.concat_arrays([column])  # a copy without an offset
    size, buffer = column.type.byte_width, column.buffers()[1]
    data = np.frombuffer(b"" if buffer is None else buffer, np.uint8)
    data = data[: len(column) * size].reshape(len(column), size)
    children, at = [], 0
    for width in words(size):
        children.append(pa.array(np.ascontiguousarray(data[:, at : at + width]).view(WORD_TYPES[width]).ravel()))
        at += width
    names = [f"w{number}" for number in range(len(children))]
    return pa.StructArray.from_arrays(children, names, mask=column.is_null())


def decoded(column: Column, kind: pa.DataType) -> Column:
    """A column that was read without logical types, with its names and types."""
    if pa.types.is_struct(kind):
        children = [decoded(child, field.type) for child, field in zip(column.flatten(), kind, strict=True)]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=column.is_null())
    if pa.types.is_list(kind):
        return with_items(column, lambda items: decoded(items, kind.value_type))
    if pa.types.is_map(kind):
        return with_items(column, lambda values: decoded(values, kind.item_type))
    if pa.types.is_decimal(kind):
        return decimals_of(column, kind)[0]
    if pa.types.is_fixed_size_binary(kind):
        return column.cast(kind)
    return column if column.type.equals(kind) else column.view(kind)
