"""Schemas that are named in headers, for all records of a batch: by Confluent's serializers, and by Apicurio's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from uuid import UUID

import numpy as np
import pyarrow as pa

from s3sink_job.columns.types import Column
from s3sink_job.decode.record_bytes import Ints, Mask
from s3sink_job.decode.writer_schemas import SchemaId, SchemaIdKind, numbered
from s3sink_job.kafka.schema_ids import CONTENT_ID, GLOBAL_ID

ID_LENGTH, GUID_LENGTH, NUMBER_LENGTH = 4, 16, 8
_BY_APICURIO: dict[bytes, SchemaIdKind] = {GLOBAL_ID: "Apicurio global id", CONTENT_ID: "Apicurio content id"}


class NamedSchema(NamedTuple):
    schema: SchemaId
    message: bytes | None
    """As the header has it. None if it is in front of the payload, where Apicurio puts it."""


@dataclass(frozen=True)
class HeaderSchemas:
    """Each value has a code: the place of its header in `headers` and `distinct`. The last one is for no header."""

    headers: list[bytes]
    codes: Ints

    @cached_property
    def distinct(self) -> list[NamedSchema | None]:
        """None for headers that name no schema, and for no header."""
        return [*(_named_schema(content) for content in self.headers), None]

    @cached_property
    def in_header(self) -> Mask:
        found: Mask = self.codes < len(self.headers)
        return found

    @cached_property
    def invalid(self) -> Mask:
        return self.in_header & self._where([name is None for name in self.distinct])

    @cached_property
    def has_message(self) -> Mask:
        """Whether the header says which message of its schema a value is, if the language has any."""
        return self._where([name is not None and name.message is not None for name in self.distinct])

    def except_for(self, places: Mask) -> HeaderSchemas:
        """With no header for these values."""
        codes: Ints = np.where(places, len(self.headers), self.codes)
        return HeaderSchemas(self.headers, codes)

    def why_invalid(self, place: int, part: str) -> str:
        content = self.headers[self.codes[place]]
        if content[:1] in _BY_APICURIO:
            return f"{part} has a header of Apicurio with {len(content) - 1} bytes, and an id takes {NUMBER_LENGTH}"
        shown = content[:20].hex()
        return f"{part} has a header __{part}_schema_id of {len(content)} bytes that is no schema id: 0x{shown}"

    def _where(self, chosen: list[bool]) -> Mask:
        found: Mask = np.array(chosen, np.bool_)[self.codes]
        return found


def header_schemas(headers: Column | None, rows: Ints, *, apicurio: bool) -> HeaderSchemas | None:
    """Of some rows of a batch. None if none of them has a header.

    Headers of Apicurio mean nothing to other registries: programs that copy records may keep them by chance.
    """
    if headers is None or headers.null_count == len(headers):
        return None
    encoded = headers.cast(pa.binary()).take(pa.array(rows)).dictionary_encode()
    found: list[bytes] = encoded.dictionary.to_pylist()
    used = [content for content in found if apicurio or content[:1] not in _BY_APICURIO]
    if not used:
        return None
    places = np.array([used.index(content) if content in used else len(used) for content in [*found, None]])
    codes: Ints = places[encoded.indices.fill_null(len(found)).to_numpy()]
    return HeaderSchemas(used, codes)


def _named_schema(content: bytes) -> NamedSchema | None:
    kind, rest = content[:1], content[1:]
    if kind == b"\x00" and len(rest) >= ID_LENGTH:
        return NamedSchema(numbered(int.from_bytes(rest[:ID_LENGTH], "big")), rest[ID_LENGTH:])
    if kind == b"\x01" and len(rest) >= GUID_LENGTH:
        return NamedSchema(SchemaId("schema GUID", str(UUID(bytes=rest[:GUID_LENGTH]))), rest[GUID_LENGTH:])
    if kind in _BY_APICURIO and len(rest) == NUMBER_LENGTH:
        return NamedSchema(SchemaId(_BY_APICURIO[kind], str(int.from_bytes(rest, "big", signed=True))), None)
    return None
