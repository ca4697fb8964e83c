"""Schemas that are named in headers, for all records of a batch: by Confluent's serializers, and by Apicurio's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.types import Column
from s3sink_job.decode.distinct_bytes import first_bytes, paired
from s3sink_job.decode.record_bytes import Ints, Mask, Records
from s3sink_job.decode.schema_language import Message
from s3sink_job.decode.writer_schemas import SchemaId, SchemaIdKind, numbered
from s3sink_job.kafka.schema_ids import CONTENT_ID, GLOBAL_ID

ID_LENGTH, GUID_LENGTH, NUMBER_LENGTH = 4, 16, 8
NAME_TAG = b"\x0a"
"""In front of the name, in the message that Apicurio's serializers put in front of a payload."""
_BY_APICURIO: dict[bytes, SchemaIdKind] = {GLOBAL_ID: "Apicurio global id", CONTENT_ID: "Apicurio content id"}


class HeaderColumns(NamedTuple):
    """Of one part of a batch: see `schema_ids.py`. None if Spark did not read a column."""

    ids: Column | None
    messages: Column | None = None
    apicurio: bool = False
    """Whether the registry is one of Apicurio. Apicurio's headers mean nothing to other registries: programs that copy
    records may keep them by chance."""


class Header(NamedTuple):
    id: bytes
    message: bytes | None = None
    """The name that Apicurio's serializers of Protobuf write into a header of its own."""


class NamedSchema(NamedTuple):
    schema: SchemaId
    message: Message | None
    """Indexes as Confluent's header has them, or a name. None if it is in front of the payload only."""

    @property
    def repeated(self) -> bytes:
        """What may be in front of a payload although a header has it: the name of its message.

        Apicurio's serializers of version 3 write it, those of version 2 do not.
        """
        if not isinstance(self.message, str):
            return b""
        return length_delimited(NAME_TAG + length_delimited(self.message.encode()))


@dataclass(frozen=True)
class HeaderSchemas:
    """Each value has a code: the place of its header in `headers` and `distinct`. The last one is for no header."""

    headers: list[Header]
    codes: Ints

    @cached_property
    def distinct(self) -> list[NamedSchema | None]:
        """None for headers that name no schema, and for no header."""
        return [*(_named_schema(header) for header in self.headers), None]

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
        return self._where([name is not None and isinstance(name.message, bytes) for name in self.distinct])

    @cached_property
    def has_name(self) -> Mask:
        """Whether a header of Apicurio has the name of the message."""
        return self._where([name is not None and isinstance(name.message, str) for name in self.distinct])

    def repeated_lengths(self, records: Records) -> Ints:
        """How many bytes in front of each value repeat the name of its message."""
        repeated = [b"" if name is None else name.repeated for name in self.distinct]
        lengths: Ints = np.array([len(one) for one in repeated])[self.codes]
        if not lengths.any():
            return lengths
        lengths = np.minimum(lengths, np.diff(records.bounds))
        begins = first_bytes(records, records.bounds[:-1], lengths)
        same = pc.equal(begins, pa.array(repeated, pa.binary()).take(pa.array(self.codes)))
        return np.where(same.to_numpy(zero_copy_only=False), lengths, 0)

    def except_for(self, places: Mask) -> HeaderSchemas:
        """With no header for these values."""
        codes: Ints = np.where(places, len(self.headers), self.codes)
        return HeaderSchemas(self.headers, codes)

    def why_invalid(self, place: int, part: str) -> str:
        content = self.headers[self.codes[place]].id
        if content[:1] in _BY_APICURIO:
            return f"{part} has a header of Apicurio with {len(content) - 1} bytes, and an id takes {NUMBER_LENGTH}"
        shown = content[:20].hex()
        return f"{part} has a header __{part}_schema_id of {len(content)} bytes that is no schema id: 0x{shown}"

    def _where(self, chosen: list[bool]) -> Mask:
        found: Mask = np.array(chosen, np.bool_)[self.codes]
        return found


def header_schemas(columns: HeaderColumns, rows: Ints) -> HeaderSchemas | None:
    """Of some rows of a batch. None if no header names the schema of any of them."""
    if columns.ids is None or columns.ids.null_count == len(columns.ids):
        return None
    ids, codes = _distinct(columns.ids, rows)
    names: list[bytes | None] = [None]
    pairs = [(place, 0) for place in range(len(ids))]
    if columns.messages is not None and columns.messages.null_count < len(columns.messages):
        names, name_codes = _distinct(columns.messages, rows)
        pairs, codes = paired(codes, name_codes, len(names))
    used: list[Header] = []
    places = np.full(len(pairs), -1)
    for place, (number, name) in enumerate(pairs):
        content = ids[number]
        if content is not None and (columns.apicurio or content[:1] not in _BY_APICURIO):
            places[place] = len(used)
            used.append(Header(content, names[name]))
    places[places < 0] = len(used)
    return HeaderSchemas(used, places[codes]) if used else None


def _distinct(column: Column, rows: Ints) -> tuple[list[bytes | None], Ints]:
    """The values of these rows, the last one for null, and the place of each row's value."""
    encoded = column.cast(pa.binary()).take(pa.array(rows)).dictionary_encode()
    found = encoded.dictionary.to_pylist()
    return [*found, None], encoded.indices.fill_null(len(found)).to_numpy().astype(np.int64)


def _named_schema(header: Header) -> NamedSchema | None:
    kind, rest = header.id[:1], header.id[1:]
    if kind == b"\x00" and len(rest) >= ID_LENGTH:
        return NamedSchema(numbered(int.from_bytes(rest[:ID_LENGTH], "big")), rest[ID_LENGTH:])
    if kind == b"\x01" and len(rest) >= GUID_LENGTH:
        return NamedSchema(SchemaId("schema GUID", str(UUID(bytes=rest[:GUID_LENGTH]))), rest[GUID_LENGTH:])
    if kind in _BY_APICURIO and len(rest) == NUMBER_LENGTH:
        name = header.message.decode(errors="replace") if header.message else None
        return NamedSchema(SchemaId(_BY_APICURIO[kind], str(int.from_bytes(rest, "big", signed=True))), name)
    return None


def length_delimited(content: bytes) -> bytes:
    """As Protobuf writes bytes: their number in front, seven bits at a time."""
    length, front = len(content), b""
    while length >= 0x80:
        length, front = length >> 7, front + bytes([length & 0x7F | 0x80])
    return front + bytes([length]) + content
