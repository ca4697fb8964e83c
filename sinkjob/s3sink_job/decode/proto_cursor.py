"""Finds the fields of Protobuf messages in all records of a batch at once.

Each step takes the lowest tag that comes next in any record, and passes over this field in all records that have it
next. Serializers write fields in the order of their numbers, so there are about as many steps as fields. Any other
order is read, too, in more steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import numpy as np

from s3sink_job.columns.types import Column
from s3sink_job.decode.proto_wire import FIXED32, FIXED64, LENGTH, VARINT
from s3sink_job.decode.record_bytes import Ints, Mask, Records
from s3sink_job.decode.varints import Words, varints

DONE = np.int64(2**62)
"""The next tag of a message that is read to its end."""
LONG, FEW = 64, 32
"""After so many steps more than there are fields, records are read alone if a step has only a few of them."""
LARGEST_TAG = 2**32


UnknownField: TypeAlias = tuple[str, int, Ints]
"""A field that the schema does not have: the name of the message, the number of the field, and the records with it."""


class Part(NamedTuple):
    """One field in some of the messages: its numbers, or where its bytes are."""

    rows: Ints | None
    """The messages; None for all of them."""
    wire: int
    begin: Ints
    end: Ints
    numbers: Words | None

    def owners(self, count: int) -> Ints:
        return np.arange(count) if self.rows is None else self.rows


class Cursor:
    """Messages of a batch: the records themselves, or messages inside of them."""

    def __init__(self, records: Records, rows: Ints, begin: Ints, end: Ints, unknown: list[UnknownField]) -> None:
        """`rows` are the records that hold the messages."""
        self.records, self.rows, self.begin, self.end, self.unknown = records, rows, begin, end, unknown

    def __len__(self) -> int:
        return len(self.begin)

    def inside(self, owners: Ints | None, begin: Ints, end: Ints) -> Cursor:
        """Messages that are inside of these."""
        rows = self.rows if owners is None else self.rows[owners]
        return Cursor(self.records, rows, begin, end, self.unknown)

    def refuse(self, which: Mask | Ints) -> None:
        self.records.refused[self.rows[which]] = True

    def bytes(self, present: Mask | None) -> Column:
        """The messages as they are."""
        return self.records.cut(self.begin, self.end, None if present is None else ~present)

    def numbers(self, at: Ints) -> tuple[Words, Ints | int, Ints]:
        """Like `varints`. Most numbers have one byte."""
        data = self.records.data
        first = data[at]
        if len(first) and first.max() >= 0x80:
            return varints(data, self.records.unaligned("<u8"), at)
        return first.astype(np.uint64), 1, np.empty(0, np.int64)

    def fields(self, places: Mapping[int, int], name: str) -> dict[int, list[Part]]:
        """The parts of each field, in the order in which they come. `places` are the fields by tag."""
        found: dict[int, list[Part]] = {place: [] for place in places.values()}
        walk = _Walk(self, LONG + 2 * len(found))
        while (part := walk.step()) is not None:
            tag, fields = part
            place = places.get(tag)
            if place is None:
                self.unknown.append((name, tag >> 3, self.rows[fields.owners(len(self))]))
            else:
                found[place].append(fields)
        return found


class _Walk:
    """Goes through all messages of a cursor."""

    def __init__(self, cursor: Cursor, most_steps: int) -> None:
        self._cursor, self._left = cursor, most_steps
        self._tags = np.full(len(cursor), DONE)
        self._at = cursor.begin.copy()
        """The position behind the next tag."""
        self._set_next(None, cursor.begin)

    def step(self) -> tuple[int, Part] | None:
        """The lowest of the next tags, with the fields that have it. None at the end."""
        while len(self._tags) and (lowest := self._tags.min()) != DONE:
            rows = None if lowest == self._tags.max() else np.flatnonzero(self._tags == lowest)
            part = self._part(int(lowest), rows)
            if part is not None:
                return int(lowest), part
        return None

    def _part(self, tag: int, rows: Ints | None) -> Part | None:
        """None if all of these messages were refused."""
        self._left -= 1
        wire = tag & 7
        count = len(self._tags) if rows is None else len(rows)
        rare = self._left < 0 and count <= FEW
        if rare or tag < 8 or wire not in (VARINT, FIXED64, LENGTH, FIXED32):
            self._stop(np.arange(count) if rows is None else rows)
            return None
        begin, last = (self._at, self._cursor.end) if rows is None else (self._at[rows], self._cursor.end[rows])
        numbers: Words | None = None
        if wire in (VARINT, LENGTH):
            numbers, length, wrong = self._cursor.numbers(begin)
            end = begin + length
            if wire == LENGTH:
                begin = end
                # No length may reach beyond the bytes of the batch, so that positions stay within it.
                end = begin + np.minimum(numbers, np.uint64(self._cursor.records.size + 1)).astype(np.int64)
        else:
            wrong = np.empty(0, np.int64)
            end = begin + (8 if wire == FIXED64 else 4)
        bad = end > last
        bad[wrong] = True
        if bad.any():
            rows = np.arange(count) if rows is None else rows
            self._stop(rows[bad])
            good = np.flatnonzero(~bad)
            rows, begin, end = rows[good], begin[good], end[good]
            numbers = None if numbers is None else numbers[good]
            if not len(good):
                return None
        self._set_next(rows, end)
        return Part(rows, wire, begin, end, numbers)

    def _stop(self, rows: Ints) -> None:
        self._cursor.refuse(rows)
        self._tags[rows] = DONE

    def _set_next(self, rows: Ints | None, at: Ints) -> None:
        """Reads the tags at these positions."""
        last = self._cursor.end if rows is None else self._cursor.end[rows]
        numbers, length, wrong = self._cursor.numbers(at)
        tags = numbers.astype(np.int64)
        if len(wrong) or (len(tags) and (tags.max() >= LARGEST_TAG or tags.min() < 0)):
            tags[(tags >= LARGEST_TAG) | (tags < 0)] = 0
            tags[wrong] = 0  # no tag at all: such a message is refused with the next step
        ended = at >= last
        if ended.any():
            tags[ended] = DONE
        if rows is None:
            self._tags, self._at = tags, at + length
        else:
            self._tags[rows], self._at[rows] = tags, at + length
