"""Values of single Protobuf messages, in the form in which `pa.array` takes them.

For messages that `proto_columns.py` does not read: with groups, with a message that comes in several parts, with one
key of a map twice, with bad bytes; and for messages that become JSON text.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np

from s3sink_job.decode.proto_types import (
    LIST,
    STRUCT,
    VALUE,
    Enum,
    Field,
    JsonText,
    Map,
    Message,
    ParsedMessage,
    ProtoType,
    Scalar,
    Timestamp,
    Wrapper,
)
from s3sink_job.decode.proto_wire import NotProtobuf, State, Unknown, read_state

A_SECOND = 1_000_000_000
FLOAT = Scalar("float")
EXACT = 2**53
"""Up to here a double holds every whole number."""


def read_row(schema: ParsedMessage, data: bytes, unknown: Unknown) -> Any:
    """Raises `NotProtobuf`."""
    return _read(schema, schema.root, data, unknown)


def json_text(schema: ParsedMessage, name: str, data: bytes, unknown: Unknown) -> str:
    """A message that has no column type of its own. Raises `NotProtobuf`."""
    text: str = _read(schema, JsonText(name), data, unknown)
    return text


def _read(schema: ParsedMessage, kind: ProtoType, data: bytes, unknown: Unknown) -> Any:
    return _Values(schema.named).of(kind, read_state(kind, schema.named, data, unknown), "$")


class _Values:
    """The values of messages that are read."""

    def __init__(self, named: Mapping[str, Message]) -> None:
        self._named = named

    def of(self, kind: ProtoType, state: State, path: str) -> Any:
        match kind:
            case Message(_, fields):
                return {field.name: self._value(field, state, f"{path}.{field.name}") for field in fields}
            case Wrapper(message):
                return self._value(message.fields[0], state, path)
            case Timestamp(message):
                seconds, nanos = (self._value(field, state, path) for field in message.fields)
                return _nanoseconds(seconds, nanos, path)
            case JsonText():
                return json.dumps(self._tree(kind, state, path), ensure_ascii=False, separators=(",", ":"))
        raise TypeError(f"{kind} is no message")

    def _value(self, field: Field, state: State, path: str) -> Any:
        found = state.get(field.number)
        if isinstance(field.type, Map):
            return list(self._entries(field.type, found or (), path, self._value).items())
        if field.repeated:
            if isinstance(field.type, Scalar | Enum):
                return found or []
            return [self.of(field.type, item, f"{path}[{n}]") for n, item in enumerate(found or ())]
        if isinstance(field.type, Scalar | Enum):
            return default(field) if found is None else found
        if found is None and field.presence:
            return None
        return self.of(field.type, found or {}, path)

    def _entries(self, kind: Map, items: Any, path: str, value_of: Callable[..., Any]) -> dict[str, Any]:
        """The last of several entries with one key counts."""
        key, value = kind.entry.fields
        found: dict[str, Any] = {}
        for item in items:
            name = key_text(self._value(key, item, path))
            found.pop(name, None)
            found[name] = value_of(value, item, f"{path}.{name}")
        return found

    def _tree(self, kind: ProtoType, state: State, path: str) -> Any:
        """As JSON has it. Fields that are not set are left out."""
        match kind:
            case Message(_, fields):
                found = ((field.name, self._leaf(field, state, f"{path}.{field.name}")) for field in fields)
                return {name: value for name, value in found if value is not None}
            case JsonText(name):
                tree = self._tree(self._named[name], state, path)
                if name == VALUE:
                    return next((_json_number(value) for value in _set_member(tree)), None)
                return tree["fields" if name == STRUCT else "values"] if name in (STRUCT, LIST) else tree
            case Timestamp():
                return _time_text(self.of(kind, state, path))
            case Wrapper(message):
                return self._leaf(message.fields[0], state, path)
        raise TypeError(f"{kind} is no message")

    def _leaf(self, field: Field, state: State, path: str) -> Any:
        found = state.get(field.number)
        if isinstance(field.type, Map):
            return self._entries(field.type, found or (), path, self._leaf)
        if field.repeated and not isinstance(field.type, Scalar | Enum):
            return [self._tree(field.type, item, f"{path}[{n}]") for n, item in enumerate(found or ())]
        if field.repeated or isinstance(field.type, Scalar | Enum):
            return _json(self._value(field, state, path), single=field.type == FLOAT)
        return None if found is None and field.presence else self._tree(field.type, found or {}, path)


def default(field: Field) -> Any:
    """The value of a field that is not set; None if that can be seen."""
    if field.presence:
        return None
    if isinstance(field.type, Enum):
        return dict(field.type.names).get(0, "0")
    assert isinstance(field.type, Scalar)
    match field.type.name:
        case "string" | "bytes":
            return "" if field.type.name == "string" else b""
        case "float" | "double":
            return 0.0
        case "uint64" | "fixed64":
            return Decimal(0)
        case "bool":
            return False
    return 0


def key_text(key: Any) -> str:
    """Keys of maps are text, whatever they are in Protobuf."""
    return str(key).lower() if isinstance(key, bool) else str(key)


def _nanoseconds(seconds: int, nanos: int, path: str) -> int:
    found = seconds * A_SECOND + nanos
    if not 0 <= nanos < A_SECOND or not -(2**63) < found < 2**63:
        why = "nanoseconds hold the years 1678 to 2261" if 0 <= nanos < A_SECOND else "it has wrong nanoseconds"
        raise NotProtobuf(f"has a time at {path} that no column holds: {seconds} seconds and {nanos} ns; {why}")
    return found


def _time_text(nanoseconds: int) -> str:
    return f"{np.datetime64(nanoseconds, 'ns')}Z"


def _set_member(tree: dict[str, Any]) -> list[Any]:
    """Of a JSON value; null is an enum there."""
    return [None if name == "null_value" else value for name, value in tree.items()]


def _json_number(value: Any) -> Any:
    whole = isinstance(value, float) and value.is_integer() and abs(value) <= EXACT
    return int(value) if whole else value


def _json(value: Any, *, single: bool) -> Any:
    """`single`: a number has the digits of a `float`, and not those of the double with the same value."""
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case Decimal():
            return str(value)
        case float() if not math.isfinite(value):
            return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
        case list():
            return [_json(item, single=single) for item in value]
        case float() if single:
            return float(str(np.float32(value)))
        case _:
            return value
