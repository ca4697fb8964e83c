"""What an object may tell of the schemas that its records were written with, where its format has a place for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from s3sink_job.columns.sources import NO_SOURCES, Sources
from s3sink_job.decode.writer_schemas import SourceSchema, size_of

MOST_TEXT = 2**20
"""Characters of all schemas in one object. Beyond that only their ids are told."""


@dataclass
class SourceNotes:
    """`schemas` is complete once all rows are written."""

    sources: Callable[[], Sources] = lambda: NO_SOURCES
    """As known by now, by path among the rows."""
    schemas: dict[int, SourceSchema] = field(default_factory=dict)
    """By a number for each, in the order in which they came first."""

    def schemas_text(self) -> str:
        """The schemas as JSON; empty if there are none."""
        left, found = MOST_TEXT, []
        for source in dict.fromkeys(self.schemas.values()):
            size = size_of(source.schema)
            found.append(_document(source, whole=size <= left))
            left -= size if size <= left else 0
        return json.dumps(found, ensure_ascii=False) if found else ""


NO_NOTES = SourceNotes()


def _document(source: SourceSchema, *, whole: bool) -> dict[str, Any]:
    doc: dict[str, Any] = {}
    if source.id is not None:
        doc["id"] = int(source.id.value) if source.id.value.isdigit() else source.id.value
        if source.id.kind != "schema id":
            doc["idType"] = source.id.kind
    doc["type"] = source.schema.kind
    if whole and source.schema.text:
        doc["schema"] = source.schema.text
        if source.schema.references:
            doc["references"] = [{"name": one.name, "schema": one.text} for one in source.schema.references]
    return doc
