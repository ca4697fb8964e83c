"""The types of inferred columns, and how they widen: never back, never to another branch.

    null ─► bool, int64 ─► double, struct, list  ─► text

A field with values of two types that share no wider one becomes text: strings as they are, anything else as its
JSON. Structs widen field by field, lists element by element. What is nested too deeply, or has too many fields for
a table, is text as well.

A schema travels as a `pa.StructType`. It is text only where it is stored or sent: see `to_text` and `from_text`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
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
SIMPLE = {"null": NULL, "bool": BOOL, "int64": INT, "double": DOUBLE, "text": TEXT}
NAMES = {kind: name for name, kind in SIMPLE.items()}
EMPTY = pa.struct([])

MAX_DEPTH = 16
MAX_LEAVES = 1_000


def merge(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The narrowest type that holds what either holds."""
    if one.equals(other) or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if {one, other} == {INT, DOUBLE}:
        return DOUBLE
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        fields = {f.name: f.type for f in one}
        for field in other:
            fields[field.name] = merge(fields.get(field.name, NULL), field.type)
        return pa.struct(list(fields.items()))
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(merge(one.value_type, other.value_type))
    return TEXT


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
    return leaves(kind.value_type) if pa.types.is_list(kind) else 1


def holds_something(kind: pa.DataType) -> bool:
    """Whether Parquet has a type for it. It has none for null, for `{}` and for lists of these."""
    if pa.types.is_struct(kind):
        return any(holds_something(field.type) for field in kind)
    return holds_something(kind.value_type) if pa.types.is_list(kind) else not pa.types.is_null(kind)


def writable(kind: pa.DataType) -> pa.DataType:
    """The type without the fields that hold no value yet: they get a column with their first value."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, writable(f.type)) for f in kind if holds_something(f.type)])
    return pa.list_(writable(kind.value_type)) if pa.types.is_list(kind) else kind


def stored(kind: pa.DataType) -> pa.DataType:
    """The columns of a supplied schema: text where a field takes any value."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, stored(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(stored(kind.value_type))
    return TEXT if kind.equals(JSON) else kind


def to_doc(kind: pa.DataType) -> Any:
    if pa.types.is_struct(kind):
        return {"struct": {field.name: to_doc(field.type) for field in kind}}
    if pa.types.is_list(kind):
        return {"list": to_doc(kind.value_type)}
    return ANYTHING if kind.equals(JSON) else NAMES[kind]


def from_doc(doc: Any) -> pa.DataType:
    if isinstance(doc, Mapping):
        if "list" in doc:
            return pa.list_(from_doc(doc["list"]))
        return pa.struct([pa.field(name, from_doc(inner)) for name, inner in doc["struct"].items()])
    return JSON if doc == ANYTHING else SIMPLE[doc]


def to_text(record: pa.StructType) -> str:
    return json.dumps(to_doc(record), separators=(",", ":"), ensure_ascii=False)


def from_text(text: str) -> pa.StructType:
    """The type of a stored text; of no text a record without fields."""
    return from_doc(json.loads(text)) if text else EMPTY
