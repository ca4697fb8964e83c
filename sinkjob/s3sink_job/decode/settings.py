"""How keys and values are decoded, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import pyarrow as pa

from s3sink_api.formats import INPUT_FORMATS, InputFormat
from s3sink_api.spec import SchemaEvolution, SchemaRegistry, Spec, columns_of
from s3sink_api.spec.source import Key, Value
from s3sink_job.columns.types import from_doc


@dataclass(frozen=True)
class JsonSchemaOptions:
    """How records are read by a JSON Schema."""

    validate: bool = False
    """Whether records have to be valid by all of the schema, and not only fit the types of columns."""
    times_as_text: bool = False
    """Whether dates and times are columns of text."""


NO_OPTIONS = JsonSchemaOptions()
RegistryKind: TypeAlias = Literal["Confluent", "Apicurio", "Glue"]
CONFLUENT_PATH = "/apis/ccompat/"
"""Where Apicurio has the REST interface of Confluent's registry. Other registries have no such path."""


@dataclass(frozen=True)
class SchemaSource:
    """Where typed keys or values have their schemas from: one of the two, or neither."""

    inline: str = ""
    registry: SchemaRegistry | None = None
    options: JsonSchemaOptions = NO_OPTIONS

    @property
    def registry_kind(self) -> RegistryKind:
        if self.registry is None:
            return "Confluent"
        return "Apicurio" if CONFLUENT_PATH in (self.registry.url or "") else self.registry.type


NO_SCHEMAS = SchemaSource()
DEFAULT_EVOLUTION = SchemaEvolution()


class PartDecoding(NamedTuple):
    """How the keys, or the values, are decoded."""

    part: str
    format: InputFormat
    schemas: SchemaSource

    @property
    def in_headers(self) -> bool:
        """Whether headers may name the schemas."""
        registry = self.schemas.registry
        return registry is not None and registry.type == "Confluent" and not self.schemas.inline

    @property
    def messages_in_headers(self) -> bool:
        """Whether headers may name messages: only Apicurio's serializers write them."""
        has_messages = INPUT_FORMATS[self.format].messages
        return has_messages and self.in_headers and self.schemas.registry_kind == "Apicurio"

    @property
    def frame_shows(self) -> bool:
        """Whether the first byte shows that a frame names the schema: JSON never begins with a zero.

        The same as `SchemaLanguage.frame_shows`.
        """
        return INPUT_FORMATS[self.format].json_schema


@dataclass(frozen=True)
class Decoding:
    key: InputFormat
    value: InputFormat
    """Names of input formats: see `input_formats.py`."""
    supplied: pa.StructType | None = None
    """The columns that the spec asks for; without any they are inferred, or those of the records' schemas."""
    key_schemas: SchemaSource = NO_SCHEMAS
    value_schemas: SchemaSource = NO_SCHEMAS
    evolution: SchemaEvolution = DEFAULT_EVOLUTION
    """Which changes of the schemas of values are taken. Only for typed values."""

    @property
    def parts(self) -> tuple[PartDecoding, PartDecoding]:
        return (
            PartDecoding("key", self.key, self.key_schemas),
            PartDecoding("value", self.value, self.value_schemas),
        )

    @property
    def typed(self) -> bool:
        """Whether values bring the types of their fields along."""
        return INPUT_FORMATS[self.value].typed


def decoding_of(spec: Spec) -> Decoding:
    key, value = spec.source.key, spec.source.value
    traits = INPUT_FORMATS[value.format]
    by_json_schema = traits.inline_schema == "JSON Schema" and not traits.typed
    supplied = from_doc(columns_of(value.schema)) if by_json_schema and value.schema else None
    evolution = spec.format.schema_evolution if traits.typed else DEFAULT_EVOLUTION
    return Decoding(key.format, value.format, supplied, _schemas_of(key), _schemas_of(value), evolution)


def _schemas_of(part: Key | Value) -> SchemaSource:
    if not INPUT_FORMATS[part.format].registry:
        return NO_SCHEMAS
    options = JsonSchemaOptions(part.validate, times_as_text=part.times == "AsWritten")
    return SchemaSource(part.schema, part.schema_registry, options)
