"""Reads Avro's plain encodings from all records of a batch at once: one position for each record.

A record that is cut runs beyond its end, and from there on reads bytes of its neighbours. Positions never go back, so
at the end it is known by its position, and what was read for it is thrown away.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from s3sink_job.columns.types import Column
from s3sink_job.decode.utf8 import utf8

Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Bytes: TypeAlias = npt.NDArray[np.uint8]
PADDING = 32
"""Bytes behind the last record that may be read, and are thrown away."""
LONGEST_NUMBER = 10
"""Bytes of a number of 64 bits."""
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

    def unaligned(self, dtype: str) -> np.ndarray:
        """The bytes as numbers that begin at every byte."""
        kind = np.dtype(dtype)
        return np.ndarray((self.size + PADDING - kind.itemsize + 1,), kind, self.data.data, strides=(1,))


class Cursor:
    """Positions in some of the records. Methods take a mask of the records that hold the value; None means all."""

    def __init__(self, records: Records, rows: Ints, at: Ints, end: Ints) -> None:
        self.records, self.rows, self.at, self.end = records, rows, at, end

    def __len__(self) -> int:
        return len(self.at)

    def some(self, chosen: Ints) -> Cursor:
        """A cursor for some of the records; `follow` brings the positions back."""
        return Cursor(self.records, self.rows[chosen], self.at[chosen], self.end[chosen])

    def follow(self, chosen: Ints, other: Cursor) -> None:
        self.at[chosen] = other.at

    @property
    def beyond(self) -> Mask:
        """The records that are read beyond their end."""
        return self.at > self.end

    def refuse(self, which: Mask, present: Mask | None = None) -> None:
        which = which if present is None else which & present
        self.records.refused[self.rows[which]] = True

    def skip(self, steps: Ints | int, present: Mask | None) -> None:
        """Behind the last byte all positions are the same, and wrong."""
        steps = steps if present is None else steps * present
        self.at = np.minimum(self.at + steps, self.records.size + 1)

    def number(self, present: Mask | None = None) -> Ints:
        """A number of up to 64 bits. For most numbers one look at eight bytes is enough."""
        if not len(self):
            return self.at
        first = self.records.data[self.at]
        if first.max() < 0x80:
            self.skip(1, present)
            value = first.astype(np.int64)
        else:
            value = self._long_number(present)
        return (value >> 1 & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1)

    def _long_number(self, present: Mask | None) -> Ints:
        word = self.records.unaligned("<u8")[self.at]
        ends = ~word & LAST_BYTES
        below = (ends & (~ends + U(1))) - U(1)
        length = (np.bitwise_count(below).astype(np.int64) + 1) >> 3
        word &= below & SEVEN_BITS
        for upper, lower, shift in STEPS:
            word = (word & upper) >> shift | word & lower
        longer = np.flatnonzero(ends == 0)
        if len(longer):
            word[longer], length[longer] = self._very_long_numbers(longer, present)
        self.skip(length, present)
        return word.view(np.int64)

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

    def count(self, most: int, present: Mask | None) -> Ints:
        """A number from 0 to `most - 1`; 0 where it is refused."""
        value = self.number(present)
        wrong = (value < 0) | (value >= most)
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
        return self._cut(begin, begin + length, None if present is None else ~present)

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
        return every.take(pa.array(np.arange(0, 2 * len(self), 2), mask=null))

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
