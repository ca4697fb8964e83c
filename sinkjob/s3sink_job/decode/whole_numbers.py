"""Whole numbers that Arrow's reader rounded, because their column has floats or doubles.

A fraction becomes the nearest number. A whole number must not change: it may be an id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.types import DOUBLE, Column, with_leaf_types
from s3sink_job.decode.json_columns import may_be_rounded
from s3sink_job.decode.payload_values import Misfit

FLOAT = pa.float32()
EXACT = 2.0**24
"""From here on a float does not hold every whole number."""
LONG_NUMBER = r"(?:^|[:\[,])\s*-?[0-9]{8,}\s*(?:$|[,\]}])"


def with_doubles(kind: pa.DataType) -> pa.DataType:
    """Doubles in place of floats."""
    return with_leaf_types(kind, lambda leaf: DOUBLE if leaf.equals(FLOAT) else leaf)


def check_whole_numbers(column: Column, payload: Column, as_doubles: Callable[[], Column]) -> None:
    """Raises `Misfit` if a number may have been rounded. `as_doubles` reads the payloads again, by `with_doubles`."""
    if may_be_rounded([column], payload):
        raise Misfit("a number that no double holds")
    if _largest_float(column) < EXACT or not pc.any(pc.match_substring_regex(payload, LONG_NUMBER)).as_py():
        return
    # Not every long number is one of the floats: it may be an id beside them.
    doubles = as_doubles()
    if may_be_rounded([doubles], payload) or any(
        _rounds(double) for leaf, double in zip(_leaves(column), _leaves(doubles), strict=True) if leaf.type == FLOAT
    ):
        raise Misfit("a whole number that no float holds")


def _largest_float(column: Column) -> float:
    """The largest absolute value. NaN, which no comparison finds, is refused elsewhere."""
    floats = (leaf.drop_null().to_numpy() for leaf in _leaves(column) if leaf.type == FLOAT)
    return max((float(np.abs(values).max(initial=0.0)) for values in floats), default=0.0)


def _rounds(doubles: Column) -> bool:
    values = doubles.drop_null().to_numpy()
    with np.errstate(over="ignore"):
        changed = values.astype(np.float32) != values
    return bool((changed & (values == np.floor(values))).any())


def _leaves(column: Column) -> Iterator[Column]:
    if pa.types.is_struct(column.type):
        for number in range(column.type.num_fields):
            yield from _leaves(column.field(number))
    elif pa.types.is_list(column.type):
        yield from _leaves(column.flatten())
    else:
        yield column
