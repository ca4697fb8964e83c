"""Columns of any type as text and as JSON, whole columns at a time. Null stays null.

A number has the same text in a column of whole numbers and in one of doubles. So the text of a value does not depend
on the records before it, which decide the type of the column.
"""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.decimals import decimal_text
from s3sink_job.columns.duckdb_functions import base64
from s3sink_job.columns.time_text import date_text, time_text, timestamp_text
from s3sink_job.columns.types import DOUBLE, INT, TEXT, Column

CONTROL = {chr(c): json.dumps(chr(c))[1:-1] for c in range(0x20)}
NO_EXPONENT_BELOW = 1e9
"""From here on Arrow may write doubles with an exponent."""
INT_LIMIT = 2.0**63
"""Below this a whole number may come from a column of integers."""


def text_of(column: Column) -> Column:
    """Text as it is, bytes as base64, times by ISO 8601, structs, lists and maps as JSON with names in order."""
    kind = column.type
    if pa.types.is_string(kind):
        return column
    if pa.types.is_float64(kind):
        return _digits(column)
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return base64(column)
    if pa.types.is_timestamp(kind):
        return timestamp_text(column)
    if pa.types.is_date(kind):
        return date_text(column)
    if pa.types.is_time(kind):
        return time_text(column)
    if pa.types.is_decimal(kind):
        return decimal_text(column)
    if pa.types.is_nested(kind):
        return json_of(column, in_order=True)
    return pc.cast(column, TEXT)


def json_of(column: Column, *, in_order: bool = False) -> Column:
    """Each value as JSON. Null stays null, also as an item of a list; a field that is null is left out.

    A column holds null both for a field that is null and for one that is missing. Fields come in the order of the
    column, or in the order of their names; the keys of a map in their own order. A decimal is a string, because many
    readers of JSON would round the number.
    """
    kind = column.type
    if pa.types.is_struct(kind):
        return _objects(column, in_order=in_order)
    if pa.types.is_list(kind):
        column = pa.concat_arrays([column])  # a copy without an offset
        items = pc.fill_null(json_of(column.values, in_order=in_order), "null")
        lists = pa.ListArray.from_arrays(column.offsets, items, mask=column.is_null())
        return concat("[", pc.binary_join(lists, ","), "]")
    if pa.types.is_map(kind):
        return _maps(column, in_order=in_order)
    if pa.types.is_floating(kind):
        text, infinite = text_of(column), pc.invert(pc.is_finite(column))
        # JSON has no NaN and no infinity: they are strings.
        return pc.if_else(infinite, quoted(text), text) if pc.any(infinite).as_py() else text
    plain = pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)
    return text_of(column) if plain else quoted(text_of(column))


def _objects(column: Column, *, in_order: bool) -> Column:
    children = list(zip(column.type.names, column.flatten(), strict=True))
    parts = [
        pc.fill_null(concat(f",{json.dumps(name, ensure_ascii=False)}:", json_of(child, in_order=in_order)), "")
        for name, child in (sorted(children, key=lambda child: child[0]) if in_order else children)
    ]
    if not parts:
        return pc.if_else(column.is_valid(), "{}", pa.scalar(None, TEXT))
    fields = pc.binary_replace_slice(concat(*parts), 0, 1, "")
    return pc.if_else(column.is_valid(), concat("{", fields, "}"), pa.scalar(None, TEXT))


def _maps(column: Column, *, in_order: bool) -> Column:
    column = pa.concat_arrays([column])  # a copy without an offset
    entries = concat(quoted(column.keys), ":", pc.fill_null(json_of(column.items, in_order=in_order), "null"))
    lists = pa.ListArray.from_arrays(column.offsets, entries, mask=column.is_null())
    return concat("{", pc.binary_join(lists, ","), "}")


def _digits(column: Column) -> Column:
    """Doubles as Arrow writes them, but whole numbers like integers: a column of integers may have widened."""
    text, size = pc.cast(column, TEXT), pc.abs(column)
    whole = pc.and_(
        pc.and_(pc.greater_equal(size, NO_EXPONENT_BELOW), pc.less(size, INT_LIMIT)), pc.equal(size, pc.floor(size))
    )
    whole = pc.fill_null(whole, False)
    if not pc.any(whole).as_py():
        return text
    return pc.if_else(whole, pc.cast(pc.cast(pc.if_else(whole, column, 0.0), INT), TEXT), text)


def number_text(number: float) -> str:
    """One double by the same rules."""
    text = repr(number)
    if "e" in text or abs(number) >= NO_EXPONENT_BELOW:
        return str(_digits(pa.array([number], DOUBLE))[0].as_py())
    return text.removesuffix(".0")


def quoted(text: Column) -> Column:
    """Text as JSON strings."""
    text = pc.replace_substring(text, "\\", "\\\\") if holds(text, "\\") else text
    text = pc.replace_substring(text, '"', '\\"') if holds(text, '"') else text
    if pc.any(pc.match_substring_regex(text, r"[\x00-\x1f]")).as_py():
        for mark, escape in CONTROL.items():
            text = pc.replace_substring(text, mark, escape) if holds(text, mark) else text
    return concat('"', text, '"')


def holds(text: Column, mark: str) -> bool:
    """Whether any row may hold the character: a scan of all bytes, much faster than a search row by row."""
    data = text.buffers()[2]
    return data is not None and mark.encode() in memoryview(data).cast("B").tobytes()


def concat(*parts: Column | str) -> Column:
    return pc.binary_join_element_wise(*parts, "")
