"""Columns of Protobuf's scalar types, from the numbers and positions that `proto_cursor.py` found."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.types import Column
from s3sink_job.decode.proto_cursor import Cursor, Part
from s3sink_job.decode.proto_rows import A_SECOND
from s3sink_job.decode.proto_types import SCALARS, TIMESTAMP
from s3sink_job.decode.proto_wire import LENGTH
from s3sink_job.decode.record_bytes import Ints, Mask
from s3sink_job.decode.utf8 import utf8
from s3sink_job.decode.varints import Words

FIXED = {"float": "<f4", "fixed32": "<u4", "sfixed32": "<i4", "double": "<f8", "fixed64": "<u8", "sfixed64": "<i8"}
UNSIGNED_64 = ("uint64", "fixed64")
MOST_SECONDS = 2**63 // A_SECOND - 1
"""So many seconds, and less than one more, fit into 64 bits of nanoseconds."""


def values(name: str, cursor: Cursor, part: Part) -> np.ndarray:
    """The numbers of fields that are not packed; an enum is an `int32`."""
    if name in FIXED:
        return cursor.records.unaligned(FIXED[name])[part.begin]
    assert part.numbers is not None, "a varint has a number"
    return _converted(name, part.numbers)


def _converted(name: str, raw: Words) -> np.ndarray:
    match name:
        case "int32":
            return raw.astype(np.uint32).view(np.int32)
        case "int64":
            return raw.view(np.int64)
        case "uint32":
            return raw.astype(np.uint32)
        case "sint32":
            low = raw.astype(np.uint32)
            return (low >> np.uint32(1)).view(np.int32) ^ -(low & np.uint32(1)).view(np.int32)
        case "sint64":
            return (raw >> np.uint64(1)).view(np.int64) ^ -(raw & np.uint64(1)).view(np.int64)
        case "bool":
            return np.not_equal(raw, 0)
    return raw


def dtype_of(name: str) -> np.dtype:
    return np.dtype(FIXED[name]) if name in FIXED else _converted(name, np.empty(0, np.uint64)).dtype


def unpacked(name: str, cursor: Cursor, part: Part) -> tuple[Ints, np.ndarray]:
    """The items of lists of numbers, packed or not, each with its message."""
    owners = part.owners(len(cursor))
    if part.wire != LENGTH:
        return owners, values(name, cursor, part)
    size = part.end - part.begin
    if name in FIXED:
        width = np.dtype(FIXED[name]).itemsize
        cut = size % width != 0
        if cut.any():
            cursor.refuse(owners[cut])
        counts = size // width
        at = _ranges(part.begin, counts, width)
        return np.repeat(owners, counts), cursor.records.unaligned(FIXED[name])[at]
    at = _ranges(part.begin, size, 1)
    last = cursor.records.data[at] < 0x80
    bounds = np.concatenate([[0], np.cumsum(size)])
    cut = np.zeros(len(size), np.bool_)
    some = np.flatnonzero(size)
    cut[some] = ~last[bounds[some + 1] - 1]
    if cut.any():
        cursor.refuse(owners[cut])
        last[bounds[1:][cut] - 1] = True
    ends = np.flatnonzero(last)
    begins = np.empty_like(ends)
    if len(ends):
        begins[0], begins[1:] = 0, ends[:-1] + 1
    items = np.repeat(owners, size)[ends]
    raw, _, wrong = cursor.numbers(at[begins])
    if len(wrong):
        cursor.refuse(items[wrong])
    return items, _converted(name, raw)


def _ranges(begin: Ints, counts: Ints, step: int) -> Ints:
    """`begin`, `begin + step` and so on, so many of each."""
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(begin, counts) + step * (np.arange(int(counts.sum())) - starts)


def numbers_column(name: str, found: np.ndarray, present: Mask | None) -> Column:
    """Null where `present` is false."""
    if name in UNSIGNED_64:
        words = np.zeros((len(found), 2), np.uint64)
        words[:, 0] = found
        valid = None if present is None else pa.array(present).buffers()[1]
        return pa.Array.from_buffers(SCALARS[name], len(found), [valid, pa.py_buffer(words)])
    kind = SCALARS[name]
    if name in ("uint32", "fixed32"):
        found = found.astype(np.int64)
    return pa.array(found, kind, mask=None if present is None else ~present)


class EnumNames:
    """The texts of an enum's numbers. A number without a name is its own text."""

    def __init__(self, names: tuple[tuple[int, str], ...]) -> None:
        self._names = dict(names)
        known = range(max((n for n, _ in names if 0 <= n < 4096), default=-1) + 1)
        self._lowest = pa.array([self._names.get(number, str(number)) for number in known], pa.string())

    def column(self, numbers: np.ndarray, present: Mask | None) -> Column:
        mask = None if present is None else ~present
        if not len(numbers):
            return pa.array([], pa.string())
        if numbers.min() >= 0 and numbers.max() < len(self._lowest):
            return self._lowest.take(pa.array(numbers, mask=mask))
        distinct, places = np.unique(numbers, return_inverse=True)
        texts = [self._names.get(number, str(number)) for number in distinct.tolist()]
        return pa.array(texts, pa.string()).take(pa.array(places, mask=mask))


def text_column(cursor: Cursor, found: Column) -> Column:
    """Of bytes. Text that is not UTF-8 is null, and its record is refused."""
    texts, faults = utf8(found)
    if faults:
        cursor.refuse(np.fromiter(faults, np.int64))
    return texts


def key_column(keys: Column) -> Column:
    """Keys of maps as text. They are not null, also where a record is refused."""
    texts = keys if pa.types.is_string(keys.type) else pc.cast(keys, pa.string())
    return texts.fill_null("") if texts.null_count else texts


def timestamps(cursor: Cursor, seconds: Column, nanos: Column, present: Mask | None) -> Column:
    second, nano = seconds.to_numpy(zero_copy_only=False), nanos.to_numpy(zero_copy_only=False)
    wrong = (nano < 0) | (nano >= A_SECOND) | (second > MOST_SECONDS) | (second < -MOST_SECONDS)
    if wrong.any():
        # Also some that just fit: they are read alone.
        cursor.refuse(wrong if present is None else wrong & present)
        second = np.where(wrong, 0, second)
    found = second * np.int64(A_SECOND) + nano
    return pa.array(found, pa.int64(), mask=None if present is None else ~present).view(TIMESTAMP)
