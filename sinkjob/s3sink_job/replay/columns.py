"""The columns that a replay starts from. It never changes the type of a column that the sink has.

The running driver does not read the state of replays. A replay that widened a column would leave objects with the old
type beside objects with the new one.
"""

from __future__ import annotations

import pyarrow as pa

from s3sink_job.columns.evolution import Incompatible
from s3sink_job.columns.known_columns import NO_COLUMNS, KnownColumns
from s3sink_job.commit.schemas import widening


def starting_columns(sinks: KnownColumns | None, replays: KnownColumns | None, *, typed: bool) -> KnownColumns:
    """Those of the sink, and those that earlier replays added as far as they fit."""
    known = sinks or NO_COLUMNS
    if replays is None:
        return known
    try:
        both = widening(typed=typed)(known, replays)
    except Incompatible:
        return known
    return both if not changed_column(known, both) else known


def changed_column(before: KnownColumns, now: KnownColumns) -> str:
    """The first column with another type than before; empty if there is none. New columns do not count."""
    return _changed(before.record, now.record, ())


def _changed(before: pa.DataType, now: pa.DataType, path: tuple[str, ...]) -> str:
    if before.equals(now) or pa.types.is_null(before):
        return ""
    if pa.types.is_struct(before) and pa.types.is_struct(now):
        for field in before:
            place, inner = now.get_field_index(field.name), (*path, field.name)
            if place < 0:
                return ".".join(inner)
            if changed := _changed(field.type, now[place].type, inner):
                return changed
        return ""
    if pa.types.is_list(before) and pa.types.is_list(now):
        return _changed(before.value_type, now.value_type, path)
    if pa.types.is_map(before) and pa.types.is_map(now):
        return _changed(before.item_type, now.item_type, path)
    return ".".join(path)
