"""Hypothesis strategies for types of inferred columns, and for rows that fit them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from s3sink_job.columns.types import BOOL, DOUBLE, INT, NULL, TEXT

NAMES = ("a", "b", "c", "", "[]", "list", "struct", "ä.b")

simple = st.sampled_from([NULL, BOOL, INT, DOUBLE, TEXT])


def structs(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.StructType]:
    return st.dictionaries(st.sampled_from(NAMES), inner, max_size=4).map(
        lambda fields: pa.struct([pa.field(name, kind) for name, kind in fields.items()])
    )


kinds = st.recursive(simple, lambda inner: structs(inner) | inner.map(pa.list_), max_leaves=8)
records = structs(kinds)

EXACT = 2**53


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of a type, null at every level, whole numbers small enough for doubles."""
    if pa.types.is_null(kind):
        return st.none()
    if pa.types.is_struct(kind):
        inner: st.SearchStrategy[Any] = st.fixed_dictionaries({field.name: values(field.type) for field in kind})
    elif pa.types.is_list(kind):
        inner = st.lists(values(kind.value_type), max_size=3)
    else:
        inner = {
            BOOL: st.booleans(),
            INT: st.integers(-EXACT, EXACT),
            DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
            TEXT: st.text(st.characters(codec="utf-8"), max_size=5),
        }[kind]
    return st.none() | inner


def rows(record: pa.StructType) -> st.SearchStrategy[list[dict[str, Any]]]:
    row = st.fixed_dictionaries({field.name: values(field.type) for field in record})
    return st.lists(row, min_size=1, max_size=5)


def batch(record: pa.StructType, content: list[dict[str, Any]]) -> pa.RecordBatch:
    """The rows, also those of a record without fields."""
    return pa.RecordBatch.from_struct_array(pa.array(content, record))
