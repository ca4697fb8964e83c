"""Links the files of a Protobuf schema: its own text, its references, and what every registry has built in."""

from __future__ import annotations

import base64
import binascii
import importlib
import re
from collections.abc import Iterable
from typing import TypeAlias

from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from s3sink_job.decode.proto_text import ROOT, parse_file
from s3sink_job.decode.writer_schemas import InvalidSchema, WriterSchema

BUILT_IN = re.compile(r"google/[a-z0-9_]+(?:/[a-z0-9_]+)*\.proto")
"""Files of the packages `protobuf` and `googleapis-common-protos`."""
WELL_KNOWN = "google/protobuf/"
OF_SERIALIZERS = {
    "confluent/meta.proto": """
        syntax = "proto3";
        package confluent;
        message Meta {
          string doc = 1; map<string, string> params = 2; repeated string tags = 3; repeated Rule rules = 4;
        }
        message Rule { string name = 1; string doc = 2; string expr = 3; string sql = 4; }
        """,
    "confluent/type/decimal.proto": """
        syntax = "proto3";
        package confluent.type;
        message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
        """,
    "confluent/type/variant.proto": """
        syntax = "proto3";
        package confluent.type;
        message Variant { bytes metadata = 1; bytes value = 2; }
        """,
    "confluent/types/decimal.proto": 'import public "confluent/type/decimal.proto";',
    "metadata/metadata.proto": "package metadata;",
    "additionalTypes/decimal.proto": """
        syntax = "proto3";
        package additionalTypes;
        message Decimal { int64 units = 1; int32 fraction = 2; uint32 precision = 3; int32 scale = 4; }
        """,
}
"""Serializers of Confluent, and of AWS (the last two), do not register these. Their extensions are options, which
change no record."""
BASE64 = re.compile(r"[A-Za-z0-9+/\s]++=*\s*", re.ASCII)
MOST_IMPORTS = 1_000
MessagePath: TypeAlias = tuple[int, ...] | str | int
"""A message of a file: its place in the file, the place of a message in that one, and so on; or its full name; or its
place among the full names of all messages of the file in their order."""


def link(schema: WriterSchema) -> FileDescriptor:
    """The file of the schema, with everything that it imports. Raises `InvalidSchema`."""
    return _Linker(schema).link()


def message_at(file: FileDescriptor, path: MessagePath) -> Descriptor:
    """Raises `InvalidSchema`."""
    match path:
        case str():
            return _named(file, path)
        case int():
            return _sorted(file, path)
        case _:
            return _numbered(file, path)


def _named(file: FileDescriptor, name: str) -> Descriptor:
    """By its full name, or by its name in the package of the file."""
    for full in (name, f"{file.package}.{name}"):
        try:
            found = file.pool.FindMessageTypeByName(full)
        except KeyError:
            continue
        if found.file.name == ROOT:
            return found
    raise InvalidSchema(f"a Protobuf schema without the message {name}")


def _sorted(file: FileDescriptor, index: int) -> Descriptor:
    messages, new = [], list(file.message_types_by_name.values())
    while new:
        messages += new
        new = [inner for message in new for inner in message.nested_types]
    if index >= len(messages):
        raise InvalidSchema(f"a Protobuf schema with {len(messages)} messages, and without the message number {index}")
    return sorted(messages, key=lambda message: message.full_name)[index]


def _numbered(file: FileDescriptor, indexes: tuple[int, ...]) -> Descriptor:
    messages = list(file.message_types_by_name.values())
    found: Descriptor | None = None
    for index in indexes:
        if not 0 <= index < len(messages):
            path = ", ".join(map(str, indexes))
            where = f"{found.full_name} has" if found else "it has"
            raise InvalidSchema(f"a Protobuf schema without the message [{path}]: {where} {len(messages)} messages")
        found = messages[index]
        messages = list(found.nested_types)
    assert found is not None, "there is at least one index"
    return found


class _Linker:
    def __init__(self, schema: WriterSchema) -> None:
        self._schema = schema
        self._texts = {reference.name: reference.text for reference in reversed(schema.references)}
        self._pool = DescriptorPool()
        self._done: dict[str, bool] = {}
        """The files that were begun; true once they are in the pool."""

    def link(self) -> FileDescriptor:
        try:
            self._add(_file(ROOT, self._schema.text))
        except RecursionError:
            raise InvalidSchema("not a Protobuf schema that can be read: nested too deeply") from None
        return self._pool.FindFileByName(ROOT)

    def _add(self, file: FileDescriptorProto) -> None:
        self._done[file.name] = False
        for name in file.dependency:
            if name not in self._done:
                if len(self._done) > MOST_IMPORTS:
                    raise InvalidSchema(f"not a Protobuf schema that can be read: more than {MOST_IMPORTS} imports")
                self._add(self._imported(name, file.name))
            elif not self._done[name]:
                raise InvalidSchema(f"not a Protobuf schema: {name} imports itself, directly or by another file")
        try:
            self._pool.AddSerializedFile(file.SerializeToString())
        except TypeError as error:
            why = str(error).removeprefix("Couldn't build proto file into descriptor pool: ")
            where = "" if file.name == ROOT else f" in {file.name}"
            raise InvalidSchema(f"not a Protobuf schema: {why}{where}") from None
        self._done[file.name] = True

    def _imported(self, name: str, by: str) -> FileDescriptorProto:
        """References first, but well-known types are always Google's own."""
        if name in self._texts and not name.startswith(WELL_KNOWN):
            return _file(name, self._texts[name])
        if name in OF_SERIALIZERS:
            return parse_file(name, OF_SERIALIZERS[name])
        if BUILT_IN.fullmatch(name):
            try:
                module = importlib.import_module(f"{name.removesuffix('.proto').replace('/', '.')}_pb2")
                return FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
            except ImportError:
                pass
        where = "" if by == ROOT else f"{by} "
        raise InvalidSchema(f"not a Protobuf schema: {where}imports {name!r}, which is not among its references")


def _file(name: str, text: str) -> FileDescriptorProto:
    """From a .proto text, or from a descriptor in base64, as some clients register it."""
    if BASE64.fullmatch(text):
        try:
            file = FileDescriptorProto.FromString(base64.b64decode(text, validate=False))
        except (binascii.Error, DecodeError) as error:
            what = "" if name == ROOT else f"{name} is "
            why = f"{what}neither a .proto text nor a descriptor: {error}"
            raise InvalidSchema(f"not a Protobuf schema: {why}") from None
        file.name = name
        _without_json_names(file.message_type)
        return file
    return parse_file(name, text)


def _without_json_names(messages: Iterable[DescriptorProto]) -> None:
    """As `parse_file` does it."""
    for message in messages:
        for field in message.field:
            field.json_name = field.name
        _without_json_names(message.nested_type)
