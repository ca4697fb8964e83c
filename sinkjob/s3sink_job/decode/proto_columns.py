"""Protobuf messages as Arrow columns, all records of a schema at once, field by field.

Records that cannot be read so are only named, and `proto_rows.py` reads them: bad ones, and those where a value comes
several times and has to be merged.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter

import numpy as np
import pyarrow as pa

from s3sink_job.columns.types import Column
from s3sink_job.decode.proto_cursor import Cursor, Part
from s3sink_job.decode.proto_leaves import (
    EnumNames,
    dtype_of,
    key_column,
    numbers_column,
    text_column,
    timestamps,
    unpacked,
    values,
)
from s3sink_job.decode.proto_rows import json_text
from s3sink_job.decode.proto_types import (
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
    column_type,
)
from s3sink_job.decode.proto_wire import LENGTH, NotProtobuf, Unknown, wire_of
from s3sink_job.decode.record_bytes import Ints, Mask, Records

Parts = list[Part]
ENUM = "int32"
"""Enums are numbers of this type."""


class RecordReader:
    """Reads whole records."""

    def __init__(self, schema: ParsedMessage) -> None:
        self._reader = _spans(schema.root, schema)

    def read(self, records: Records, begin: Ints, unknown: Unknown) -> tuple[Column, Mask]:
        """The values of the records from these positions on, and a mask of the rows that have to be read alone."""
        end = records.bounds[1:]
        records.refused |= begin > end
        begin = np.minimum(begin, end)
        cursor = Cursor(records, np.arange(len(begin)), begin, end, [])
        found = self._reader.read(cursor, None)
        for name, number, rows in cursor.unknown:
            unknown[name, number] += int((~records.refused[rows]).sum())
        return found, records.refused


class _Spans(ABC):
    """Reads values that have a length: each is between two positions."""

    @abstractmethod
    def read(self, cursor: Cursor, present: Mask | None) -> Column:
        """Null where `present` is false. There the value is empty."""


class _Bytes(_Spans):
    def __init__(self, name: str) -> None:
        self._is_text = name == "string"

    def read(self, cursor: Cursor, present: Mask | None) -> Column:
        found = cursor.bytes(present)
        return text_column(cursor, found) if self._is_text else found


class _Json(_Spans):
    """One by one: neither recursive messages nor JSON values have columns."""

    def __init__(self, kind: JsonText, schema: ParsedMessage) -> None:
        self._name, self._schema = kind.name, schema

    def read(self, cursor: Cursor, present: Mask | None) -> Column:
        texts: list[str | None] = []
        for row, data in enumerate(cursor.bytes(present).to_pylist()):
            unknown: Unknown = Counter()
            try:
                texts.append(None if data is None else json_text(self._schema, self._name, data, unknown))
                for (name, number), times in unknown.items():
                    cursor.unknown.append((name, number, np.repeat(cursor.rows[row], times)))
            except NotProtobuf:
                texts.append(None)
                cursor.refuse(np.array([row]))
        return pa.array(texts, pa.string())


class _Fields:
    """Reads the fields of a message."""

    def __init__(self, message: Message, schema: ParsedMessage) -> None:
        self._name = message.name
        self._readers = [_field(field, schema) for field in message.fields]
        self._places = {
            field.number << 3 | wire: place
            for place, (field, reader) in enumerate(zip(message.fields, self._readers, strict=True))
            if not field.group
            for wire in reader.wires
        }
        oneofs: dict[str, list[int]] = {}
        for place, field in enumerate(message.fields):
            if field.oneof:
                oneofs.setdefault(field.oneof, []).append(place)
        self._oneofs = list(oneofs.values())

    def read(self, cursor: Cursor) -> list[Column]:
        found = cursor.fields(self._places, self._name)
        for members in self._oneofs:
            _refuse_repeated([part for place in members for part in found.get(place, ())], cursor)
        return [reader.read(cursor, found.get(place, [])) for place, reader in enumerate(self._readers)]


def _refuse_repeated(parts: Parts, cursor: Cursor) -> None:
    """Of several values in one message only one may be left: such messages are read alone."""
    if len(parts) > 1:
        times = np.bincount(np.concatenate([part.owners(len(cursor)) for part in parts]), minlength=len(cursor))
        if times.max() > 1:
            cursor.refuse(times > 1)


class _Struct(_Spans):
    def __init__(self, message: Message, schema: ParsedMessage) -> None:
        self._fields = _Fields(message, schema)
        self._type = column_type(message)

    def read(self, cursor: Cursor, present: Mask | None) -> Column:
        columns = self._fields.read(cursor)
        if not columns:
            rows = pa.array([{}] * len(cursor), self._type)
            return rows if present is None else rows.take(pa.array(np.arange(len(cursor)), mask=~present))
        mask = None if present is None else pa.array(~present)
        return pa.StructArray.from_arrays(columns, fields=list(self._type), mask=mask)


class _Wrapper(_Spans):
    def __init__(self, kind: Wrapper, schema: ParsedMessage) -> None:
        self._fields = _Fields(kind.message, schema)

    def read(self, cursor: Cursor, present: Mask | None) -> Column:
        (found,) = self._fields.read(cursor)
        return found if present is None else found.take(pa.array(np.arange(len(found)), mask=~present))


class _Timestamp(_Spans):
    def __init__(self, kind: Timestamp, schema: ParsedMessage) -> None:
        self._fields = _Fields(kind.message, schema)

    def read(self, cursor: Cursor, present: Mask | None) -> Column:
        seconds, nanos = self._fields.read(cursor)
        return timestamps(cursor, seconds, nanos, present)


def _spans(kind: ProtoType, schema: ParsedMessage) -> _Spans:
    match kind:
        case Scalar(name):
            return _Bytes(name)
        case Message():
            return _Struct(kind, schema)
        case Wrapper():
            return _Wrapper(kind, schema)
        case Timestamp():
            return _Timestamp(kind, schema)
        case JsonText():
            return _Json(kind, schema)
    raise TypeError(f"{kind} has no length")


class _FieldReader(ABC):
    """Reads one field of all messages from its parts."""

    wires: tuple[int, ...] = (LENGTH,)

    @abstractmethod
    def read(self, cursor: Cursor, parts: Parts) -> Column: ...


def _field(field: Field, schema: ParsedMessage) -> _FieldReader:
    if isinstance(field.type, Map):
        return _Map(field.type, schema)
    if wire_of(field.type) == LENGTH:
        return _SpanList(field, schema) if field.repeated else _Span(field, schema)
    return _NumberList(field) if field.repeated else _Number(field)


class _Numbers(_FieldReader):
    def __init__(self, field: Field) -> None:
        assert isinstance(field.type, Scalar | Enum)
        self.name = field.type.name if isinstance(field.type, Scalar) else ENUM
        self._enum = EnumNames(field.type.names) if isinstance(field.type, Enum) else None
        self._presence = field.presence
        self.wires = (wire_of(field.type),)

    def column(self, found: np.ndarray, present: Mask | None) -> Column:
        return numbers_column(self.name, found, present) if self._enum is None else self._enum.column(found, present)


class _Number(_Numbers):
    def read(self, cursor: Cursor, parts: Parts) -> Column:
        if len(parts) == 1 and parts[0].rows is None:
            return self.column(values(self.name, cursor, parts[0]), None)
        found, present = np.zeros(len(cursor), dtype_of(self.name)), np.zeros(len(cursor), np.bool_)
        for part in parts:  # the last value of a message counts
            rows = slice(None) if part.rows is None else part.rows
            found[rows], present[rows] = values(self.name, cursor, part), True
        return self.column(found, present if self._presence else None)


class _NumberList(_Numbers):
    def __init__(self, field: Field) -> None:
        super().__init__(field)
        self.wires = (*self.wires, LENGTH)

    def read(self, cursor: Cursor, parts: Parts) -> Column:
        found = [unpacked(self.name, cursor, part) for part in parts]
        if not found:
            found = [(np.empty(0, np.int64), np.empty(0, dtype_of(self.name)))]
        _, bounds, order = _lists([owners for owners, _ in found], len(cursor))
        items = np.concatenate([items for _, items in found])
        column = self.column(items if order is None else items[order], None)
        return pa.ListArray.from_arrays(bounds, column)


def _lists(owners: list[Ints], count: int) -> tuple[Ints, Column, Ints | None]:
    """The message of each item, where the items of each message begin, and the order that brings them there."""
    every = _joined(owners)
    bounds = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(every, minlength=count), out=bounds[1:])
    if len(owners) < 2:
        return every, pa.array(bounds), None
    order = np.argsort(every, kind="stable")
    return every[order], pa.array(bounds), order


def _joined(parts: list[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


class _Span(_FieldReader):
    def __init__(self, field: Field, schema: ParsedMessage) -> None:
        self._value = _spans(field.type, schema)
        self._is_message = not isinstance(field.type, Scalar)
        self._presence = field.presence
        self._type = column_type(field.type)

    def read(self, cursor: Cursor, parts: Parts) -> Column:
        if not parts and self._presence:
            return pa.nulls(len(cursor), self._type)
        if len(parts) == 1 and parts[0].rows is None:
            return self._value.read(cursor.inside(None, parts[0].begin, parts[0].end), None)
        if self._is_message:
            _refuse_repeated(parts, cursor)
        begin, end, present = cursor.begin.copy(), cursor.begin.copy(), np.zeros(len(cursor), np.bool_)
        for part in parts:  # the last value of a message counts
            rows = slice(None) if part.rows is None else part.rows
            begin[rows], end[rows], present[rows] = part.begin, part.end, True
        if not self._presence:
            return self._value.read(cursor.inside(None, begin, end), None)
        chosen = np.flatnonzero(present)
        if 2 * len(chosen) > len(cursor):
            return self._value.read(cursor.inside(None, begin, end), present)
        # Few messages have it: the others need not be looked at.
        found = self._value.read(cursor.inside(chosen, begin[chosen], end[chosen]), None)
        return found.take(pa.array(np.cumsum(present) - 1, mask=~present))


class _SpanList(_FieldReader):
    def __init__(self, field: Field, schema: ParsedMessage) -> None:
        self._value = _spans(field.type, schema)

    def read(self, cursor: Cursor, parts: Parts) -> Column:
        inside, bounds = _items(cursor, parts)
        return pa.ListArray.from_arrays(bounds, self._value.read(inside, None))


def _items(cursor: Cursor, parts: Parts) -> tuple[Cursor, Column]:
    """The items of lists, and where the items of each message begin."""
    owners, bounds, order = _lists([part.owners(len(cursor)) for part in parts], len(cursor))
    begin, end = _joined([part.begin for part in parts]), _joined([part.end for part in parts])
    if order is not None:
        begin, end = begin[order], end[order]
    return cursor.inside(owners, begin, end), bounds


class _Map(_FieldReader):
    def __init__(self, kind: Map, schema: ParsedMessage) -> None:
        self._entry = _Fields(kind.entry, schema)
        self._type = column_type(kind)

    def read(self, cursor: Cursor, parts: Parts) -> Column:
        inside, bounds = _items(cursor, parts)
        keys, found = self._entry.read(inside)
        keys = key_column(keys)
        if len(parts) > 1:
            self._refuse_equal_keys(inside, keys, bounds.to_numpy())
        return pa.MapArray.from_arrays(bounds, keys, found, type=self._type)

    def _refuse_equal_keys(self, inside: Cursor, keys: Column, bounds: Ints) -> None:
        """The last entry with a key counts: messages with one key twice are read alone."""
        codes = keys.dictionary_encode().indices.to_numpy()
        owners = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        pairs = owners * (int(codes.max(initial=0)) + 1) + codes
        order = np.argsort(pairs, kind="stable")
        same = pairs[order][1:] == pairs[order][:-1]
        if same.any():
            inside.refuse(order[1:][same])
