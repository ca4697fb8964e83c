"""Reads the bytes of single Protobuf messages, value by value: slow and exact, with the path of what is wrong.

It follows the specification: the last value counts, parts of a message are merged, and of a oneof the last member is
left.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeAlias

from s3sink_job.decode.bad_records import Fault
from s3sink_job.decode.proto_types import Enum, Field, JsonText, Map, Message, ProtoType, Scalar, Timestamp, Wrapper

INVALID = "InvalidProtobuf"
VARINT, FIXED64, LENGTH, GROUP, END_GROUP, FIXED32 = range(6)
FIXED = {"float": "<f", "fixed32": "<I", "sfixed32": "<i", "double": "<d", "fixed64": "<Q", "sfixed64": "<q"}
WIRES = {**dict.fromkeys(("float", "fixed32", "sfixed32"), FIXED32), "string": LENGTH, "bytes": LENGTH}
WIRES |= dict.fromkeys(("double", "fixed64", "sfixed64"), FIXED64)
MAX_DEPTH = 100
"""Messages within each other, in one record. Google's own limit."""

Unknown: TypeAlias = Counter[tuple[str, int]]
"""How often fields were found that the schema does not have, by the name of the message and the number of the field."""
State: TypeAlias = dict[int, Any]
"""A message while it is read, by the number of its fields: its parts are merged here."""


