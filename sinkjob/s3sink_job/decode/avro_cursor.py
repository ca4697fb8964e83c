"""Reads Avro's plain encodings from all records of a batch at once: one position for each record.

A record that is cut runs beyond its end, and from there on reads bytes of its neighbours. Positions never go back, so
at the end it is known by its position, and what was read for it is thrown away.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from s3sink_job.columns.types import Column
from s3sink_job.decode.utf8 import utf8

Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Bytes: TypeAlias = npt.NDArray[np.uint8]
PADDING = 64
"""Bytes behind the last record that may be read, and are thrown away."""
SLACK = PADDING - 16
"""How far positions may be behind the last byte: a number of eight or ten bytes can still be read there."""
LONGEST_NUMBER = 10
"""Bytes of a number of 64 bits."""
SHORT = np.array([byte >> 1 ^ -(byte & 1) for byte in range(0x80)])
"""The numbers of one byte."""
U = np.uint64
LAST_BYTES = U(0x8080808080808080)
SEVEN_BITS = U(0x7F7F7F7F7F7F7F7F)
STEPS = (
    (U(0x7F007F007F007F00), U(0x007F007F007F007F), U(1)),
    (U(0x3FFF00003FFF0000), U(0x00003FFF00003FFF), U(2)),
    (U(0x0FFFFFFF00000000), U(0x000000000FFFFFFF), U(4)),
)
"""Each step moves groups of 7, 14 and 28 bits together."""


class Records:
    """The bytes of a batch, with room to read a little beyond them. `refused` collects the rows that cannot be read."""

    def __init__(self, column: Column) -> None:
        """A column of `binary`; what null rows hold does not matter."""
        offsets, data = column.buffers()[1:]
        count = len(column)
        self.bounds: Ints = np.frombuffer(offsets, np.int32, count + 1, 4 * column.offset).astype(np.int64)
        # Only what these rows hold: a slice of a large batch must not copy all of it.
        start, end = (int(self.bounds[0]), int(self.bounds[-1])) if count else (0, 0)
        self.bounds -= start
        self.size = end - start
        self.data: Bytes = np.zeros(self.size + PADDING, np.uint8)
        if self.size:
            self.data[: self.size] = np.frombuffer(data, np.uint8, self.size, start)
        self.refused: Mask = np.zeros(count, np.bool_)
        self._unaligned: dict[str, np.ndarray] = {}

    def unaligned(self, dtype: str) -> np.ndarray:
        """The bytes as numbers that begin at every byte."""
        if dtype not in self._unaligned:
            kind = np.dtype(dtype)
            shape = (self.size + PADDING - kind.itemsize + 1,)
            self._unaligned[dtype] = np.ndarray(shape, kind, self.data.data, strides=(1,))
        return self._unaligned[dtype]


class Cursor:
    """Positions in some of the records. Methods take a mask of the records that hold the value; None means all."""

    def __init__(self, records: Records, rows: Ints, at: Ints, end: Ints) -> None:
        self.records, self.rows, self.at, self.end = records, rows, at, end
        self._beyond = 1
        """How far positions can be behind the last byte."""

    def __len__(self) -> int:
        return len(self.at)

    def some(self, chosen: Ints) -> Cursor:
        """A cursor for some of the records; `follow` brings the positions back."""
        other = Cursor(self.records, self.rows[chosen], self.at[chosen], self.end[chosen])
        other._beyond = self._beyond
        return other

    def follow(self, chosen: Ints, other: Cursor) -> None:
        self.at[chosen] = other.at
        self._beyond = max(self._beyond, other._beyond)

    @property
    def beyond(self) -> Mask:
        """The records that are read beyond their end."""
        return self.at > self.end

    def refuse(self, which: Mask, present: Mask | None = None) -> None:
        which = which if present is None else which & present
        self.records.refused[self.rows[which]] = True

    def skip(self, steps: Ints | int, present: Mask | None) -> None:
        """Positions behind the last byte are wrong, and are set back before they leave the padding."""
        self.at = self.at + (steps if present is None else steps * present)
        self._beyond = self._beyond + steps if isinstance(steps, int) else PADDING
        if self._beyond > SLACK:
            np.minimum(self.at, self.records.size + 1, out=self.at)
            self._beyond = 1

    def number(self, present: Mask | None = None) -> Ints:
        """A number of up to 64 bits. For most numbers one look at eight bytes is enough."""
        if not len(self):
            return self.at
        first = self._first(present)
        if first.max() < 0x80:
            self.skip(1, present)
            return SHORT[first]
        return self._long_numbers(first, present)

    def _first(self, present: Mask | None) -> Bytes:
        """The next byte of each record; 0 where the value is absent."""
        first = self.records.data[self.at]
        if present is not None:
            first *= present
        return first

    def _long_numbers(self, first: Bytes, present: Mask | None) -> Ints:
        """Numbers of which some have more than one byte."""
        chosen = np.flatnonzero(first >= 0x80)
        at, most = (self.at, True) if 2 * len(chosen) > len(self) else (self.at[chosen], False)
        word = self.records.unaligned("<u8")[at]
        ends = ~word & LAST_BYTES
        below = (ends & (~ends + U(1))) - U(1)
        length = (np.bitwise_count(below).astype(np.int64) + 1) >> 3
        word &= below & SEVEN_BITS
        for upper, lower, shift in STEPS:
            word = (word & upper) >> shift | word & lower
        longer = np.flatnonzero(ends == 0)
        if len(longer):
            rows = longer if most else chosen[longer]
            word[longer], length[longer] = self._very_long_numbers(rows, present)
        if not most:
            word, length = _placed(word, chosen, first), _placed(length, chosen, np.ones(len(self), np.int64))
        self.skip(length, present)
        value = word.view(np.int64)
        return (value >> 1 & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1)

    def _very_long_numbers(self, chosen: Ints, present: Mask | None) -> tuple[npt.NDArray[np.uint64], Ints]:
        """Numbers of more than eight bytes."""
        at, going = self.at[chosen], np.ones(len(chosen), np.bool_)
        word, length = np.zeros(len(chosen), np.uint64), np.zeros(len(chosen), np.int64)
        for byte in range(LONGEST_NUMBER):
            found = self.records.data[at + byte].astype(np.uint64)
            word |= np.where(going, (found & U(0x7F)) << U(7 * byte), U(0))
            length += going
            going &= found >= 0x80
        too_long = np.zeros(len(self), np.bool_)
        too_long[chosen[going | ((length == LONGEST_NUMBER) & (found > 1))]] = True
        self.refuse(too_long, present)
        return word, length

    def int32(self, present: Mask | None) -> npt.NDArray[np.int32]:
        value = self.number(present)
        wrong = (value > 0x7FFFFFFF) | (value < -0x80000000)
        if wrong.any():
            self.refuse(wrong, present)
        return value.astype(np.int32)

    def count(self, most: int, present: Mask | None) -> Ints | Bytes:
        """A number from 0 to `most - 1`; 0 where it is refused."""
        first = self._first(present)
        if not (first & 1).any() and first.max(initial=0) < min(2 * most, 0x80):
            self.skip(1, present)
            return first >> 1
        value = self.number(present)
        wrong = value.view(np.uint64) >= most
        if wrong.any():
            self.refuse(wrong, present)
            value = np.where(wrong, 0, value)
        return value

    def boolean(self, present: Mask | None) -> Mask:
        value = self.records.data[self.at]
        if len(value) and value.max() > 1:
            self.refuse(value > 1, present)
        self.skip(1, present)
        return np.equal(value, 1)

    def float(self, dtype: str, present: Mask | None) -> np.ndarray:
        kind = np.dtype(dtype)
        value = self.records.unaligned(dtype)[self.at]
        self.skip(kind.itemsize, present)
        return value

    def binary(self, present: Mask | None) -> Column:
        """Bytes behind their length. Null where there are none."""
        length = self.number(present)
        if len(length) and length.min() < 0:
            self.refuse(length < 0, present)
            length = np.maximum(length, 0)
        length = np.minimum(length, self.records.size + 1)
        if present is not None:
            length = length * present
        begin = self.at
        self.skip(length, None)
        return self._cut(begin, self.at, None if present is None else ~present)

    def _cut(self, begin: Ints, end: Ints, null: Mask | None) -> Column:
        """The bytes of each record from `begin` to `end`, as far as the record has them.

        It is one array over the whole batch, with a value at every second place and the bytes between them at the
        others.
        """
        bounds = np.empty(2 * len(self) + 1, np.int32)
        bounds[0:-1:2] = np.minimum(begin, self.end)
        bounds[1::2] = np.minimum(end, self.end)
        bounds[-1] = bounds[-2] if len(self) else 0
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(self.records.data)]
        every = pa.Array.from_buffers(pa.binary(), 2 * len(self), buffers)
        return every.take(_evens(len(self)) if null is None else pa.array(2 * np.arange(len(self)), mask=null))

    def text(self, present: Mask | None) -> Column:
        found, faults = utf8(self.binary(present))
        if faults:
            wrong = np.zeros(len(self), np.bool_)
            wrong[list(faults)] = True
            self.refuse(wrong, present)
        return found

    def fixed(self, size: int, present: Mask | None) -> Column:
        """Exactly so many bytes."""
        begin, end = self.at, self.at + size
        self.skip(size, present)
        whole = end <= self.end if present is None else present & (end <= self.end)
        values = self._cut(begin, end, ~whole).drop_null().buffers()[2]
        found = pa.Array.from_buffers(pa.binary(size), int(whole.sum()), [None, values])
        return found if whole.all() else found.take(pa.array(np.cumsum(whole) - 1, mask=~whole))


def _placed(some: np.ndarray, places: Ints, others: np.ndarray) -> np.ndarray:
    found = others.astype(some.dtype)
    found[places] = some
    return found


@lru_cache(maxsize=4)
def _evens(count: int) -> Column:
    return pa.array(np.arange(0, 2 * count, 2))
