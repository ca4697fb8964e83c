"""Protobuf schemas and messages by chance, and what Google's own runtime reads from bytes."""

from __future__ import annotations

import base64
import json
import math
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from s3sink_job.decode.proto_decoder import ProtobufDecoder
from s3sink_job.decode.proto_files import MessagePath, link, message_at
from s3sink_job.decode.writer_schemas import Reference, WriterSchema

NUMBERS = {
    "int32": (-(2**31), 2**31 - 1),
    "sint32": (-(2**31), 2**31 - 1),
    "sfixed32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "sint64": (-(2**63), 2**63 - 1),
    "sfixed64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1),
    "fixed32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
    "fixed64": (0, 2**64 - 1),
}
SCALARS = [*NUMBERS, "bool", "float", "double", "string", "bytes"]
KEYS = [*NUMBERS, "bool", "string"]
WELL_KNOWN = [
    *(f"google.protobuf.{name}" for name in ("Timestamp", "Duration", "StringValue", "UInt64Value", "BoolValue")),
    *(f"google.protobuf.{name}" for name in ("Struct", "Value", "BytesValue", "DoubleValue", "FloatValue", "Empty")),
]
IMPORTS = "".join(
    f'import "google/protobuf/{name}.proto";\n' for name in ("timestamp", "duration", "wrappers", "struct", "empty")
)
TEXTS = ["", "a", "Łódź", "x" * 200, "\x00"]


def schema_of(text: str, **references: str) -> WriterSchema:
    return WriterSchema("PROTOBUF", text, tuple(Reference(name, inner) for name, inner in references.items()))


def decoder(schema: WriterSchema, path: MessagePath = (0,)) -> ProtobufDecoder:
    """A new one: none of another test."""
    return ProtobufDecoder(message_at(link(schema), path))


def message_class(schema: WriterSchema, path: MessagePath = (0,)) -> type[Message]:
    found: type[Message] = GetMessageClass(message_at(link(schema), path))
    return found


def varint(number: int) -> bytes:
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80]) + varint(number >> 7)


class SchemaMaker:
    """Texts of proto3 schemas, the first message first."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._names = 0
        self._made: list[str] = []

    def text(self) -> str:
        body = self._message(depth=2, name="Root")
        enum = "enum Color { NONE = 0; RED = 1; BLUE = 7; BELOW = -1; }\n"
        return f'syntax = "proto3";\npackage made;\n{IMPORTS}{body}{enum}{"".join(self._made)}'

    def _name(self) -> str:
        self._names += 1
        return f"f{self._names}"

    def _message(self, depth: int, name: str) -> str:
        choose = self._random
        numbers = choose.sample(range(1, choose.choice([16, 3000, 2**20])), 12)
        lines = [self._field(depth, name, numbers.pop()) for _ in range(choose.randint(0, 7))]
        if choose.random() < 0.5:
            members = [f"{self._type(depth, name)} {self._name()} = {numbers.pop()};" for _ in range(3)]
            lines.append(f"oneof {self._name()} {{ {' '.join(members)} }}")
        choose.shuffle(lines)
        return f"message {name} {{\n  {chr(10).join(lines)}\n}}\n"

    def _field(self, depth: int, inside: str, number: int) -> str:
        kind = self._type(depth, inside)
        match self._random.choice(["plain", "plain", "optional", "repeated", "map"]):
            case "map":
                return f"map<{self._random.choice(KEYS)}, {kind}> {self._name()} = {number};"
            case "plain":
                return f"{kind} {self._name()} = {number};"
            case label:
                return f"{label} {kind} {self._name()} = {number};"

    def _type(self, depth: int, inside: str) -> str:
        match self._random.choice(["scalar", "scalar", "enum", "known", "message", "self"]):
            case "enum":
                return "Color"
            case "known":
                return self._random.choice(WELL_KNOWN)
            case "message" if depth:
                name = self._name().upper()
                self._made.append(self._message(depth - 1, name))
                return name
            case "self":
                return inside
        return self._random.choice(SCALARS)


def filled(message: Any, chance: random.Random, depth: int = 4) -> Any:
    """With values in some of its fields."""
    name = message.DESCRIPTOR.full_name
    if name == "google.protobuf.Timestamp":
        message.seconds, message.nanos = chance.randint(-(10**9), 4 * 10**9), chance.randint(0, 10**9 - 1)
        return message
    for field in message.DESCRIPTOR.fields:
        if chance.random() < 0.4 or (field.message_type is not None and not depth):
            continue
        target = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            _fill_map(target, field, chance, depth)
        elif field.is_repeated:
            for _ in range(chance.choice([0, 1, 2, 5])):
                if field.message_type is not None:
                    filled(target.add(), chance, depth - 1)
                else:
                    target.append(scalar(field, chance))
        elif field.message_type is not None:
            filled(target, chance, depth - 1)
            if chance.random() < 0.5:
                target.SetInParent()
        else:
            setattr(message, field.name, scalar(field, chance))
    return message


def _fill_map(target: Any, field: FieldDescriptor, chance: random.Random, depth: int) -> None:
    key, value = field.message_type.fields
    for _ in range(chance.choice([0, 1, 3])):
        name = scalar(key, chance)
        if value.message_type is not None:
            filled(target[name], chance, depth - 1)
        else:
            target[name] = scalar(value, chance)


def scalar(field: FieldDescriptor, chance: random.Random) -> Any:
    if field.enum_type is not None:
        if field.enum_type.is_closed:
            return chance.choice(list(field.enum_type.values_by_number))
        numbers = [0] if field.enum_type.name == "NullValue" else [0, 1, 7, -1, 5, 100_000]
        return chance.choice(numbers)
    kind = kind_of(field)
    if kind in NUMBERS:
        low, high = NUMBERS[kind]
        return chance.choice([0, 1, high, low, chance.randint(low, high), chance.randint(0, 300)])
    match kind:
        case "bool":
            return chance.random() < 0.5
        case "float":
            return chance.choice([0.0, 0.5, -(2.0**70), 0.1, 3.4028235e38, 1e-45])
        case "double":
            return chance.choice([0.0, 0.1, 1e300, 12.0])
        case "bytes":
            return chance.randbytes(chance.choice([0, 1, 150]))
    return chance.choice(TEXTS)


def kind_of(field: FieldDescriptor) -> str:
    return next(name for name in SCALARS if getattr(FieldDescriptor, f"TYPE_{name.upper()}") == field.type)


def as_read(message: Any, inside: tuple[str, ...] = ()) -> Any:
    """The value of a message as its column has it, by Google's runtime."""
    name = message.DESCRIPTOR.full_name
    if name in ("google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue"):
        return JsonValue(_json(message))
    if name in inside:
        return JsonValue(tree(message))
    if name == "google.protobuf.Timestamp":
        return message.seconds * 10**9 + message.nanos
    if name.startswith("google.protobuf.") and name.endswith("Value"):
        return _scalar_read(message.DESCRIPTOR.fields[0], message.value)
    return {field.name: _field_read(message, field, (*inside, name)) for field in message.DESCRIPTOR.fields}


