"""Which columns of a Parquet object are worth a dictionary: those whose values come again.

Parquet itself gives a dictionary up only once it has grown to 1 MiB. In a smaller object a column in which no value
comes twice stays in its dictionary, which takes longer to write and makes the object a quarter larger.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

BLOCKS, BLOCK = 4, 256
"""Rows to look at: some together, since values that come again often do so soon, from all over the object."""
MOST = 2 * 2**20
"""Bytes of rows to look at, since they are copied."""


def repeating(rows: pa.Table) -> list[str]:
    """The paths of these columns, as Parquet tells them."""
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
    """The columns that Parquet makes of one, without nulls."""
    path = f"{above}{field.name}"
    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_struct(field.type):
        for inner, child in zip(field.type, values.flatten(), strict=True):
            yield from _leaves(inner, child, f"{path}.")
    elif pa.types.is_list(field.type):
        yield from _leaves(field.type.value_field.with_name("element"), values.flatten(), f"{path}.list.")
    else:
        yield path, values.drop_null()


def _repeats(values: pa.Array, count: float) -> bool:
    """Whether of so many values as these two and more are equal, on average.

    Of values drawn from as many as d, about n squared by 2 d are seen before among n: that tells d.
    """
    seen = len(values)
    again = seen - len(values.unique())
    return bool(again * 4 >= seen or again * count >= seen**2)
