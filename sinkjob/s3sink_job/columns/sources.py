"""What the schemas of typed records say about columns, beyond their types: names, docs, defaults, what is required.

It is kept for each struct among the columns, by the name of the record there. One place may have records of several
names: a topic with several types of records has them at its top.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from s3sink_job.columns.types import Path

MOST_RECORDS = 100
"""Names of records at one place. Others have their columns, and nothing here."""
LONGEST_TEXT = 2_000
"""Characters of a doc or a default. The state keeps them, and every task gets them."""


@dataclass(frozen=True)
class SourceField:
    required: bool
    """Whether it has neither null nor a default, in all schemas so far."""
    nullable: bool = False
    """Whether it may be null, in any schema so far."""
    doc: str = ""
    aliases: tuple[str, ...] = ()
    default: str = ""
    """As JSON; empty if it has none."""


@dataclass(frozen=True)
class SourceRecord:
    fields: Mapping[str, SourceField]
    doc: str = ""
    aliases: tuple[str, ...] = ()


Sources: TypeAlias = Mapping[Path, Mapping[str, SourceRecord]]
"""By the path to a struct, and by the name of the record; empty for a record without a name."""
NO_SOURCES: Sources = {}


def merged_sources(known: Sources, new: Sources) -> Sources:
    """Both together. What is known stays, so that producers with two versions do not change it for ever."""
    if known == new or not new:
        return known
    merged = dict(known)
    for path, records in new.items():
        merged[path] = _merged_records(known.get(path, {}), records)
    return merged


def _merged_records(known: Mapping[str, SourceRecord], new: Mapping[str, SourceRecord]) -> Mapping[str, SourceRecord]:
    merged = dict(known)
    for name, record in new.items():
        if name in known:
            merged[name] = _merged_record(known[name], record)
        elif len(merged) < MOST_RECORDS:
            merged[name] = record
    return merged


def _merged_record(known: SourceRecord, new: SourceRecord) -> SourceRecord:
    fields = {}
    for name in [*known.fields, *(name for name in new.fields if name not in known.fields)]:
        found = [record.fields[name] for record in (known, new) if name in record.fields]
        # A field that some schema lacks is not required.
        required = len(found) == 2 and all(one.required for one in found)
        fields[name] = replace(found[0], required=required, nullable=any(one.nullable for one in found))
    return replace(known, fields=fields)


def sources_to_doc(sources: Sources) -> list[Any]:
    return [
        {
            "at": list(path),
            "name": name,
            **_given(doc=record.doc, aliases=list(record.aliases)),
            "fields": _fields(record),
        }
        for path, records in sources.items()
        for name, record in records.items()
    ]


def _fields(record: SourceRecord) -> dict[str, Any]:
    return {
        name: {
            **_given(required=field.required, nullable=field.nullable),
            **_given(doc=field.doc, aliases=list(field.aliases), default=field.default),
        }
        for name, field in record.fields.items()
    }


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def sources_from_doc(docs: list[Any]) -> Sources:
    sources: dict[Path, dict[str, SourceRecord]] = {}
    for doc in docs:
        fields = {
            name: SourceField(**{"required": False, **given, "aliases": tuple(given.get("aliases", ()))})
            for name, given in doc["fields"].items()
        }
        record = SourceRecord(fields, doc.get("doc", ""), tuple(doc.get("aliases", ())))
        sources.setdefault(tuple(doc["at"]), {})[doc["name"]] = record
    return sources


def short(text: Any) -> str:
    """A doc, if it is a text that is not too long."""
    return text if isinstance(text, str) and len(text) <= LONGEST_TEXT else ""


def default_text(value: Any) -> str:
    """A default as JSON, if there is JSON for it that is not too long."""
    try:
        return short(json.dumps(value, ensure_ascii=False, allow_nan=False))
    except ValueError:
        return ""
