"""How keys and values are decoded, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from s3sink_api.formats import INPUT_FORMATS, InputFormat
from s3sink_api.spec import SchemaRegistry, Spec, columns_of
from s3sink_api.spec.source import Key, Value
from s3sink_job.columns.types import from_doc


@dataclass(frozen=True)
class SchemaSource:
    """Where typed keys or values have their schemas from: one of the two, or neither."""

    inline: str = ""
    registry: SchemaRegistry | None = None


NO_SCHEMAS = SchemaSource()


@dataclass(frozen=True)
class Decoding:
    key: InputFormat
    value: InputFormat
    """Names of input formats: see `input_formats.py`."""
    supplied: pa.StructType | None = None
    """The columns that the spec asks for; without any they are inferred, or those of the records' schemas."""
    key_schemas: SchemaSource = NO_SCHEMAS
    value_schemas: SchemaSource = NO_SCHEMAS

    @property
    def typed(self) -> bool:
        """Whether values bring the types of their fields along."""
        return INPUT_FORMATS[self.value].typed


def decoding_of(spec: Spec) -> Decoding:
    key, value = spec.source.key, spec.source.value
    by_json_schema = INPUT_FORMATS[value.format].inline_schema == "JSON Schema"
    supplied = from_doc(columns_of(value.schema)) if by_json_schema and value.schema else None
    return Decoding(key.format, value.format, supplied, _schemas_of(key), _schemas_of(value))


def _schemas_of(part: Key | Value) -> SchemaSource:
    typed = INPUT_FORMATS[part.format].registry
    return SchemaSource(part.schema, part.schema_registry) if typed else NO_SCHEMAS
