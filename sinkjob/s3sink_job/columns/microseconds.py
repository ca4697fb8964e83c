"""Timestamps in microseconds, for readers that have no nanoseconds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.nested import any_leaf, with_leaves
from s3sink_job.columns.types import INT, Column


def in_microseconds(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Nanoseconds as microseconds, at any depth: digits below are cut off. All other columns stay as they are."""
    if not any(any_leaf(field.type, is_nanoseconds) for field in rows.schema):
        return rows
    columns = [with_leaves(column, is_nanoseconds, _cut) for column in rows.columns]
    return pa.RecordBatch.from_arrays(columns, rows.schema.names)


def is_nanoseconds(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.unit == "ns")


def _cut(column: Column) -> Column:
    """Times before 1970, too, become the microsecond that they are in. Arrow's cast would take the next one."""
    numbers = np.floor_divide(pc.fill_null(column.view(INT), 0).to_numpy(), 1000)
    mask = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    return pa.array(numbers, INT, mask=mask).view(pa.timestamp("us", column.type.tz))
