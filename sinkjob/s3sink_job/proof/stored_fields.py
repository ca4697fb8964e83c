"""Keys and offsets of records that objects hold as columns or fields, and the rows that have a given one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.flush.manifest import ObjectEntry
from s3sink_job.shape.origin import AIRBYTE_ID, Origin
from s3sink_job.shape.settings import RowKind
from s3sink_job.task.encoding import Encoding

Field = Literal["key", "offset"]
META = {"Kafka": {"key": ("_key",), "offset": ("_offset",)}, "Quix": {"key": ("_key",)}}
ENVELOPE = {"key": ("key",), "offset": ("metadata", "offset")}


def holds_key(encoding: Encoding) -> bool:
    """Whether objects hold keys as the text that they are. Keys of other formats look different there."""
    return encoding.decoding.key == "String" and _path(encoding, "key") is not None


def holds_offset(encoding: Encoding) -> bool:
    return _path(encoding, "offset") is not None or _has_ids(encoding)


def rows_with_key(found: pa.Table, encoding: Encoding, key: str) -> list[int]:
    return list(_rows(found, _path(encoding, "key") or (), key))


def rows_with_offset(found: pa.Table, encoding: Encoding, entry: ObjectEntry, offset: int) -> list[int]:
    if _has_ids(encoding):
        columns = {"partition": pa.array([entry.partition]), "offset": pa.array([offset])}
        (record_id,) = Origin(entry.topic, entry.generation).ids(pa.RecordBatch.from_pydict(columns)).to_pylist()
        return list(_rows(found, (AIRBYTE_ID,), record_id))
    return list(_rows(found, _path(encoding, "offset") or (), str(offset)))


def _has_ids(encoding: Encoding) -> bool:
    """Airbyte's id of a record is made of its place in Kafka."""
    return encoding.shape.meta == "Airbyte" and not encoding.shape.envelope and _has_fields(encoding)


def _has_fields(encoding: Encoding) -> bool:
    return encoding.format.rows not in {RowKind.TEXT_LINES, RowKind.VALUES}


def _path(encoding: Encoding, field: Field) -> tuple[str, ...] | None:
    shape = encoding.shape
    if not _has_fields(encoding):
        return None
    if not shape.envelope:
        return META.get(shape.meta, {}).get(field)
    path = ENVELOPE[field]
    nested_in_text = len(path) > 1 and encoding.format.rows is RowKind.TEXT_COLUMNS
    return path if path[0] in shape.envelope and not nested_in_text else None


def _rows(found: pa.Table, path: tuple[str, ...], text: str) -> Iterator[int]:
    if found.schema.names == ["line"]:
        yield from _lines(found.column("line"), path, text)
        return
    column = found.column(path[0]).combine_chunks()
    for name in path[1:]:
        column = column.field(name)
    yield from pc.indices_nonzero(pc.fill_null(pc.equal(column.cast(pa.string()), text), False)).to_pylist()


def _lines(lines: pa.ChunkedArray, path: tuple[str, ...], text: str) -> Iterator[int]:
    plain = text.isascii() and text.isalnum()
    # A text of letters and digits stands in the line as it is, so most lines need not be parsed.
    likely = pc.match_substring(lines, text.encode()) if plain else pa.chunked_array([[True] * len(lines)])
    for row in pc.indices_nonzero(likely).to_pylist():
        value: Any = json.loads(lines[row].as_py())
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if value is not None and str(value) == text:
            yield row
