"""Fields that were decoded to columns already, where a column tells them just as they were written.

A column of text may hold numbers and objects as well, since it may have been widened. All of those begin with
characters that give them away, and so what begins otherwise was text, `true` or `false`.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.encoding import Encoding
from s3sink_job.records.fields import Path, Values, settled
from s3sink_job.records.origin import OWN_FIELDS
from s3sink_job.records.tables import VALUE, takes_apart
from s3sink_job.records.text import Column
from s3sink_job.schema.types import BOOL, INT, TEXT

NESTED_OR_NUMBER = r"^[{\[0-9-]"
NESTED_OR_ROUNDED = r"^(?:[{\[]|-?[0-9]+[.eE]|-?[0-9]{16})"
"""Where a number may be told in other words, but has to be the same: text may have more of its digits."""


def decoded_fields(rows: pa.RecordBatch, encoding: Encoding, paths: Mapping[Path, bool]) -> dict[Path, Values]:
    """As many of the fields as the rows tell. Where it is said so of a path, it matters how a number is written."""
    if not takes_apart(encoding):
        return {}
    found = {}
    # Columns of ours are no fields of the value, whatever they are called.
    ours = () if encoding.envelope else OWN_FIELDS.get(encoding.meta, ())
    for path, verbatim in paths.items():
        if path[0] in ours:
            continue
        column = _at(rows, (VALUE, *path) if encoding.envelope else path)
        values = None if column is None else _values(column, NESTED_OR_NUMBER if verbatim else NESTED_OR_ROUNDED)
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


def _values(column: Column, unsure: str) -> Values | None:
    if column.type not in (TEXT, INT, BOOL):
        return None
    encoded = column.dictionary_encode()
    distinct = encoded.dictionary
    # Zero may have been written with a sign.
    doubt = pc.equal(distinct, 0) if column.type == INT else pc.match_substring_regex(distinct.cast(TEXT), unsure)
    if pc.any(doubt, min_count=0).as_py():
        return None
    return settled(distinct.cast(TEXT), encoded.indices, {})
