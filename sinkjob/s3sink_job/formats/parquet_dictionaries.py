"""Which columns of a Parquet object get a dictionary: those with repeated values.

Parquet itself drops a dictionary only when it exceeds 1 MiB. In a smaller object a column without repeated values
would keep its dictionary, which takes longer to write and makes the object a quarter larger.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

BLOCKS, BLOCK = 4, 256
"""The sample: blocks of rows, since equal values are often close together, from all over the object."""
MOST = 2 * 2**20
"""Bytes of the sample, because it is copied."""


def repeating(rows: pa.Table) -> list[str]:
    """The paths of columns with repeated values, as Parquet writes them."""
    sample = _sample(rows)
    share = rows.num_rows / max(1, sample.num_rows)
    columns = zip(sample.schema, sample.columns, strict=True)
    leaves = (leaf for field, column in columns for leaf in _leaves(field, column))
    return [path for path, values in leaves if _repeats(values, len(values) * share)]


def _sample(rows: pa.Table) -> pa.Table:
    block = min(BLOCK, max(1, MOST * rows.num_rows // max(1, rows.nbytes) // BLOCKS))
    if rows.num_rows > BLOCKS * block:
        step = (rows.num_rows - block) // (BLOCKS - 1)
        rows = pa.concat_tables([rows.slice(number * step, block) for number in range(BLOCKS)])
    return rows.combine_chunks()


def _leaves(field: pa.Field, column: pa.ChunkedArray | pa.Array, above: str = "") -> Iterator[tuple[str, pa.Array]]:
    """The Parquet columns of an Arrow column, without nulls."""
    path = f"{above}{field.name}"
    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_struct(field.type):
        for inner, child in zip(field.type, values.flatten(), strict=True):
            yield from _leaves(inner, child, f"{path}.")
    elif pa.types.is_list(field.type):
        yield from _leaves(field.type.value_field.with_name("element"), values.flatten(), f"{path}.list.")
    elif pa.types.is_map(field.type):
        entries = pa.concat_arrays([values])  # a copy without an offset
        yield from _leaves(field.type.key_field.with_name("key"), entries.keys, f"{path}.key_value.")
        yield from _leaves(field.type.item_field.with_name("value"), entries.items, f"{path}.key_value.")
    else:
        yield path, values.drop_null()


def _repeats(values: pa.Array, count: float) -> bool:
    """Whether each distinct value would occur twice or more, on average, among `count` values like these.

    If n values are drawn from d distinct ones, about n**2 / (2 * d) of them repeat an earlier one. That gives d.
    """
    seen = len(values)
    again = seen - len(values.unique())
    return bool(again * 4 >= seen or again * count >= seen**2)
