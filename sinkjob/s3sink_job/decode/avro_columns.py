"""Avro records as Arrow columns, all records of a schema at once, field by field.

Rows that cannot be read so are only named: a bad record, and one with a very long list, which is faster to read alone.
`avro_rows.py` reads these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import pyarrow as pa

from s3sink_job.columns.types import Column
from s3sink_job.decode.avro_cursor import Cursor
from s3sink_job.decode.avro_schema import Array, AvroType, Enum, Fixed, Map, Primitive, Record, Recursive, Union
from s3sink_job.decode.avro_types import plain_type
from s3sink_job.decode.record_bytes import Ints, Mask, Records

LONG_LIST, FEW = 64, 32
"""After so many items of a list, records are read alone if there are only a few with more items."""
MOST_EMPTY = 16
"""Items that take no bytes: a record with more of them is read alone."""


class Reader(ABC):
    """Reads one type from all records of a cursor."""

    def __init__(self, kind: AvroType) -> None:
        self.type = plain_type(kind)

    least = 1
    """Bytes of the shortest value."""

    @abstractmethod
    def read(self, cursor: Cursor, present: Mask | None) -> Column:
        """Null where `present` is false; there the position stays."""


def reader_of(kind: AvroType) -> Reader | None:
    """None for a recursive type."""
    if _holds_recursion(kind):
        return None
    return _reader(kind)


def read_columns(reader: Reader, column: Column, skip: int, records: Records | None = None) -> tuple[Column, Mask]:
    """The values behind the first `skip` bytes, and a mask of the rows that have to be read alone."""
    cursor = cursor_over(records or Records(column), skip)
    return reader.read(cursor, None), unreadable(cursor)


def cursor_over(records: Records, skip: int) -> Cursor:
    """All records, from behind their first `skip` bytes."""
    begin = np.minimum(records.bounds[:-1] + skip, records.size + 1)
    return Cursor(records, np.arange(len(begin)), begin, records.bounds[1:])


def unreadable(cursor: Cursor) -> Mask:
    """The records that have to be read alone, once all fields are read."""
    cut: Mask = cursor.at != cursor.end
    return cursor.records.refused | cut


def _holds_recursion(kind: AvroType) -> bool:
    match kind:
        case Recursive():
            return True
        case Array(inner) | Map(inner):
            return _holds_recursion(inner)
        case Record(_, fields):
            return any(_holds_recursion(field.type) for field in fields)
        case Union(branches):
            return any(_holds_recursion(branch) for branch in branches)
    return False


def _reader(kind: AvroType) -> Reader:
    match kind:
        case Primitive("null"):
            return _Null(kind)
        case Primitive("bytes" | "string"):
            return _Bytes(kind)
        case Primitive():
            return _Number(kind)
        case Fixed():
            return _Fixed(kind)
        case Enum():
            return _Enum(kind)
        case Array():
            return _List(kind)
        case Map():
            return _Map(kind)
        case Record():
            return _Struct(kind)
        case Union() if len(kind.values) > 1:
            return _Branches(kind)
        case Union():
            return _Optional(kind)
        case Recursive():
            raise TypeError(f"{kind.name} is recursive")


def _nulls(present: Mask | None) -> Mask | None:
    return None if present is None else ~present


class _Null(Reader):
    least = 0

    def read(self, cursor: Cursor, present: Mask | None) -> Column:
        return pa.nulls(len(cursor))


class _Number(Reader):
    def __init__(self, kind: Primitive) -> None:
        super().__init__(kind)
        self._name = kind.name
        self.least = {"float": 4, "double": 8}.get(kind.name, 1)

    def read(self, cursor: Cursor, present: Mask | None) -> Column:
        match self._name:
            case "boolean":
                values: np.ndarray = cursor.boolean(present)
            case "int":
                values = cursor.int32(present)
            case "long":
                values = cursor.number(present)
            case "float":
                values = cursor.float("<f4", present)
            case _:
                values = cursor.float("<f8", present)
        return pa.array(values, self.type, mask=_nulls(present))


class _Bytes(Reader):
    def read(self, cursor: Cursor, present: Mask | None) -> Column:
        return cursor.text(present) if pa.types.is_string(self.type) else cursor.binary(present)


class _Fixed(Reader):
    def __init__(self, kind: Fixed) -> None:
        super().__init__(kind)
        self.least = kind.size

    def read(self, cursor: Cursor, present: Mask | None) -> Column:
        return cursor.fixed(self.least, present)


class _Enum(Reader):
    def __init__(self, kind: Enum) -> None:
        super().__init__(kind)
        self._symbols = pa.array(kind.symbols, pa.string())

    def read(self, cursor: Cursor, present: Mask | None) -> Column:
        codes = cursor.count(len(self._symbols), present)
        if present is not None:
            codes = codes * present
        return self._symbols.take(pa.array(codes, mask=_nulls(present)))


class _Struct(Reader):
    def __init__(self, kind: Record) -> None:
        super().__init__(kind)
        self._fields = [_reader(field.type) for field in kind.fields]
        self.least = sum(field.least for field in self._fields)

    def read(self, cursor: Cursor, present: Mask | None) -> Column:
        if not self._fields:
            rows = pa.array([{}] * len(cursor), self.type)
            return rows if present is None else rows.take(pa.array(np.arange(len(cursor)), mask=~present))
        columns = [field.read(cursor, present) for field in self._fields]
        return _struct(columns, self.type, present)


def _struct(columns: list[Column], kind: pa.StructType, present: Mask | None) -> Column:
    mask = None if present is None else pa.array(~present)
    return pa.StructArray.from_arrays(columns, fields=list(kind), mask=mask)


class _Optional(Reader):
    """A union of null and at most one other type, or of one type alone."""

    def __init__(self, kind: Union) -> None:
        super().__init__(kind)
        self._branches = len(kind.branches)
        self._value = [(number, _reader(branch)) for number, branch in kind.values]

    def read(self, cursor: Cursor, present: Mask | None) -> Column:
        branch = cursor.count(self._branches, present)
        if not self._value:
            return pa.nulls(len(cursor))
        number, value = self._value[0]
        chosen = branch == number
        if present is not None:
            chosen &= present
        return value.read(cursor, None if chosen.all() else chosen)


class _Branches(Reader):
    """A union of several types: a struct with a field for each."""

    def __init__(self, kind: Union) -> None:
        super().__init__(kind)
        self._branches = len(kind.branches)
        self._values = [(number, _reader(branch)) for number, branch in kind.values]

    def read(self, cursor: Cursor, present: Mask | None) -> Column:
        branch = cursor.count(self._branches, present)
        columns = []
        filled = np.zeros(len(cursor), np.bool_)
        for number, value in self._values:
            chosen = branch == number
            if present is not None:
                chosen &= present
            filled |= chosen
            columns.append(value.read(cursor, chosen))
        return _struct(columns, self.type, filled)


class _Repeated(Reader):
    """Blocks of items: each block begins with the number of its items, and the last one has none."""

    least_item: int

    @abstractmethod
    def read_items(self, cursor: Cursor) -> tuple[Column, ...]:
        """One item of each record."""

    def items(self, cursor: Cursor, present: Mask | None) -> tuple[pa.Array, list[Column]]:
        """Where the items of each record begin, and the items of all records."""
        active = np.arange(len(cursor)) if present is None else np.flatnonzero(present)
        found: list[tuple[Ints, tuple[Column, ...]]] = []
        steps = 0
        while len(active):
            left = self._block(cursor, active)
            active, left = active[left > 0], left[left > 0]
            rest = active
            while len(rest):
                if steps >= LONG_LIST and len(rest) <= FEW:
                    cursor.records.refused[cursor.rows[rest]] = True
                    active = np.setdiff1d(active, rest)
                    break
                at = cursor.some(rest)
                found.append((rest, self.read_items(at)))
                cursor.follow(rest, at)
                left, steps = left - 1, steps + 1
                going = (left > 0) & ~at.beyond
                rest, left = rest[going], left[going]
            active = active[~cursor.beyond[active]]
        return self._in_order(found, len(cursor))

    def _block(self, cursor: Cursor, active: Ints) -> Ints:
        """The items of the next block of each record; 0 behind the last."""
        at = cursor.some(active)
        count = at.number()
        sized = count < 0
        if sized.any():
            at.number(sized)
            count = np.abs(count)
        most = (at.end - at.at) // self.least_item if self.least_item else np.full(len(at), MOST_EMPTY)
        wrong = (count > most) | (count < 0)
        if wrong.any():
            at.refuse(wrong)
            count[wrong] = 0
        cursor.follow(active, at)
        return count

    def _in_order(self, found: list[tuple[Ints, tuple[Column, ...]]], count: int) -> tuple[pa.Array, list[Column]]:
        """Items were read the first of all records, then the second of all, and so on."""
        if not found:
            at = Cursor(Records(pa.array([], pa.binary())), *(np.empty(0, np.int64) for _ in range(3)))
            return pa.array(np.zeros(count + 1, np.int32)), list(self.read_items(at))
        owners = np.concatenate([rows for rows, _ in found])
        order = pa.array(np.argsort(owners, kind="stable"))
        bounds = np.zeros(count + 1, np.int32)
        np.cumsum(np.bincount(owners, minlength=count), out=bounds[1:])
        columns = zip(*(items for _, items in found), strict=True)
        return pa.array(bounds), [pa.concat_arrays(parts).take(order) for parts in columns]


class _List(_Repeated):
    def __init__(self, kind: Array) -> None:
        super().__init__(kind)
        self._item = _reader(kind.items)
        self.least_item = self._item.least

    def read_items(self, cursor: Cursor) -> tuple[Column, ...]:
        return (self._item.read(cursor, None),)

    def read(self, cursor: Cursor, present: Mask | None) -> Column:
        bounds, (items,) = self.items(cursor, present)
        mask = None if present is None else pa.array(~present)
        return pa.ListArray.from_arrays(bounds, items, type=self.type, mask=mask)


class _Map(_Repeated):
    def __init__(self, kind: Map) -> None:
        super().__init__(kind)
        self._value = _reader(kind.values)
        self.least_item = 1 + self._value.least

    def read_items(self, cursor: Cursor) -> tuple[Column, ...]:
        # A key that is not UTF-8 is null, and its record is refused; an Arrow map takes no null key.
        return cursor.text(None).fill_null(""), self._value.read(cursor, None)

    def read(self, cursor: Cursor, present: Mask | None) -> Column:
        bounds, (keys, values) = self.items(cursor, present)
        mask = None if present is None else pa.array(~present)
        return pa.MapArray.from_arrays(bounds, keys, values, type=self.type, mask=mask)
