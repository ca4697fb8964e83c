"""Reads Avro's plain encodings from all records of a batch at once: one position for each record.

A record that is cut runs beyond its end, and from there on reads bytes of its neighbours. Positions never go back, so
at the end it is known by its position, and what was read for it is thrown away.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from s3sink_job.columns.types import Column
from s3sink_job.decode.record_bytes import PADDING, Bytes, Ints, Mask, Records
from s3sink_job.decode.utf8 import utf8
from s3sink_job.decode.varints import varints

SLACK = PADDING - 16
"""How far positions may be behind the last byte: a number of eight or ten bytes can still be read there."""
SHORT = np.array([byte >> 1 ^ -(byte & 1) for byte in range(0x80)])
"""The numbers of one byte."""


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
        word, length, wrong = varints(self.records.data, self.records.unaligned("<u8"), at)
        if len(wrong):
            too_long = np.zeros(len(self), np.bool_)
            too_long[wrong if most else chosen[wrong]] = True
            self.refuse(too_long, present)
        if not most:
            word, length = _placed(word, chosen, first), _placed(length, chosen, np.ones(len(self), np.int64))
        self.skip(length, present)
        value = word.view(np.int64)
        return (value >> 1 & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1)

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
        """The bytes of each record from `begin` to `end`, as far as the record has them."""
        return self.records.cut(np.minimum(begin, self.end), np.minimum(end, self.end), null)

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
