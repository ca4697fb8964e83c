"""The types of inferred columns, and how they widen: never back, never to another branch.

    null ─► bool, int64 ─► double, struct, list  ─► text

A field that was seen with two types that no other holds both of becomes text: strings as they are, anything
else as its JSON. Structs widen field by field, lists element by element. What is deeper or wider than a
table can bear is text as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

import pyarrow as pa

from s3sink_job.spec import ANYTHING, MORE

NULL, BOOL, INT, DOUBLE, TEXT = pa.null(), pa.bool_(), pa.int64(), pa.float64(), pa.string()
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
    """At most so many columns: what nests becomes text first, and what is left over shares the column `_more`.

    Fields that come first stay, whatever comes later: a column that was there once never moves to `_more`.
    """
    fields = [field for field in record if field.name != MORE]
    # One is always left for `_more`.
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
    """Whether Parquet has a type for it: null, `{}` and lists of these it cannot tell apart."""
    if pa.types.is_struct(kind):
        return any(holds_something(field.type) for field in kind)
    return holds_something(kind.value_type) if pa.types.is_list(kind) else not pa.types.is_null(kind)


def writable(kind: pa.DataType) -> pa.DataType:
    """The type without what holds nothing yet: such a field has no column until it does."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, writable(f.type)) for f in kind if holds_something(f.type)])
    return pa.list_(writable(kind.value_type)) if pa.types.is_list(kind) else kind


def to_doc(kind: pa.DataType) -> Any:
    if pa.types.is_struct(kind):
        return {"struct": {field.name: to_doc(field.type) for field in kind}}
    return {"list": to_doc(kind.value_type)} if pa.types.is_list(kind) else NAMES[kind]


def from_doc(doc: Any) -> pa.DataType:
    if isinstance(doc, Mapping):
        if "list" in doc:
            return pa.list_(from_doc(doc["list"]))
        return pa.struct([pa.field(name, from_doc(inner)) for name, inner in doc["struct"].items()])
    return TEXT if doc == ANYTHING else SIMPLE[doc]


def to_text(record: pa.StructType) -> str:
    return json.dumps(to_doc(record), separators=(",", ":"), ensure_ascii=False)


def from_text(text: str) -> pa.StructType:
    """No text is no knowledge: a record without fields."""
    return from_doc(json.loads(text)) if text else EMPTY
