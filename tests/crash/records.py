"""The records of a crash test: JSON, or records with a schema registry. Written and read without any of the product's
code."""

from __future__ import annotations

import io
import json
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import fastavro
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from tools.parts.registry import SchemaRegistry

PREFIX = 5
"""Bytes in front of a record with a schema: 0, and the id of the schema in four bytes."""
Headers = list[tuple[str, bytes | None]]


class JsonRecords:
    source: dict[str, Any] = {}
    """What the manifest says about them."""

    def write(self, number: int) -> tuple[bytes, Headers]:
        return json.dumps({"id": number, "text": "x" * 50}).encode(), []

    def read(self, value: bytes) -> str:
        """The record as JSON."""
        return value.decode()


class TypedRecords(ABC):
    """Two versions of a schema, by default in turns: the columns of an object are those of both."""

    format: ClassVar[str]
    kind: ClassVar[str]
    """As registries name the language."""
    schemas: ClassVar[list[str]]
    more_headers: ClassVar[Headers] = []
    """Of Apicurio's serializers, beside the id."""
    FRONT: ClassVar[bytes] = b""
    """What says in front of a record which message it is."""

    def __init__(self, registry: SchemaRegistry, topic: str, *, in_headers: bool = False) -> None:
        """`in_headers`: whether every other record of each version has the id of its schema in a header."""
        self.registry, self.topic, self.in_headers = registry, topic, in_headers
        self.versions = [0, 1]
        self.ids = self.register()
        self.source = {"value": {"format": self.format, "schemaRegistry": {"url": registry.url}}}

    def register(self) -> list[int]:
        """By topic and record: a driver cannot guess this subject, and requests a schema when a record has its id."""
        subject = f"{self.topic}-crash.Order"
        return [self.registry.register(subject, schema, kind=self.kind) for schema in self.schemas]

    def write(self, number: int) -> tuple[bytes, Headers]:
        """With an id in a header nothing is in front of the record."""
        version = self.versions[number % len(self.versions)]
        row = {"id": number, "text": "x" * 50, **({"day": number} if version else {})}
        written, schema = self.encode(version, row), self.ids[version]
        if self.in_headers and number // len(self.versions) % 2:
            return written, [("apicurio.value.contentId", schema.to_bytes(8, "big")), *self.more_headers]
        return b"\0" + schema.to_bytes(PREFIX - 1, "big") + self.FRONT + written, []

    def read(self, value: bytes) -> str:
        """The record as JSON. Without an id in front only the fields that all versions have."""
        front = int.from_bytes(value[1:PREFIX], "big")
        if value[:1] != b"\0" or front not in self.ids:
            return json.dumps(self.decode(0, value), default=str)
        record = value[PREFIX:].removeprefix(self.FRONT)
        return json.dumps(self.decode(self.ids.index(front), record), default=str)

    @abstractmethod
    def encode(self, version: int, row: dict[str, Any]) -> bytes: ...

    @abstractmethod
    def decode(self, version: int, data: bytes) -> Any: ...


_LONG = [{"name": "id", "type": "long"}, {"name": "text", "type": "string"}]
_DAY = {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None}
_AVRO = [{"type": "record", "name": "crash.Order", "fields": fields} for fields in (_LONG, [*_LONG, _DAY])]


class AvroRecords(TypedRecords):
    format, kind = "Avro", "AVRO"
    schemas = [json.dumps(schema) for schema in _AVRO]

    def encode(self, version: int, row: dict[str, Any]) -> bytes:
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, _AVRO[version], row)
        return buffer.getvalue()

    def decode(self, version: int, data: bytes) -> Any:
        return fastavro.schemaless_reader(io.BytesIO(data), _AVRO[version], None)


_PROTO = 'syntax = "proto3"; package crash; message Order {{ int64 id = 1; string text = 2; {} }}'
_KINDS = {"id": "TYPE_INT64", "text": "TYPE_STRING", "day": "TYPE_INT32"}


def _order() -> Any:
    """The message of the newer version, which reads both."""
    file = FileDescriptorProto(name="crash.proto", package="crash", syntax="proto3")
    message = file.message_type.add(name="Order")
    for number, (name, kind) in enumerate(_KINDS.items(), start=1):
        message.field.add(
            name=name,
            number=number,
            type=FieldDescriptorProto.Type.Value(kind),
            label=FieldDescriptorProto.LABEL_OPTIONAL,
        )
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("crash.Order"))


class ProtobufRecords(TypedRecords):
    format, kind = "Protobuf", "PROTOBUF"
    schemas = [_PROTO.format(""), _PROTO.format("int32 day = 3;")]
    FRONT = b"\0"
    more_headers = [("apicurio.protobuf.type", b"Order")]

    def encode(self, version: int, row: dict[str, Any]) -> bytes:
        return bytes(_order()(**row).SerializeToString())

    def decode(self, version: int, data: bytes) -> Any:
        read = _order().FromString(data)
        return {name: getattr(read, name) for name in _KINDS}


_PROPERTIES = {"id": {"type": "integer"}, "text": {"type": "string"}}
_DRAFT = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "additionalProperties": False}


class JsonSchemaRecords(TypedRecords):
    format, kind = "JsonSchema", "JSON"
    schemas = [
        json.dumps({**_DRAFT, "properties": properties})
        for properties in (_PROPERTIES, {**_PROPERTIES, "day": {"type": "integer"}})
    ]

    def encode(self, version: int, row: dict[str, Any]) -> bytes:
        return json.dumps(row).encode()

    def decode(self, version: int, data: bytes) -> Any:
        return json.loads(data)


TYPED: dict[str, type[TypedRecords]] = {
    records.format: records for records in (AvroRecords, ProtobufRecords, JsonSchemaRecords)
}