class NotProtobuf(ValueError):
    """Why bytes are not a message of the schema. The fault lacks its subject, `value`."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.fault = Fault(INVALID, message)


def wire_of(kind: ProtoType) -> int:
    """How a value of the type begins."""
    match kind:
        case Scalar(name):
            return WIRES.get(name, VARINT)
        case Enum():
            return VARINT
    return LENGTH


def read_state(kind: ProtoType, named: Mapping[str, Message], data: bytes, unknown: Unknown) -> State:
    """`named` are the messages that `JsonText` refers to. Raises `NotProtobuf`."""
    return _StateReader(named, data, unknown).read(kind)


class _StateReader:
    def __init__(self, named: Mapping[str, Message], data: bytes, unknown: Unknown) -> None:
        self._named, self._data, self._unknown = named, data, unknown
        self._at, self._depth = 0, 0

    def read(self, kind: ProtoType) -> State:
        state: State = {}
        self._message(self._message_of(kind), state, len(self._data), "$", group=0)
        return state

    def _message_of(self, kind: ProtoType) -> Message:
        match kind:
            case Message():
                return kind
            case Wrapper(message) | Timestamp(message) | Map(message):
                return message
            case JsonText(name):
                return self._named[name]
        raise TypeError(f"{kind} is no message")

    def _message(self, message: Message, state: State, end: int, path: str, *, group: int) -> None:
        """Reads up to `end`, or to the tag that ends the group of this number."""
        fields = {field.number: field for field in message.fields}
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise NotProtobuf(f"has more than {MAX_DEPTH} messages within each other at {path}")
        while self._at < end:
            number, wire = self._tag(end, path)
            if wire == END_GROUP and number == group:
                self._depth -= 1
                return
            field = fields.get(number)
            if field is None or not self._field(message, field, wire, state, end, f"{path}.{field.name}"):
                self._unknown[message.name, number] += 1
                self._skip(number, wire, end, path)
        if group:
            raise NotProtobuf(f"ends within the group {path}: it was cut, or was written by another schema")
        self._depth -= 1

    def _field(self, message: Message, field: Field, wire: int, state: State, end: int, path: str) -> bool:
        """False if the field has another form in the schema. Then it counts as unknown."""
        expected = GROUP if field.group else wire_of(field.type)
        if wire == LENGTH and field.repeated and expected in (VARINT, FIXED32, FIXED64):
            inner = self._length(end, path)
            while self._at < inner:
                state.setdefault(field.number, []).append(self._scalar(field.type, inner, path))
            return True
        if wire != expected:
            return False
        if field.oneof:
            for other in message.fields:
                if other.oneof == field.oneof and other is not field:
                    state.pop(other.number, None)
        if isinstance(field.type, Scalar | Enum):
            value = self._scalar(field.type, end, path)
            if field.repeated:
                state.setdefault(field.number, []).append(value)
            else:
                state[field.number] = value
            return True
        if field.repeated or isinstance(field.type, Map):
            items = state.setdefault(field.number, [])
            items.append({})
            inner_state, path = items[-1], f"{path}[{len(items) - 1}]"
        else:
            inner_state = state.setdefault(field.number, {})
        inner = end if field.group else self._length(end, path)
        self._message(self._message_of(field.type), inner_state, inner, path, group=field.number if field.group else 0)
        return True

    def _tag(self, end: int, path: str) -> tuple[int, int]:
        tag = self._varint(end, path)
        number, wire = tag >> 3, tag & 7
        if not 0 < number < 2**29 or wire > FIXED32:
            raise NotProtobuf(f"has the tag {tag} within {path}, which no message has: it is no Protobuf")
        return number, wire

    def _skip(self, number: int, wire: int, end: int, path: str) -> None:
        match wire:
            case 0:
                self._varint(end, path)
            case 1 | 5:
                self._take(8 if wire == FIXED64 else 4, end, path)
            case 2:
                self._at = self._length(end, path)
            case 3:
                self._skip_group(number, end, path)
            case _:
                raise NotProtobuf(f"has the end of a group {number} within {path}, which did not begin")

    def _skip_group(self, group: int, end: int, path: str) -> None:
        open_groups = [group]
        while open_groups:
            number, wire = self._tag(end, path)
            if wire == GROUP:
                open_groups.append(number)
            elif wire != END_GROUP or number != open_groups.pop():
                self._skip(number, wire, end, path)

    def _scalar(self, kind: ProtoType, end: int, path: str) -> Any:
        if isinstance(kind, Enum):
            number = _signed(self._varint(end, path), 32)
            return dict(kind.names).get(number, str(number))
        assert isinstance(kind, Scalar)
        name = kind.name
        if name in FIXED:
            data = self._take(struct.calcsize(FIXED[name]), end, path)
            value = struct.unpack(FIXED[name], data)[0]
            return Decimal(value) if name == "fixed64" else value
        if name in ("string", "bytes"):
            until = self._length(end, path)
            data = self._take(until - self._at, end, path)
            return data if name == "bytes" else _text(data, path)
        return INTEGERS[name](self._varint(end, path))

    def _length(self, end: int, path: str) -> int:
        """Where a value ends that has its length in front."""
        length = self._varint(end, path)
        if length > end - self._at:
            raise NotProtobuf(f"ends within {path}: it was cut, or was written by another schema")
        return self._at + length

    def _varint(self, end: int, path: str) -> int:
        value = shift = 0
        while True:
            byte = self._take(1, end, path)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value & 0xFFFFFFFFFFFFFFFF
            if shift >= 70:
                raise NotProtobuf(f"has a number of more than 64 bits at {path}")

    def _take(self, size: int, end: int, path: str) -> bytes:
        until = self._at + size
        if until > end:
            raise NotProtobuf(f"ends within {path}: it was cut, or was written by another schema")
        data, self._at = self._data[self._at : until], until
        return data


def _text(data: bytes, path: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise NotProtobuf(f"has text at {path} that is not UTF-8: {error.reason} at byte {error.start}") from None


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _zigzag(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value >> 1 ^ -(value & 1)


INTEGERS: dict[str, Callable[[int], Any]] = {
    "int32": lambda value: _signed(value, 32),
    "int64": lambda value: _signed(value, 64),
    "uint32": lambda value: value & 0xFFFFFFFF,
    "uint64": Decimal,
    "sint32": lambda value: _zigzag(value, 32),
    "sint64": lambda value: _zigzag(value, 64),
    "bool": bool,
}
