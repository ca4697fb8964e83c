"""The columns of a topic that are known: their types, and what the schemas of its records say about them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pyarrow as pa

from s3sink_job.columns.sources import Sources, sources_from_doc, sources_to_doc
from s3sink_job.columns.types import EMPTY, from_doc, to_doc

_SOURCES = "sources"
KEYS = "\0key"
"""The column that stands for those of keys, among those of values. Fields of values are never kept under this name."""


@dataclass(frozen=True)
class KnownColumns:
    record: pa.StructType
    sources: Sources = field(default_factory=dict)
    """Only for records that bring a schema along."""


NO_COLUMNS = KnownColumns(EMPTY)


def known_to_text(known: KnownColumns) -> str:
    doc = to_doc(known.record)
    if known.sources:
        doc[_SOURCES] = sources_to_doc(known.sources)
    return json.dumps(doc, separators=(",", ":"), ensure_ascii=False)


def known_from_text(text: str) -> KnownColumns:
    """The columns of a stored text; of no text none."""
    if not text:
        return NO_COLUMNS
    doc = json.loads(text)
    sources = doc.pop(_SOURCES, [])
    return KnownColumns(from_doc(doc), sources_from_doc(sources))


def join_known(values: KnownColumns | None, keys: KnownColumns | None) -> KnownColumns:
    """Both as one, as they are stored."""
    values, keys = values or NO_COLUMNS, keys or NO_COLUMNS
    own = [field for field in values.record if field.name != KEYS]
    of_keys = {(KEYS, *path): records for path, records in keys.sources.items()}
    return KnownColumns(pa.struct([*own, pa.field(KEYS, keys.record)]), {**values.sources, **of_keys})


def split_known(known: KnownColumns) -> tuple[KnownColumns, KnownColumns | None]:
    """The columns of values, and those of keys; None if those of keys are not kept."""
    at = known.record.get_field_index(KEYS)
    if at < 0:
        return known, None
    values = {path: records for path, records in known.sources.items() if path[:1] != (KEYS,)}
    keys = {path[1:]: records for path, records in known.sources.items() if path[:1] == (KEYS,)}
    of_keys = known.record.field(at).type
    record = pa.struct([field for field in known.record if field.name != KEYS])
    return KnownColumns(record, values), KnownColumns(of_keys if pa.types.is_struct(of_keys) else EMPTY, keys)
