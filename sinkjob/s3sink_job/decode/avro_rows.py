"""Reads single Avro records, value by value: slow and exact, with the path of what is wrong.

It is for recursive schemas, for records with very long lists, and for bad records, whose fault it finds.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Mapping
from typing import Any

from s3sink_job.decode.avro_schema import (
    Array,
    AvroType,
    Enum,
    Fixed,
    Map,
    ParsedSchema,
    Primitive,
    Record,
    Recursive,
    Union,
    branch_names,
)
from s3sink_job.decode.bad_records import Fault

INVALID = "InvalidAvro"
MOST_EMPTY = 100_000
"""Items of lists that take no bytes: any number of them would fit into a record."""


class NotAvro(ValueError):
    """Why bytes are not a record of the schema. The fault lacks its subject, `value`."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.fault = Fault(INVALID, message)


def read_row(schema: ParsedSchema, data: bytes) -> Any:
    """The value in the form in which `pa.array` takes it. Raises `NotAvro`."""
    reader = _RowReader(schema.named, data)
    try:
        value = reader.value(schema.root, "$")
    except RecursionError:
        raise NotAvro("is nested too deeply to be read") from None
    if reader.at < len(data):
        raise NotAvro(f"has {len(data) - reader.at} bytes behind its last field: it was written by another schema")
    return value


class _RowReader:
    def __init__(self, named: Mapping[str, Record], data: bytes) -> None:
        self._named, self._data, self.at = named, data, 0
        self._empty = 0
        """Items that can have no bytes, in all lists so far."""

    def value(self, kind: AvroType, path: str) -> Any:
        match kind:
            case Primitive(name):
                return self._primitive(name, path)
            case Fixed(_, size):
                return self._take(size, path)
            case Enum(_, symbols):
                return symbols[self._number_below(len(symbols), "symbol", path)]
            case Array(items):
                return [self.value(items, f"{path}[{number}]") for number in self._items(path)]
            case Map(values):
                return [self._entry(values, path) for _ in self._items(path)]
            case Record(_, fields):
                return {field.name: self.value(field.type, f"{path}.{field.name}") for field in fields}
            case Union():
                return self._union(kind, path)
            case Recursive(name):
                return json.dumps(_json(self._tree(self._named[name], path)), ensure_ascii=False)

    def _tree(self, kind: AvroType, path: str) -> Any:
        """Like `value`, but a recursive record is not text."""
        match kind:
            case Recursive(name):
                return self._tree(self._named[name], path)
            case Record(_, fields):
                return {field.name: self._tree(field.type, f"{path}.{field.name}") for field in fields}
            case Array(items):
                return [self._tree(items, f"{path}[{number}]") for number in self._items(path)]
            case Map(values):
                return {str(self._primitive("string", path)): self._tree(values, path) for _ in self._items(path)}
            case Union():
                number, branch = self._branch(kind, path)
                if branch is None or len(kind.values) == 1:
                    return None if branch is None else self._tree(branch, path)
                names = dict(zip((n for n, _ in kind.values), branch_names(kind), strict=True))
                return {names[number]: self._tree(branch, path)}
            case _:
                return self.value(kind, path)

    def _union(self, union: Union, path: str) -> Any:
        number, branch = self._branch(union, path)
        if branch is None:
            return None
        value = self.value(branch, path)
        if len(union.values) == 1:
            return value
        names = zip((n for n, _ in union.values), branch_names(union), strict=True)
        return {name: value if n == number else None for n, name in names}

    def _branch(self, union: Union, path: str) -> tuple[int, AvroType | None]:
        """None for null."""
        number = self._number_below(len(union.branches), "branch of a union", path)
        return number, dict(union.values).get(number)

    def _entry(self, values: AvroType, path: str) -> tuple[str, Any]:
        key = str(self._primitive("string", path))
        return key, self.value(values, f"{path}.{key}")

    def _primitive(self, name: str, path: str) -> Any:
        match name:
            case "null":
                return None
            case "boolean":
                byte = self._take(1, path)[0]
                if byte > 1:
                    raise NotAvro(f"has the byte {byte} for a boolean at {path}")
                return byte == 1
            case "int":
                number = self._number(path)
                if not -(2**31) <= number < 2**31:
                    raise NotAvro(f"has a number that is too large for the int at {path}, which has 32 bits")
                return number
            case "long":
                return self._number(path)
            case "float" | "double":
                return struct.unpack("<f" if name == "float" else "<d", self._take(4 if name == "float" else 8, path))[
                    0
                ]
        length = self._number(path)
        if length < 0:
            raise NotAvro(f"has the length {length} at {path}")
        data = self._take(length, path)
        if name == "bytes":
            return data
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise NotAvro(f"has text at {path} that is not UTF-8: {error.reason} at byte {error.start}") from None

    def _items(self, path: str) -> _Items:
        return _Items(self, path)

    def block(self, path: str) -> int:
        """The number of items that follow; 0 at the end."""
        count = self._number(path)
        if count < 0:
            count = -count
            self._number(path)
        self._empty += max(0, count - (len(self._data) - self.at))
        if self._empty > MOST_EMPTY:
            raise NotAvro(f"has {count} items at {path}, more than it has bytes")
        return count

    def _number_below(self, most: int, what: str, path: str) -> int:
        number = self._number(path)
        if not 0 <= number < most:
            raise NotAvro(f"has number {number} for a {what} at {path}, which has {most}")
        return number

    def _number(self, path: str) -> int:
        value = shift = 0
        while True:
            byte = self._take(1, path)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift >= 70:
                raise NotAvro(f"has a number of more than 64 bits at {path}")
        if value >= 2**64:
            raise NotAvro(f"has a number of more than 64 bits at {path}")
        return value >> 1 ^ -(value & 1)

    def _take(self, size: int, path: str) -> bytes:
        end = self.at + size
        if end > len(self._data):
            raise NotAvro(f"ends within {path}: it was cut, or was written by another schema")
        data, self.at = self._data[self.at : end], end
        return data


class _Items:
    """Counts the items of a list or map, block by block."""

    def __init__(self, reader: _RowReader, path: str) -> None:
        self._reader, self._path = reader, path
        self._left = self._number = 0

    def __iter__(self) -> _Items:
        return self

    def __next__(self) -> int:
        if not self._left:
            self._left = self._reader.block(self._path)
            if not self._left:
                raise StopIteration
        self._left -= 1
        self._number += 1
        return self._number - 1


def _json(value: Any) -> Any:
    """As JSON has it: bytes as base64, numbers that are none as text."""
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case float() if not math.isfinite(value):
            return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
        case dict():
            return {name: _json(inner) for name, inner in value.items()}
        case list():
            return [_json(item) for item in value]
        case _:
            return value
