"""Decimals as text and as the bytes that Avro writes, whole columns at a time."""

from __future__ import annotations

from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.types import TEXT, Column

EXACT = Context(prec=100)


def decimal_text(column: Column) -> Column:
    """Plain digits with all digits of the scale. Arrow writes small numbers with an exponent."""
    kind = column.type
    digits = pc.cast(column.view(_unscaled(kind)), TEXT)
    if kind.scale <= 0:
        return digits if kind.scale == 0 else pc.cast(column, TEXT)
    sign = pc.if_else(pc.starts_with(digits, "-"), "-", "")
    padded = pc.ascii_lpad(pc.ascii_ltrim(digits, "-"), kind.scale + 1, "0")
    whole, fraction = pc.binary_slice(padded.cast(pa.binary()), 0, -kind.scale), _last(padded, kind.scale)
    return pc.binary_join_element_wise(sign, whole.cast(TEXT), ".", fraction, "")


def _last(text: Column, count: int) -> Column:
    return pc.binary_slice(text.cast(pa.binary()), -count).cast(TEXT)


def _unscaled(kind: pa.DataType) -> pa.DataType:
    whole = pa.decimal128 if pa.types.is_decimal128(kind) else pa.decimal256
    return whole(kind.precision, 0)


def decimal_bytes(column: Column) -> Column:
    """The unscaled numbers, big-endian, in two's complement, each as short as possible."""
    column = pa.concat_arrays([column])  # a copy without an offset
    count, width = len(column), column.type.byte_width
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    buffer = column.buffers()[1]
    if not count or buffer is None:
        return pa.nulls(count, pa.binary())
    numbers = np.frombuffer(buffer, np.uint8, count * width).reshape(count, width)[:, ::-1]
    # A first byte is left out if it only repeats the sign that the next byte has, too.
    sign = np.where(numbers[:, :1] & 0x80, 0xFF, 0).astype(np.uint8)
    repeats = (numbers[:, :-1] == sign) & ((numbers[:, 1:] ^ sign) & 0x80 == 0)
    left_out = np.logical_and.accumulate(repeats, axis=1).sum(axis=1)
    lengths = np.where(valid, width - left_out, 0)
    data = numbers[np.arange(width) >= (width - lengths)[:, None]]
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    validity = pa.array(valid).buffers()[1]
    return pa.Array.from_buffers(pa.binary(), count, [validity, pa.py_buffer(ends), pa.py_buffer(data)])


def decimals_of(column: Column, kind: pa.DataType) -> tuple[Column, Column]:
    """The decimals of such bytes, of any length, and a mask of those with more digits than the type, which are null."""
    width = kind.byte_width
    column = pa.concat_arrays([column.cast(pa.binary())])  # a copy without an offset
    bounds = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1).astype(np.int64)
    data = np.frombuffer(column.buffers()[2] or b"", np.uint8)
    lengths = np.diff(bounds)
    held = np.zeros((len(column), width), np.uint8)
    for size in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == size)
        if 0 < size <= width:
            found = data[bounds[rows][:, None] + np.arange(size)]
            held[rows] = np.where(found[:, :1] >= 0x80, 0xFF, 0)
            held[rows, width - size :] = found
    too_long = lengths > width
    # Rare: a short number may be written with more bytes than it needs.
    for row in np.flatnonzero(too_long).tolist():
        number = int.from_bytes(data[bounds[row] : bounds[row + 1]].tobytes(), "big", signed=True)
        if -(2 ** (8 * width - 1)) <= number < 2 ** (8 * width - 1):
            held[row] = np.frombuffer(number.to_bytes(width, "big", signed=True), np.uint8)
            too_long[row] = False
    numbers = pa.Array.from_buffers(kind, len(column), [column.buffers()[0], pa.py_buffer(held[:, ::-1].tobytes())])
    most = Decimal(10**kind.precision - 1).scaleb(-kind.scale, EXACT)
    beyond = pc.or_(pc.less(numbers, pa.scalar(most.copy_negate(), kind)), pc.greater(numbers, pa.scalar(most, kind)))
    outside = pc.fill_null(pc.or_(beyond, pa.array(too_long)), False)
    if not pc.any(outside, min_count=0).as_py():
        return numbers, outside
    return pc.if_else(outside, pa.scalar(None, kind), numbers), outside
