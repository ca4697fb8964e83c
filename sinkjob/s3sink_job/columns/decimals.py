"""Decimals as text and as the bytes that Avro writes, whole columns at a time."""

from __future__ import annotations

from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.types import TEXT, Column, decimal

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


def decimals_of(column: Column, precision: int, scale: int) -> Column:
    """The decimals of such bytes. Value by value: only `verify` reads them."""
    numbers = [None if v is None else int.from_bytes(v, "big", signed=True) for v in column.to_pylist()]
    values = [None if n is None else Decimal(n).scaleb(-scale, EXACT) for n in numbers]
    return pa.array(values, decimal(precision, scale))
