"""Rows that were decoded in groups, one for each schema, back in the order of their records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from s3sink_job.columns.cast import cast_column, cast_rows
from s3sink_job.columns.types import Column


@dataclass(frozen=True)
class RowGroup:
    rows: npt.NDArray[np.int64]
    """The place of each row in the batch."""
    columns: pa.RecordBatch

    @staticmethod
    def whole(columns: pa.RecordBatch) -> RowGroup:
        return RowGroup(np.arange(columns.num_rows), columns)


def in_order(groups: Sequence[RowGroup], record: pa.StructType, size: int) -> pa.RecordBatch:
    """As many rows as the batch has, with the columns of the record; rows of no group are null.

    Column by column: many groups with few columns each cost no more than one with all of them.
    """
    if not len(record):
        # A batch without columns would lose its number of rows.
        return pa.RecordBatch.from_struct_array(pa.array([{}] * size, pa.struct([])))
    if len(groups) == 1 and len(groups[0].rows) == size and (np.diff(groups[0].rows) == 1).all():
        return cast_rows(groups[0].columns, record)
    having: dict[str, list[RowGroup]] = {field.name: [] for field in record}
    for group in groups:
        for name in group.columns.schema.names:
            having[name].append(group)
    arrays = [_column(field, having[field.name], size) for field in record]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(list(record)))


def _column(field: pa.Field, groups: list[RowGroup], size: int) -> Column:
    if not groups:
        return pa.nulls(size, field.type)
    places = np.full(size, -1, np.int64)
    parts, start = [], 0
    for group in groups:
        parts.append(cast_column(group.columns.column(field.name), field.type, (field.name,)))
        places[group.rows] = np.arange(start, start + len(group.rows))
        start += len(group.rows)
    return pa.concat_arrays(parts).take(pa.array(places, mask=places < 0))


def with_rows(column: Column, rows: npt.NDArray[np.int64], values: Sequence[Any]) -> Column:
    """The column with some of its rows replaced."""
    places = np.arange(len(column))
    places[rows] = len(column) + np.arange(len(rows))
    return pa.concat_arrays([column, pa.array(values, column.type)]).take(pa.array(places))
