"""The distinct values of a few bytes of each record, found for all records of a batch at once."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.types import Column
from s3sink_job.decode.record_bytes import Ints, Mask, Records

Widths: TypeAlias = Ints | int
"""One for each record, or the one of all."""
NUMBER = 7
"""The most bytes that are compared as a number, which must not be negative."""


class DistinctBytes(NamedTuple):
    values: list[bytes | None]
    """In the order in which they come first; None for records that are left out."""
    codes: Ints
    """The place of each record's value."""


def distinct_bytes(records: Records, at: Ints, widths: Widths, wrong: Mask) -> DistinctBytes:
    """Of the bytes that begin at these positions. Records that are wrong are left out."""
    if wrong.all():
        return DistinctBytes([None], np.zeros(len(wrong), np.int64))
    width = same_width(widths, wrong)
    if width is None:
        return _encoded(first_bytes(records, at, np.where(wrong, 0, widths)), wrong)
    if width > NUMBER:
        found = np.ascontiguousarray(records.unaligned(f"V{width}")[at]).view(np.uint8).reshape(-1, width)
        if not wrong.any() and (found == found[0]).all():
            return DistinctBytes([found[0].tobytes()], np.zeros(len(at), np.int64))
        return _encoded(pa.Array.from_buffers(pa.binary(width), len(at), [None, pa.py_buffer(found)]), wrong)
    if not width:
        return DistinctBytes([b"", None], wrong.astype(np.int64))
    numbers = records.unaligned("<i8")[at] & (256**width - 1)
    numbers[wrong] = -1
    if (numbers == numbers[0]).all():
        distinct, codes = [int(numbers[0])], np.zeros(len(numbers), np.int64)
    else:
        encoded = pa.array(numbers).dictionary_encode()
        distinct, codes = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
    return DistinctBytes([n.to_bytes(width, "little") if n >= 0 else None for n in distinct], codes)


def same_width(widths: Widths, wrong: Mask) -> int | None:
    """That of all records that are not wrong, if they share one."""
    if isinstance(widths, int):
        return widths
    good = widths[~wrong] if wrong.any() else widths
    if not len(good):
        return 0
    return int(good[0]) if (good == good[0]).all() else None


def without_first_bytes(records: Records, widths: Ints) -> Column:
    """The records, each without its own number of bytes. Of a shorter record nothing is left."""
    widths = np.minimum(widths, np.diff(records.bounds))
    kept = np.ones(records.size, np.bool_)
    kept[_places(records.bounds[:-1], widths)] = False
    bounds = records.bounds.copy()
    bounds[1:] -= np.cumsum(widths)
    return _binary(bounds, records.data[: records.size][kept])


def first_bytes(records: Records, at: Ints, widths: Ints) -> Column:
    """The bytes that begin at these positions, each its own number of them."""
    bounds = np.zeros(len(widths) + 1, np.int64)
    np.cumsum(widths, out=bounds[1:])
    return _binary(bounds, records.data[_places(at, widths)])


def _places(at: Ints, widths: Ints) -> Ints:
    """Of all bytes that begin at these positions."""
    before = np.cumsum(widths) - widths
    places: Ints = np.arange(int(widths.sum())) + np.repeat(at - before, widths)
    return places


def _binary(bounds: Ints, data: np.ndarray) -> Column:
    buffers = [None, pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(bounds) - 1, buffers)


def _encoded(column: Column, wrong: Mask) -> DistinctBytes:
    if wrong.any():
        column = pc.if_else(pa.array(wrong), pa.scalar(None, column.type), column)
    encoded = column.dictionary_encode()
    values = encoded.dictionary.to_pylist()
    return DistinctBytes([*values, None], encoded.indices.fill_null(len(values)).to_numpy().astype(np.int64))


def paired(first: Ints, second: Ints, seconds: int) -> tuple[list[tuple[int, int]], Ints]:
    """The distinct pairs of two codes, and which one each record has. `seconds` is how many second codes there are."""
    encoded = pa.array(first * seconds + second).dictionary_encode()
    pairs = [divmod(pair, seconds) for pair in encoded.dictionary.to_pylist()]
    return pairs, encoded.indices.to_numpy()
