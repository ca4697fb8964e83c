"""Single fields from columns that are decoded already, where a column holds them exactly as they were written.

A column of text may have been widened, and then holds numbers and objects as well. A column of any JSON also has
strings with their quotes. All of these start with characters that no other value starts with, apart from strings. So
any other text was a string, `true` or `false`.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.types import BOOL, INT, TEXT, Column, Path
from s3sink_job.decode.bad_records import NO_FAULTS
from s3sink_job.decode.field_values import FieldValues, without_empty

NESTED_OR_NUMBER = r"^[\"{\[0-9-]"
NESTED_OR_ROUNDED = r"^(?:[\"{\[]|-?[0-9]+[.eE]|-?[0-9]{16})"
"""Where only the value of a number counts: its text in a column may have fewer digits than the record."""


def column_fields(rows: pa.RecordBatch, paths: Mapping[Path, bool]) -> dict[Path, FieldValues]:
    """As many of the fields as the columns hold. True means: numbers exactly as they are written."""
    found = {}
    for path, exact in paths.items():
        column = _at(rows, path)
        values = None if column is None else _values(column, NESTED_OR_NUMBER if exact else NESTED_OR_ROUNDED)
        if values is not None:
            found[path] = values
    return found


def _at(rows: pa.RecordBatch, path: Path) -> Column | None:
    first, *inner = path
    if first not in rows.schema.names:
        return None
    column = rows.column(first)
    for name in inner:
        if not pa.types.is_struct(column.type) or name not in column.type.names:
            return None
        column = column.flatten()[column.type.get_field_index(name)]
    return column


def _values(column: Column, unsure: str) -> FieldValues | None:
    if column.type not in (TEXT, INT, BOOL):
        return None
    encoded = column.dictionary_encode()
    distinct = encoded.dictionary
    # Zero may have been written as -0.
    doubt = pc.equal(distinct, 0) if column.type == INT else pc.match_substring_regex(distinct.cast(TEXT), unsure)
    if pc.any(doubt, min_count=0).as_py():
        return None
    return without_empty(distinct.cast(TEXT), encoded.indices, NO_FAULTS)
