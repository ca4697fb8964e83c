"""Hypothesis strategies for the types of records with a schema, and for values up to the limits of each type."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from s3sink_job.columns.types import BOOL, EMPTY, INT, NULL, SIMPLE, TEXT, decimal

DAY = {"ms": 86_400_000, "us": 86_400_000_000}
LONG = 2**63 - 1

simple = st.sampled_from([kind for name, kind in SIMPLE.items() if name != "null"])
decimals = st.integers(1, 76).flatmap(lambda digits: st.integers(0, digits).map(lambda scale: decimal(digits, scale)))
fixed = st.sampled_from([1, 3, 4, 12, 16, 20, 65]).map(pa.binary)
leaf_kinds = simple | decimals | fixed


def structs(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.StructType]:
    names = st.sampled_from(("a", "b", "c d", "ä"))
    return st.dictionaries(names, inner, min_size=1, max_size=3).map(lambda fields: pa.struct(list(fields.items())))


def _nested(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return structs(inner) | inner.map(pa.list_) | inner.map(lambda kind: pa.map_(TEXT, kind))


typed_kinds = st.recursive(leaf_kinds, _nested, max_leaves=6)
typed_records = structs(typed_kinds)
records_with_empty_ones = structs(st.recursive(leaf_kinds | st.just(EMPTY) | st.just(NULL), _nested, max_leaves=6))
"""Also with records without fields in them."""


def leaf_values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Times are numbers: Python has no years beyond 9999 and no nanoseconds."""
    if pa.types.is_decimal(kind):
        most = 10**kind.precision - 1
        exact = st.integers(-most, most) | st.sampled_from([0, -1, 1, most, -most, 127, 128, -128, -129])
        return exact.filter(lambda n: abs(n) <= most).map(lambda n: Decimal(f"{n}E-{kind.scale}"))
    if pa.types.is_fixed_size_binary(kind):
        return st.binary(min_size=kind.byte_width, max_size=kind.byte_width)
    if pa.types.is_time(kind):
        return st.integers(0, DAY[kind.unit] - 1)
    if pa.types.is_date(kind) or kind.equals(pa.int32()):
        return st.integers(-(2**31), 2**31 - 1)
    if pa.types.is_timestamp(kind) or kind.equals(INT):
        return st.integers(-LONG - 1, LONG)
    if pa.types.is_floating(kind):
        return st.floats(width=32 if kind.equals(pa.float32()) else 64)
    return {BOOL: st.booleans(), TEXT: st.text(st.characters(codec="utf-8"), max_size=5)}.get(kind, st.binary())


def typed_values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of a type, null at every level."""
    if pa.types.is_null(kind):
        return st.none()
    if pa.types.is_struct(kind):
        inner: st.SearchStrategy[Any] = st.fixed_dictionaries({f.name: typed_values(f.type) for f in kind})
    elif pa.types.is_list(kind):
        inner = st.lists(typed_values(kind.value_type), max_size=3)
    elif pa.types.is_map(kind):
        keys = st.text(st.characters(codec="utf-8"), max_size=3)
        inner = st.dictionaries(keys, typed_values(kind.item_type), max_size=3).map(lambda d: list(d.items()))
    else:
        inner = leaf_values(kind)
    return st.none() | inner


@st.composite
def typed_rows(draw: st.DrawFn) -> pa.RecordBatch:
    """Rows of any types, also a part of a larger batch."""
    record = draw(typed_records)
    row = st.fixed_dictionaries({field.name: typed_values(field.type) for field in record})
    rows = pa.RecordBatch.from_struct_array(pa.array(draw(st.lists(row, min_size=1, max_size=5)), record))
    return rows.slice(draw(st.integers(0, rows.num_rows - 1)))
