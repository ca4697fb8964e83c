"""Single fields of typed columns as text, for names of folders."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.text import text_of
from s3sink_job.columns.types import TEXT, Column, Path
from s3sink_job.decode.bad_records import NO_FAULTS, Faults, faults_at


def column_values(column: Column, path: Path) -> tuple[Column, Faults]:
    """The field at the path as text; null where there is none. Entries of a map are found by their key."""
    for name in path:
        found = _inner(column, name)
        if found is None:
            return pa.nulls(len(column), TEXT), NO_FAULTS
        column = found
    if pa.types.is_nested(column.type):
        rows = pc.indices_nonzero(column.is_valid()).to_pylist()
        why = f"is non-primitive: {_article(column.type)} cannot name a folder"
        return pa.nulls(len(column), TEXT), faults_at(rows, "NotAScalar", why)
    return text_of(column), NO_FAULTS


def _inner(column: Column, name: str) -> Column | None:
    if pa.types.is_struct(column.type) and name in column.type.names:
        return column.flatten()[column.type.get_field_index(name)]
    if pa.types.is_map(column.type):
        return pc.map_lookup(column, pa.scalar(name, pa.string()), "last")
    return None


def _article(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return "an array"
    return "a map" if pa.types.is_map(kind) else "a record"
