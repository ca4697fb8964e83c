"""The types of columns, and how they widen: never back, never to another branch.

    null ─► bool, int64 ─► double, struct, list  ─► text

A field with values of two types that share no wider one becomes text: strings as they are, anything else as its
JSON. Structs widen field by field, lists element by element. What is nested too deeply, or has too many fields for
a table, is text as well.

Records with a schema of their own have more types. Whole numbers widen from int32 to int64, floats to double, whole
numbers and floats together to double, decimals to more digits before the point, maps value by value.

A schema travels as a `pa.StructType`. It is text only where it is stored or sent: see `known_columns.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any, TypeAlias

import pyarrow as pa

from s3sink_api.spec import ANYTHING, MORE

Column: TypeAlias = pa.Array
Path: TypeAlias = tuple[str, ...]
"""The names that lead to a field."""
NULL, BOOL, INT, DOUBLE, TEXT = pa.null(), pa.bool_(), pa.int64(), pa.float64(), pa.string()
JSON = pa.json_(TEXT)
"""In a supplied schema: a field that takes any value. Its column is text."""
UNITS = ("ms", "us", "ns")
SIMPLE = {
    "null": NULL,
    "bool": BOOL,
    "int64": INT,
    "double": DOUBLE,
    "text": TEXT,
    "int32": pa.int32(),
    "float": pa.float32(),
    "bytes": pa.binary(),
    "date": pa.date32(),
    "time_ms": pa.time32("ms"),
    "time_us": pa.time64("us"),
    **{f"timestamp_{unit}": pa.timestamp(unit, "UTC") for unit in UNITS},
    **{f"local_timestamp_{unit}": pa.timestamp(unit) for unit in UNITS},
}
NAMES = {kind: name for name, kind in SIMPLE.items()}
EMPTY = pa.struct([])
WHOLE = frozenset({pa.int32(), INT})
NUMBERS = WHOLE | {pa.float32(), DOUBLE}
DECIMAL128_DIGITS = 38
ITEM = "[]"
"""The step of a path from a list to its items, or from a map to its values."""

MAX_DEPTH = 16
MAX_LEAVES = 1_000


def merge(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The narrowest type that holds what either holds."""
    return joined(one, other, _double_or_text)


