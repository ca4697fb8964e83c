"""The records of a crash test: JSON, or Avro with a schema registry. Written and read without any of the product's
code."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import fastavro

from tools.parts.registry import SchemaRegistry

PREFIX = 5
"""Bytes in front of an Avro record: 0, and the id of its schema in four bytes."""


class JsonRecords:
    source: dict[str, Any] = {}
    """What the manifest says about them."""

    def write(self, number: int) -> bytes:
        return json.dumps({"id": number, "text": "x" * 50}).encode()

    def read(self, value: bytes) -> str:
        """The record as JSON."""
        return value.decode()


_FIRST = [{"name": "id", "type": "long"}, {"name": "text", "type": "string"}]
_SECOND = [*_FIRST, {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None}]
SCHEMAS = [{"type": "record", "name": "crash.Order", "fields": fields} for fields in (_FIRST, _SECOND)]


@dataclass
class AvroRecords:
    """Two versions of a schema, by default in turns: the columns of an object are those of both."""

    registry: SchemaRegistry
    topic: str
    versions: Sequence[int] = (0, 1)

    def __post_init__(self) -> None:
        self.ids = self.register()
        self.source = {"value": {"format": "Avro", "schemaRegistry": {"url": self.registry.url}}}

    def register(self) -> list[int]:
        """By topic and record: a driver cannot guess this subject, and requests a schema when a record has its id."""
        subject = f"{self.topic}-crash.Order"
        return [self.registry.register(subject, json.dumps(schema)) for schema in SCHEMAS]

    def write(self, number: int) -> bytes:
        version = self.versions[number % len(self.versions)]
        buffer = io.BytesIO()
        row = {"id": number, "text": "x" * 50, "day": number}
        fastavro.schemaless_writer(buffer, SCHEMAS[version], row)
        return b"\0" + self.ids[version].to_bytes(PREFIX - 1, "big") + buffer.getvalue()

    def read(self, value: bytes) -> str:
        """The record as JSON."""
        schema = SCHEMAS[self.ids.index(int.from_bytes(value[1:PREFIX], "big"))]
        return json.dumps(fastavro.schemaless_reader(io.BytesIO(value[PREFIX:]), schema, None), default=str)
