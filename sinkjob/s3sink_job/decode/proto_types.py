"""Protobuf messages as types, and the Arrow types of their columns.

Fields with presence are null where they are not set. Others have their default value then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from s3sink_job.decode.writer_schemas import InvalidSchema

SCALARS = {
    "bool": pa.bool_(),
    "int32": pa.int32(),
    "sint32": pa.int32(),
    "sfixed32": pa.int32(),
    "uint32": pa.int64(),
    "fixed32": pa.int64(),
    "int64": pa.int64(),
    "sint64": pa.int64(),
    "sfixed64": pa.int64(),
    "uint64": pa.decimal128(20, 0),
    "fixed64": pa.decimal128(20, 0),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
"""There is no column of numbers without a sign: the next wider type holds them."""
NAMES = {getattr(FieldDescriptor, f"TYPE_{name.upper()}"): name for name in SCALARS}
TIMESTAMP = pa.timestamp("ns", "UTC")
PACKAGE = "google.protobuf."
WRAPPERS = {
    *(f"{PACKAGE}{name}" for name in ("DoubleValue", "FloatValue", "BoolValue", "StringValue", "BytesValue")),
    *(f"{PACKAGE}{name}" for name in ("Int64Value", "UInt64Value", "Int32Value", "UInt32Value")),
}
STRUCT, VALUE, LIST = (f"{PACKAGE}{name}" for name in ("Struct", "Value", "ListValue"))
MAX_DEPTH = 100
"""Levels of messages. Python's own limit would depend on the depth of the caller."""
MAX_TYPES = 100_000
"""Fields of a schema, counted wherever they are used: a message that uses another one twice doubles it."""


@dataclass(frozen=True)
class Scalar:
    name: str


@dataclass(frozen=True)
class Enum:
    names: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Message:
    name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Wrapper:
    """A message around a single value, such as `StringValue`: its column is that of the value."""

    message: Message


@dataclass(frozen=True)
class Timestamp:
    message: Message


@dataclass(frozen=True)
class JsonText:
    """A message inside of itself, or a JSON value. No column type is recursive: its column is JSON text."""

    name: str


@dataclass(frozen=True)
class Map:
    entry: Message
    """With the fields `key` and `value`."""


ProtoType: TypeAlias = Scalar | Enum | Message | Wrapper | Timestamp | JsonText | Map


@dataclass(frozen=True)
class Field:
    name: str
    number: int
    type: ProtoType
    repeated: bool = False
    presence: bool = False
    oneof: str = ""
    group: bool = False
    """Whether its bytes are between two tags, and have no length in front."""


@dataclass(frozen=True)
class ParsedMessage:
    root: ProtoType
    named: Mapping[str, Message]
    """The messages that are JSON text somewhere."""


def parse_message(descriptor: Descriptor) -> ParsedMessage:
    """Raises `InvalidSchema`."""
    resolver = _Resolver()
    return ParsedMessage(resolver.message(descriptor, ()), resolver.named)


class _Resolver:
    def __init__(self) -> None:
        self._types = 0
        self.named: dict[str, Message] = {}

    def message(self, descriptor: Descriptor, inside: tuple[str, ...]) -> ProtoType:
        """`inside` are the names of the messages around it."""
        name = descriptor.full_name
        if name in inside or name in (STRUCT, VALUE, LIST):
            if name not in self.named:
                self.named[name] = Message(name, ())  # so that it is resolved once
                self.named[name] = self._plain(descriptor, (name,))
            return JsonText(name)
        found = self._plain(descriptor, (*inside, name))
        if descriptor.GetOptions().map_entry:
            return Map(found)
        if name in WRAPPERS:
            return Wrapper(found)
        return Timestamp(found) if name == f"{PACKAGE}Timestamp" else found

    def _plain(self, descriptor: Descriptor, inside: tuple[str, ...]) -> Message:
        if len(inside) > MAX_DEPTH:
            raise InvalidSchema(f"not a Protobuf schema that can be read: it has more than {MAX_DEPTH} levels")
        is_entry = bool(descriptor.GetOptions().map_entry)
        # In the order of the text, as Java and protoc list them.
        fields = tuple(self._field(field, inside, is_entry=is_entry) for field in descriptor.fields)
        return Message(descriptor.full_name, fields)

    def _field(self, field: FieldDescriptor, inside: tuple[str, ...], *, is_entry: bool) -> Field:
        self._types += 1
        if self._types > MAX_TYPES:
            raise InvalidSchema(f"not a Protobuf schema that can be read: it has more than {MAX_TYPES} fields")
        if field.message_type is not None:
            kind: ProtoType = self.message(field.message_type, inside)
        elif field.enum_type is not None:
            kind = Enum(_names(field.enum_type))
        else:
            kind = Scalar(NAMES[field.type])
        oneof = field.containing_oneof
        return Field(
            *(field.name, field.number, kind),
            repeated=field.is_repeated and not isinstance(kind, Map),
            # Both fields of an entry are always there: what is missing has its default value.
            presence=field.has_presence and not is_entry,
            oneof=oneof.name if oneof is not None and len(oneof.fields) > 1 else "",
            group=field.type == FieldDescriptor.TYPE_GROUP,
        )


def _names(enum: EnumDescriptor) -> tuple[tuple[int, str], ...]:
    """By number; of several names for one number the first."""
    found: dict[int, str] = {}
    for value in enum.values:
        found.setdefault(value.number, value.name)
    return tuple(found.items())


def column_type(kind: ProtoType) -> pa.DataType:
    match kind:
        case Scalar(name):
            return SCALARS[name]
        case Enum() | JsonText():
            return pa.string()
        case Timestamp():
            return TIMESTAMP
        case Wrapper(message):
            return column_type(message.fields[0].type)
        case Map(entry):
            return pa.map_(pa.string(), column_type(entry.fields[1].type))
        case Message(_, fields):
            return pa.struct([pa.field(field.name, field_type(field)) for field in fields])


def field_type(field: Field) -> pa.DataType:
    kind = column_type(field.type)
    return pa.list_(kind) if field.repeated else kind
