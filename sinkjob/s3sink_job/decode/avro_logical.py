"""Columns of Avro's logical types, from columns of their plain types."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.decimals import decimals_of
from s3sink_job.columns.types import Column
from s3sink_job.decode.avro_schema import Array, AvroType, Decimal, Fixed, Logical, Map, Primitive, Record, Union
from s3sink_job.decode.avro_types import MOST_DIGITS, column_type, logical_type, plain_type
from s3sink_job.decode.record_bytes import Ints, Mask

A_DAY = {"time-millis": 86_400_000, "time-micros": 86_400_000_000}
Owners: TypeAlias = Callable[[Ints], Ints]
"""The rows of the batch that hold these values."""
HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
UUID_DIGITS = [*range(8), *range(9, 13), *range(14, 18), *range(19, 23), *range(24, 36)]
"""Where the digits are, between the hyphens."""


def logical_columns(column: Column, kind: AvroType) -> tuple[Column, Mask]:
    """The column, and a mask of the rows with a value that its logical type cannot hold. Such a value is null."""
    wrong = np.zeros(len(column), np.bool_)
    return _Conversion(wrong).convert(column, kind, lambda rows: rows), wrong


class _Conversion:
    def __init__(self, wrong: Mask) -> None:
        self._wrong = wrong

    def convert(self, column: Column, kind: AvroType, owners: Owners) -> Column:
        if column_type(kind).equals(plain_type(kind)):
            return column
        match kind:
            case Primitive(_, logical) | Fixed(_, _, logical):
                found, refused = _leaf(column, logical)
                if len(refused):
                    self._wrong[owners(refused)] = True
                return found
            case Array(items):
                values = self.convert(column.values, items, _of_lists(column, owners))
                kinds = pa.list_(values.type)
                return pa.ListArray.from_arrays(column.offsets, values, type=kinds, mask=column.is_null())
            case Map(values_kind):
                items = self.convert(column.items, values_kind, _of_lists(column, owners))
                kinds = pa.map_(pa.string(), items.type)
                return pa.MapArray.from_arrays(column.offsets, column.keys, items, type=kinds, mask=column.is_null())
            case Record(_, fields):
                return self._struct(column, [field.type for field in fields], owners)
            case Union() if len(kind.values) > 1:
                return self._struct(column, [branch for _, branch in kind.values], owners)
            case Union():
                return self.convert(column, kind.values[0][1], owners)
        raise TypeError(f"{kind} has no logical type")

    def _struct(self, column: Column, kinds: list[AvroType], owners: Owners) -> Column:
        children = [self.convert(column.field(number), kind, owners) for number, kind in enumerate(kinds)]
        fields = [pa.field(field.name, child.type) for field, child in zip(column.type, children, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=column.is_null())


def _of_lists(column: Column, owners: Owners) -> Owners:
    def owners_of_items(items: Ints) -> Ints:
        bounds = column.offsets.to_numpy()
        return owners(np.searchsorted(bounds, items, "right") - 1)

    return owners_of_items


def _leaf(column: Column, logical: Logical) -> tuple[Column, Ints]:
    """The values, and the places of those that the type cannot hold."""
    kind = logical_type(logical)
    match logical:
        case Decimal():
            return _decimals(column, logical)
        case "time-millis" | "time-micros":
            outside = pc.or_(pc.less(column, 0), pc.greater_equal(column, A_DAY[logical]))
            return _without(column, outside).view(kind), _places(outside)
        case "uuid" if not pa.types.is_string(column.type):
            return _uuids(column), _none()
        case "duration":
            return _durations(column), _none()
        case "uuid":
            return column, _none()
        case _:
            return column.view(kind), _none()


def _none() -> Ints:
    return np.empty(0, np.int64)


def _places(mask: Column) -> Ints:
    return np.asarray(pc.indices_nonzero(pc.fill_null(mask, False)), np.int64)


def _without(column: Column, mask: Column) -> Column:
    mask = pc.fill_null(mask, False)
    return pc.if_else(mask, pa.scalar(None, column.type), column) if pc.any(mask, min_count=0).as_py() else column


def _decimals(column: Column, logical: Decimal) -> tuple[Column, Ints]:
    """Numbers in two's complement, the highest byte first."""
    if logical.precision > MOST_DIGITS:
        return _long_decimals(column, logical)
    found, outside = decimals_of(column, logical_type(logical))
    return found, _places(outside)


def _long_decimals(column: Column, logical: Decimal) -> tuple[Column, Ints]:
    """As text. So many digits are rare, and no column type holds them."""
    texts: list[str | None] = []
    wrong = []
    limit = 10**logical.precision
    for row, value in enumerate(column.to_pylist()):
        number = None if value is None else int.from_bytes(value, "big", signed=True)
        fits = number is None or -limit < number < limit
        texts.append(None if number is None or not fits else _digits(number, logical.scale))
        if not fits:
            wrong.append(row)
    return pa.array(texts, pa.string()), np.array(wrong, np.int64)


def _digits(number: int, scale: int) -> str:
    """Without an exponent."""
    digits = str(abs(number)).rjust(scale + 1, "0")
    text = f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits
    return f"-{text}" if number < 0 else text


def _uuids(column: Column) -> Column:
    count = len(column)
    raw = np.frombuffer(pa.concat_arrays([column]).buffers()[1] or b"", np.uint8, 16 * count).reshape(count, 16)
    texts = np.full((count, 36), ord("-"), np.uint8)
    digits = np.empty((count, 32), np.uint8)
    digits[:, 0::2], digits[:, 1::2] = HEX[raw >> 4], HEX[raw & 15]
    texts[:, UUID_DIGITS] = digits
    bounds = pa.py_buffer(np.arange(0, 36 * (count + 1), 36, dtype=np.int32))
    found = pa.Array.from_buffers(pa.string(), count, [None, bounds, pa.py_buffer(texts.tobytes())])
    return _without(found, column.is_null())


def _durations(column: Column) -> Column:
    """Three numbers of 32 bits without a sign, the lowest byte first."""
    count = len(column)
    raw = pa.concat_arrays([column]).buffers()[1] or b""
    numbers = np.frombuffer(raw, "<u4", 3 * count).reshape(count, 3).astype(np.int64)
    mask = column.is_null()
    nulls = mask.to_numpy(zero_copy_only=False)
    children = [pa.array(np.ascontiguousarray(numbers[:, number]), mask=nulls) for number in range(3)]
    return pa.StructArray.from_arrays(children, fields=list(logical_type("duration")), mask=mask)
