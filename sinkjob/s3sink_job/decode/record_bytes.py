"""The bytes of all records of a batch in one array, for reading a little of each at once."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from s3sink_job.columns.types import Column

Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Bytes: TypeAlias = npt.NDArray[np.uint8]
PADDING = 64
"""Bytes behind the last record that may be read, and are thrown away."""


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
        self.data: Bytes = np.empty(self.size + PADDING, np.uint8)
        self.data[self.size :] = 0
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

    def enclosed(self, skip: int, first: bytes, last: bytes) -> bool:
        """Whether each record, without its first `skip` bytes, begins with one byte and ends with another one."""
        begin, end = self.bounds[:-1] + skip, self.bounds[1:] - 1
        whole = (begin < end) & (self.data[begin] == ord(first)) & (self.data[end] == ord(last))
        return bool(whole.all())

    def with_blank_frames(self, skip: int) -> Column:
        """The records with a line break and spaces in place of the first `skip` bytes of each.

        They are replaced here, too: whoever calls it has read the frames.
        """
        begin = self.bounds[:-1]
        self.unaligned(f"S{skip}")[begin] = b"\n".ljust(skip)
        buffers = [None, pa.py_buffer(self.bounds.astype(np.int32)), pa.py_buffer(self.data[: self.size])]
        return pa.Array.from_buffers(pa.binary(), len(begin), buffers)

    def cut(self, begin: Ints, end: Ints, null: Mask | None) -> Column:
        """The bytes between these positions, which never go back. Null where `null` is true.

        It is one array over the whole batch, with a value at every second place and the bytes between them at the
        others.
        """
        count = len(begin)
        bounds = np.empty(2 * count + 1, np.int32)
        bounds[0:-1:2], bounds[1::2] = begin, end
        bounds[-1] = bounds[-2] if count else 0
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(self.data)]
        every = pa.Array.from_buffers(pa.binary(), 2 * count, buffers)
        return every.take(_evens(count) if null is None else pa.array(2 * np.arange(count), mask=null))


@lru_cache(maxsize=4)
def _evens(count: int) -> Column:
    return pa.array(np.arange(0, 2 * count, 2))
