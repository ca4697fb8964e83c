"""The schemas that typed records were written with: one inline schema, or those of a registry by id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol


class Reference(NamedTuple):
    """A schema that another one refers to."""

    name: str
    """As the other one spells it: an Avro name, the path of an import in Protobuf, a `$ref` in JSON Schema."""
    text: str


@dataclass(frozen=True)
class WriterSchema:
    """A schema as a registry stores it."""

    kind: str
    """`AVRO`, `PROTOBUF` or `JSON`."""
    text: str
    references: tuple[Reference, ...] = ()
    """The schemas that this one refers to, each after those that it refers to itself."""


def size_of(schema: WriterSchema) -> int:
    """Its characters, with those of its references."""
    return len(schema.text) + sum(len(reference.text) for reference in schema.references)


class InvalidSchema(ValueError):
    """A schema that cannot be used. The message follows the name of the schema and `is`."""


SchemaIdKind = Literal["schema id", "schema GUID", "Apicurio global id", "Apicurio content id", "Glue schema version"]
"""As messages name it."""


class SchemaId(NamedTuple):
    """How a record names its schema."""

    kind: SchemaIdKind
    value: str

    def __str__(self) -> str:
        return f"{self.kind} {self.value}"


class SourceSchema(NamedTuple):
    """A schema that records were written with, for people and readers of the objects."""

    id: SchemaId | None
    """None for a schema that is not from a registry."""
    schema: WriterSchema


def numbered(number: int) -> SchemaId:
    return SchemaId("schema id", str(number))


@dataclass(frozen=True)
class RegisteredSchema:
    """A version of a schema, as a registry lists it."""

    name: str
    """For people."""
    ids: tuple[SchemaId, ...]
    """All that records may name it by."""
    schema: WriterSchema


class SchemaLookup(Protocol):
    @property
    def inline(self) -> WriterSchema | None:
        """The schema of all records, which then name none."""
        ...

    def find(self, schema: SchemaId) -> WriterSchema | None:
        """None if the registry does not have it. Raises an S3SinkError if it cannot be asked."""
        ...


@dataclass(frozen=True)
class InlineSchema:
    """A schema from the spec."""

    inline: WriterSchema

    def find(self, schema: SchemaId) -> WriterSchema | None:
        return None
