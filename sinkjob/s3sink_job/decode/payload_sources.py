"""What the schema of JSON payloads says about their columns: names of structs, defaults, what is required."""

from __future__ import annotations

from s3sink_job.columns.sources import SourceField, SourceRecord, Sources, default_text
from s3sink_job.columns.types import ITEM, Path
from s3sink_job.decode.payload_schema import PLAIN, PayloadSchema


def sources_of(schema: PayloadSchema, path: Path = ()) -> Sources:
    """By path. `path` leads to the value itself."""
    found: dict[Path, dict[str, SourceRecord]] = {}
    _add(found, schema, path)
    return found


def _add(found: dict[Path, dict[str, SourceRecord]], schema: PayloadSchema, path: Path) -> None:
    if schema.items is not None:
        _add(found, schema.items, (*path, ITEM))
    if schema.type == "struct":
        found[path] = {schema.name: SourceRecord({name: _field(inner) for name, inner in schema.fields})}
        for name, inner in schema.fields:
            _add(found, inner, (*path, name))


def _field(schema: PayloadSchema) -> SourceField:
    plain = schema.default is not None and schema.kind == PLAIN.get(schema.type)
    return SourceField(
        required=not schema.optional and schema.default is None,
        nullable=schema.optional,
        default=default_text(schema.default) if plain else "",
    )
