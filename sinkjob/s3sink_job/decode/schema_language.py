"""What a language of schemas offers: Avro, Protobuf, JSON Schema. A new one is a line in `schema_languages.py`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import pyarrow as pa

from s3sink_job.columns.sources import Sources
from s3sink_job.columns.types import Column
from s3sink_job.decode.bad_records import Faults
from s3sink_job.decode.record_bytes import Ints, Records
from s3sink_job.decode.writer_schemas import WriterSchema

Message: TypeAlias = bytes | str | int
"""Which message of its schema a record is: the bytes that follow the id of the schema, or the full name, or its place
among the full names of all messages in their order (AWS Glue). Empty if nothing is said."""


class SchemaDecoder(Protocol):
    """Decodes the records of one schema. It is hashed by identity: two of them are never the same."""

    type: pa.DataType
    """Of the values. The fields of a struct are the columns; any other type is one column."""
    sources: Sources
    """What the schema says about the type, by the path within it."""
    unknown_fields: int
    """Values of the last `decode` that were left out, because the schema has no field for them."""

    def decode(self, column: Column, skip: int = 0, records: Records | None = None) -> tuple[Column, Faults]:
        """The values of a column of `binary` without nulls, each without its first `skip` bytes.

        Rows at fault are null. `records` are the bytes of the column, if the caller has them already.
        """
        ...


class SchemaFamily(Protocol):
    """Schemas whose records are decoded together."""

    def number(self, decoder: Any) -> int:
        """Of one of the schemas."""
        ...

    def decode(
        self, column: Column, skip: int, versions: Ints, records: Records | None = None
    ) -> tuple[Column, Faults]:
        """As `SchemaDecoder.decode`, with the number of the schema of each record."""
        ...


class DecoderGroup(NamedTuple):
    family: SchemaFamily | None
    """None for a decoder alone."""
    places: list[int]


class SchemaFamilies(Protocol):
    """Finds schemas that can be decoded together. It remembers those of one slice."""

    def together(self, decoders: Sequence[Any]) -> list[DecoderGroup]:
        """The places of the decoders, in groups."""
        ...


class EachAlone:
    """For languages without families."""

    def together(self, decoders: Sequence[Any]) -> list[DecoderGroup]:
        return [DecoderGroup(None, [place]) for place in range(len(decoders))]


class SchemaLanguage(ABC):
    kind: str
    """As registries name it: `AVRO`, `PROTOBUF` or `JSON`."""
    has_messages = False
    """Whether a schema may have several messages, and each record says which one it is."""
    frame_shows = False
    """Whether no payload begins with the zero byte of a frame."""

    @abstractmethod
    def decoder_of(self, schema: WriterSchema, message: Message = b"") -> SchemaDecoder:
        """Kept by the process. Raises `InvalidSchema`."""

    def message_lengths(self, records: Records, at: Ints) -> Ints:
        """How many bytes of each record say which message of its schema it is; `at` is where they begin.

        -1 for a record that is cut within them. Only for languages with messages.
        """
        raise TypeError(f"schemas of {self.kind} have no messages")

    def families(self) -> SchemaFamilies:
        """For one slice."""
        return EachAlone()