def _json(message: Any) -> Any:
    """Of a Struct, a Value or a ListValue."""
    if message.DESCRIPTOR.name == "Struct":
        return {name: _json(value) for name, value in message.fields.items()}
    if message.DESCRIPTOR.name == "ListValue":
        return [_json(value) for value in message.values]
    kind = message.WhichOneof("kind")
    if kind in (None, "null_value"):
        return None
    value = getattr(message, kind)
    return _json(value) if kind in ("struct_value", "list_value") else number(value)


def number(value: Any) -> Any:
    """Numbers that are none are text in JSON, and NaN equals itself as text."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")


class JsonValue:  # noqa: PLW1641
    """Equal to JSON text with the same content."""

    def __init__(self, content: Any) -> None:
        self.content = content

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and json.loads(other) == self.content

    def __repr__(self) -> str:
        return f"JSON {self.content!r}"


def _field_read(message: Any, field: FieldDescriptor, inside: tuple[str, ...]) -> Any:
    value = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        kind = field.message_type.fields[1]
        return {_key(key): _inner(kind, value[key], (*inside, field.message_type.full_name)) for key in value}
    if field.is_repeated:
        return [_inner(field, item, inside) for item in value]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _inner(field, value, inside)


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _inner(field: FieldDescriptor, value: Any, inside: tuple[str, ...]) -> Any:
    return as_read(value, inside) if field.message_type is not None else _scalar_read(field, value)


def _scalar_read(field: FieldDescriptor, value: Any) -> Any:
    if field.enum_type is not None:
        found = field.enum_type.values_by_number.get(value)
        return found.name if found else str(value)
    return Decimal(value) if kind_of(field) in ("uint64", "fixed64") else number(value)


def tree(message: Any) -> Any:
    """The same as JSON: fields that are not set are left out."""

    def plain(value: Any) -> Any:
        match value:
            case bytes():
                return base64.b64encode(value).decode()
            case Decimal():
                return str(value)
            case JsonValue():
                return value.content
        return value

    def inner(field: FieldDescriptor, value: Any) -> Any:
        if field.message_type is not None:
            return tree(value)
        if field.type == FieldDescriptor.TYPE_FLOAT and math.isfinite(value):
            return float(str(np.float32(value)))
        return plain(_scalar_read(field, value))

    name = message.DESCRIPTOR.full_name
    if name == "google.protobuf.Timestamp":
        return f"{np.datetime64(message.seconds * 10**9 + message.nanos, 'ns')}Z"
    if name in ("google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue"):
        return plain(as_read(message))
    if name.startswith("google.protobuf.") and name.endswith("Value"):
        return inner(message.DESCRIPTOR.fields[0], message.value)
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            kind = field.message_type.fields[1]
            # A JSON null, such as an empty Value, is an entry too.
            found[field.name] = {_key(key): inner(kind, value[key]) for key in value}
        elif field.is_repeated:
            found[field.name] = [inner(field, item) for item in value]
        elif (not field.has_presence or message.HasField(field.name)) and (one := inner(field, value)) is not None:
            found[field.name] = one
    return found


def plain_row(row: Any) -> Any:
    """A row of a column, in the form of `as_read`: maps as dicts, times as numbers."""

    def plain(value: pa.Scalar) -> Any:
        if not value.is_valid:
            return None
        kind = value.type
        if pa.types.is_struct(kind):
            return {name: plain(value[name]) for name in kind.names}
        if pa.types.is_map(kind):
            found = {str(entry["key"]): plain(entry["value"]) for entry in value.values}
            assert len(found) == len(value.values), "one key twice"
            return found
        if pa.types.is_list(kind):
            return [plain(item) for item in value.values]
        return value.value if pa.types.is_timestamp(kind) else number(value.as_py())

    return plain(row)