def _double_or_text(path: Path, one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Whole numbers that no double holds become text later: see `columns/cast.py`."""
    return DOUBLE if {one, other} <= NUMBERS else TEXT


Conflict: TypeAlias = Callable[[Path, pa.DataType, pa.DataType], pa.DataType]


def joined(one: pa.DataType, other: pa.DataType, conflict: Conflict, path: Path = ()) -> pa.DataType:
    """The narrowest type that holds what either holds; `conflict` gives it for two types that share no exact one."""
    if one.equals(other) or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if {one, other} <= NUMBERS and (INT not in {one, other} or {one, other} <= WHOLE):
        return INT if {one, other} <= WHOLE else DOUBLE
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        fields = {f.name: f.type for f in one}
        for field in other:
            known = fields.get(field.name, NULL)
            fields[field.name] = joined(known, field.type, conflict, (*path, field.name))
        return pa.struct(list(fields.items()))
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(joined(one.value_type, other.value_type, conflict, (*path, ITEM)))
    if pa.types.is_map(one) and pa.types.is_map(other):
        return pa.map_(TEXT, joined(one.item_type, other.item_type, conflict, (*path, ITEM)))
    if pa.types.is_decimal(one) and pa.types.is_decimal(other) and one.scale == other.scale:
        return decimal(max(one.precision, other.precision), one.scale)
    return conflict(path, one, other)


def decimal(precision: int, scale: int) -> pa.DataType:
    return (pa.decimal128 if precision <= DECIMAL128_DIGITS else pa.decimal256)(precision, scale)


def merge_all(types: Iterable[pa.DataType]) -> pa.DataType:
    return reduce(merge, types, EMPTY)


def bounded(record: pa.StructType, most: int = MAX_LEAVES) -> pa.StructType:
    """The record with at most so many columns: nested fields become text first, the rest shares the column `_more`.

    Fields that come first keep their column, whatever comes later: no column ever moves to `_more`.
    """
    fields = [field for field in record if field.name != MORE]
    # One column is always kept free for `_more`.
    spare = most - 1 - len(fields)
    if sum(leaves(f.type) for f in fields) < most:
        return record
    kept: list[pa.Field] = []
    for field in fields[: most - 1]:
        extra = leaves(field.type) - 1
        fits = extra <= max(0, spare)
        spare -= extra if fits else 0
        kept.append(field if fits else pa.field(field.name, TEXT))
    if len(kept) < len(record):
        kept.append(pa.field(MORE, TEXT))
    return pa.struct(kept)


def leaves(kind: pa.DataType) -> int:
    if pa.types.is_struct(kind):
        return sum(leaves(field.type) for field in kind) or 1
    if pa.types.is_map(kind):
        return 1 + leaves(kind.item_type)
    return leaves(kind.value_type) if pa.types.is_list(kind) else 1


def holds_something(kind: pa.DataType) -> bool:
    """Whether Parquet has a type for it. It has none for null, for `{}` and for lists of these. A map has its keys."""
    if pa.types.is_struct(kind):
        return any(holds_something(field.type) for field in kind)
    return holds_something(kind.value_type) if pa.types.is_list(kind) else not pa.types.is_null(kind)


def writable(kind: pa.DataType) -> pa.DataType:
    """The type without the fields that hold no value yet: they get a column with their first value."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, writable(f.type)) for f in kind if holds_something(f.type)])
    if pa.types.is_map(kind):
        return pa.map_(TEXT, writable(kind.item_type) if holds_something(kind.item_type) else TEXT)
    return pa.list_(writable(kind.value_type)) if pa.types.is_list(kind) else kind


def with_more(kind: pa.DataType) -> pa.DataType:
    """The type with the column `_more`, always null, in each struct that has no other one.

    No format has a struct without columns, and `{}` must differ from null.
    """
    if pa.types.is_struct(kind):
        fields = list(fields_with_more(kind))
        if not any(holds_something(field.type) for field in fields):
            fields = [*(field for field in fields if field.name != MORE), pa.field(MORE, TEXT)]
        return pa.struct(fields)
    if pa.types.is_list(kind):
        return pa.list_(with_more(kind.value_type))
    return pa.map_(TEXT, with_more(kind.item_type)) if pa.types.is_map(kind) else kind


def fields_with_more(record: pa.StructType) -> pa.StructType:
    """The same for what is nested in a record, which may itself have no columns."""
    return pa.struct([pa.field(field.name, with_more(field.type)) for field in record])


def within(kind: pa.DataType, own: pa.DataType) -> pa.DataType:
    """The type without the fields that `own` lacks."""
    if pa.types.is_struct(kind) and pa.types.is_struct(own):
        fields = {field.name: field.type for field in own}
        return pa.struct([pa.field(f.name, within(f.type, fields[f.name])) for f in kind if f.name in fields])
    if pa.types.is_list(kind) and pa.types.is_list(own):
        return pa.list_(within(kind.value_type, own.value_type))
    if pa.types.is_map(kind) and pa.types.is_map(own):
        return pa.map_(TEXT, within(kind.item_type, own.item_type))
    return kind


def stored(kind: pa.DataType) -> pa.DataType:
    """The columns of a supplied schema: text where a field takes any value."""
    return with_leaf_types(kind, lambda leaf: TEXT if leaf.equals(JSON) else leaf)


def with_leaf_types(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """The type with each type in it that is not nested replaced."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, with_leaf_types(field.type, change)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(with_leaf_types(kind.value_type, change))
    return pa.map_(TEXT, with_leaf_types(kind.item_type, change)) if pa.types.is_map(kind) else change(kind)


def to_doc(kind: pa.DataType) -> Any:
    if pa.types.is_struct(kind):
        return {"struct": {field.name: to_doc(field.type) for field in kind}}
    if pa.types.is_list(kind):
        return {"list": to_doc(kind.value_type)}
    if pa.types.is_map(kind):
        return {"map": to_doc(kind.item_type)}
    if pa.types.is_decimal(kind):
        return {"decimal": [kind.precision, kind.scale]}
    if pa.types.is_fixed_size_binary(kind):
        return {"fixed": kind.byte_width}
    return ANYTHING if kind.equals(JSON) else NAMES[kind]


def has_doc(kind: pa.DataType) -> bool:
    """Whether `to_doc` has a document for the type."""
    if pa.types.is_struct(kind):
        return all(has_doc(field.type) for field in kind)
    if pa.types.is_list(kind):
        return has_doc(kind.value_type)
    if pa.types.is_map(kind):
        return has_doc(kind.item_type)
    return kind in NAMES or pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind)


def from_doc(doc: Any) -> pa.DataType:
    match doc:
        case {"struct": fields}:
            return pa.struct([pa.field(name, from_doc(inner)) for name, inner in fields.items()])
        case {"list": item}:
            return pa.list_(from_doc(item))
        case {"map": value}:
            return pa.map_(TEXT, from_doc(value))
        case {"decimal": [precision, scale]}:
            return decimal(precision, scale)
        case {"fixed": size}:
            return pa.binary(size)
        case str() if doc == ANYTHING or doc in SIMPLE:
            return JSON if doc == ANYTHING else SIMPLE[doc]
    raise ValueError(f"{doc!r} is no type of a column that this release has")


def from_text(text: str) -> pa.StructType:
    """The type of a stored text; of no text a record without fields."""
    return from_doc(json.loads(text)) if text else EMPTY
