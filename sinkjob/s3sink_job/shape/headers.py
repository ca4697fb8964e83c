"""Headers as columns: all of them in order, or the last one of each name."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.types import Column

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
HEADER_MAP = pa.map_(pa.string(), pa.binary())


def header_list(column: Column) -> Column:
    """The headers as Spark reads them, but an empty list instead of null for a record without any."""
    structs = _structs(pa.concat_arrays([column]).flatten())
    return pa.ListArray.from_arrays(header_starts(column), structs, type=HEADERS)


def header_map(column: Column) -> Column:
    """By name: of several headers with one name the last, since readers of maps expect each name once."""
    starts, items = last_headers(column)
    return pa.MapArray.from_arrays(starts, items.field("key"), items.field("value"), type=HEADER_MAP)


def header_starts(column: Column) -> Column:
    """Where the headers of each record begin among all."""
    lengths = pc.fill_null(pc.list_value_length(column), 0).cast(pa.int32())
    return _starts(lengths)


def last_headers(column: Column) -> tuple[Column, Column]:
    """Where the headers of each record begin, and all headers: the last one of each name, in order."""
    plain = pa.concat_arrays([column])
    items = _structs(plain.flatten())
    rows = pc.list_parent_indices(plain).to_numpy()
    names = items.field("key").dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    ids = rows.astype(np.int64) * (int(names.max(initial=0)) + 1) + names
    # Seen from the end, the last one of each name is the first.
    _, from_end = np.unique(ids[::-1], return_index=True)
    last = np.sort(len(ids) - 1 - from_end)
    lengths = pa.array(np.bincount(rows[last], minlength=len(plain)).astype(np.int32))
    return _starts(lengths), items.take(pa.array(last))


def _starts(lengths: Column) -> Column:
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])


def _structs(items: Column) -> Column:
    return pa.StructArray.from_arrays(
        [items.field("key").cast(pa.string()), items.field("value").cast(pa.binary())], fields=list(HEADERS.value_type)
    )
