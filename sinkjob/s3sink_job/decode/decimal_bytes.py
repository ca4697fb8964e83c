"""Decimals from their unscaled numbers as big-endian bytes, whole columns at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.types import Column

WIDTH = 16
WORD = 2**64


class NotADecimal(ValueError):
    """Some value has no bytes, or more digits than the type."""


def decimals(raw: Column, kind: pa.Decimal128Type) -> Column:
    """Two's complement, as Java's BigInteger writes it. Null stays null."""
    present = raw.is_valid().to_numpy(zero_copy_only=False)
    _, offsets, data = raw.buffers()
    starts = np.frombuffer(offsets, np.int32)[raw.offset : raw.offset + len(raw) + 1]
    content = np.frombuffer(data or b"", np.uint8)
    sizes = np.diff(starts)
    numbers = np.zeros((len(raw), WIDTH), np.uint8)
    for size in np.unique(sizes[present]).tolist():
        if not 0 < size <= WIDTH:
            raise NotADecimal(f"{size} bytes")
        rows = np.flatnonzero(present & (sizes == size))
        cells = content[starts[rows][:, None] + np.arange(size)]
        numbers[rows, :size] = cells[:, ::-1]
        numbers[rows[cells[:, 0] >= 0x80], size:] = 0xFF
    _check(numbers, kind.precision)
    found = pa.Array.from_buffers(kind, len(raw), [None, pa.py_buffer(numbers)])
    return pc.if_else(raw.is_valid(), found, pa.scalar(None, kind)) if raw.null_count else found


def _check(numbers: np.ndarray[tuple[int, int], np.dtype[np.uint8]], digits: int) -> None:
    low, high = numbers.view("<u8")[:, 0], numbers.view("<i8")[:, 1]
    above, below = divmod(10**digits, WORD), divmod(-(10**digits), WORD)
    too_high = (high > above[0]) | ((high == above[0]) & (low >= above[1]))
    too_low = (high < below[0]) | ((high == below[0]) & (low <= below[1]))
    if (too_high | too_low).any():
        raise NotADecimal(f"more than {digits} digits")
