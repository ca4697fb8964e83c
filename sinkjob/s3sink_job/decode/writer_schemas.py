"""The schemas that typed records were written with: one inline schema, or those of a registry by id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class WriterSchema:
    """A schema as a registry stores it."""

    kind: str
    """`AVRO`, `PROTOBUF` or `JSON`."""
    text: str
    references: tuple[str, ...] = ()
    """Texts of schemas that this one refers to, each after those that it refers to itself."""


def size_of(schema: WriterSchema) -> int:
    """Its characters, with those of its references."""
    return len(schema.text) + sum(map(len, schema.references))


class SchemaLookup(Protocol):
    @property
    def inline(self) -> WriterSchema | None:
        """The schema of all records, which then have no id in front."""
        ...

    def by_id(self, number: int) -> WriterSchema | None:
        """None if the registry does not know the id. Raises an S3SinkError if it cannot be asked."""
        ...


@dataclass(frozen=True)
class InlineSchema:
    """A schema from the spec."""

    inline: WriterSchema

    def by_id(self, number: int) -> WriterSchema | None:
        return None
