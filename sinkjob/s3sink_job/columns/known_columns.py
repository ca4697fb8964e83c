"""The columns of a topic that are known: their types, and what the schemas of its records say about them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pyarrow as pa

from s3sink_job.columns.sources import Sources, sources_from_doc, sources_to_doc
from s3sink_job.columns.types import EMPTY, from_doc, to_doc

_SOURCES = "sources"


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
