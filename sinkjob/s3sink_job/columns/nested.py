"""Changes of values deep within structs, lists and maps, whole columns at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.text import text_of
from s3sink_job.columns.types import TEXT, Column


def any_leaf(kind: pa.DataType, wanted: Callable[[pa.DataType], bool]) -> bool:
    """Whether the type, or any type in it that is not nested, is a wanted one."""
    if pa.types.is_struct(kind):
        return any(any_leaf(field.type, wanted) for field in kind)
    if pa.types.is_list(kind):
        return any_leaf(kind.value_type, wanted)
    return any_leaf(kind.item_type, wanted) if pa.types.is_map(kind) else wanted(kind)


def with_leaves(column: Column, wanted: Callable[[pa.DataType], bool], change: Callable[[Column], Column]) -> Column:
    """The column with each wanted leaf changed, whatever its new type."""
    kind = column.type
    if not any_leaf(kind, wanted):
        return column
    if pa.types.is_struct(kind):
        children = [with_leaves(child, wanted, change) for child in column.flatten()]
        fields = [pa.field(field.name, child.type) for field, child in zip(kind, children, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=column.is_null())
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return with_items(column, lambda items: with_leaves(items, wanted, change))
    return change(column)


def with_items(column: Column, change: Callable[[Column], Column]) -> Column:
    """A list with its items changed, or a map with its values changed."""
    column = pa.concat_arrays([column])  # a copy without an offset
    if pa.types.is_list(column.type):
        items = change(column.values)
        return pa.ListArray.from_arrays(column.offsets, items, type=pa.list_(items.type), mask=column.is_null())
    values = change(column.items)
    kind = pa.map_(TEXT, values.type)
    return pa.MapArray.from_arrays(column.offsets, column.keys, values, type=kind, mask=column.is_null())


def has_other_keys(kind: pa.DataType) -> bool:
    """Whether a map anywhere in the type has keys that are not text."""
    if pa.types.is_struct(kind):
        return any(has_other_keys(field.type) for field in kind)
    if pa.types.is_list(kind):
        return has_other_keys(kind.value_type)
    return pa.types.is_map(kind) and (not kind.key_type.equals(TEXT) or has_other_keys(kind.item_type))


def with_text_keys(column: Column) -> Column:
    """The column with the keys of all maps as text: formats and stored schemas have no other maps."""
    kind = column.type
    if not has_other_keys(kind):
        return column
    if pa.types.is_struct(kind):
        children = [with_text_keys(child) for child in column.flatten()]
        fields = [pa.field(field.name, child.type) for field, child in zip(kind, children, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=column.is_null())
    if pa.types.is_list(kind):
        return with_items(column, with_text_keys)
    column = pa.concat_arrays([column])  # a copy without an offset
    keys, values = text_of(column.keys), with_text_keys(column.items)
    whole = pa.map_(TEXT, values.type)
    return pa.MapArray.from_arrays(column.offsets, keys, values, type=whole, mask=column.is_null())


def rows_where(column: Column, wanted: Callable[[pa.DataType], bool], test: Callable[[Column], Column]) -> set[int]:
    """The rows with a wanted leaf for which the test is true, at any depth."""
    return {row for rows, leaf in _placed_leaves(column, None, wanted) for row in _hits(rows, test(leaf))}


def _hits(rows: np.ndarray | None, hit: Column) -> list[int]:
    found = pc.indices_nonzero(hit).to_numpy()
    return list((found if rows is None else rows[found]).tolist())


def _placed_leaves(
    column: Column, rows: np.ndarray | None, wanted: Callable[[pa.DataType], bool]
) -> Iterator[tuple[np.ndarray | None, Column]]:
    """Each wanted leaf, and the row of each of its values; None where it has one value for each row."""
    kind = column.type
    if not any_leaf(kind, wanted):
        return
    if pa.types.is_struct(kind):
        for child in column.flatten():
            yield from _placed_leaves(child, rows, wanted)
    elif pa.types.is_list(kind) or pa.types.is_map(kind):
        items, parents = column_items(column)
        yield from _placed_leaves(items, parents if rows is None else rows[parents], wanted)
    else:
        yield rows, column


def column_items(column: Column) -> tuple[Column, np.ndarray]:
    """The items of lists, or the values of maps, and the index of the list or map that each is in."""
    if pa.types.is_map(column.type):
        entries = pa.concat_arrays([column])  # a copy without an offset
        kind = pa.list_(entries.type.item_type)
        column = pa.ListArray.from_arrays(entries.offsets, entries.items, type=kind, mask=entries.is_null())
    return column.flatten(), pc.list_parent_indices(column).to_numpy()
