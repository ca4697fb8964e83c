"""Text and JSON on whole Arrow columns.

Each function takes a column and gives a column back, plus the rows it could not take. A row is looked at
in Python only after a whole-column check found something unusual in its batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import simdjson

from s3sink_job.duck import TooLarge, base64, query
from s3sink_job.schema.text import concat, holds, quoted


@dataclass(frozen=True)
class Bad:
    """Rows of a batch that cannot be taken: row number → why."""

    rows: dict[int, str]

    def __bool__(self) -> bool:
        return bool(self.rows)


@dataclass(frozen=True)
class Decoded:
    """`rows` has as many rows as the batch; those in `bad` hold nothing of use."""

    rows: pa.RecordBatch
    bad: Bad


Column: TypeAlias = pa.Array
NONE_BAD = Bad({})

# DuckDB's parser lets these pass; RFC 8259, and most readers of the files, do not.
COMMA = r",\s*[\]}]"
NAN = "(?i:nan|inf)"
SUSPECT = f"{COMMA}|{NAN}"
STRING = r'"(?:[^"\\]|\\.)*"'
EMPTY_OBJECT = b"{}"
LONG = 2**20
"""Python would need many times the memory of a longer text, only to say where it is wrong."""


def utf8(column: Column) -> tuple[Column, Bad]:
    """Bytes as text; rows that are not UTF-8 become null and are reported."""
    try:
        return column.cast(pa.string()), NONE_BAD
    except pa.ArrowInvalid:
        values, bad = [], {}
        for row, value in enumerate(column.to_pylist()):
            try:
                values.append(None if value is None else value.decode())
            except UnicodeDecodeError as error:
                values.append(None)
                bad[row] = f"not UTF-8: {error.reason} at byte {error.start}"
        return pa.array(values, pa.string()), Bad(bad)


def json_text(column: Column) -> tuple[Column, Bad]:
    """Bytes that hold one JSON value each, on one line each. Null stays null."""
    if (document := as_one_array(column)) is not None:
        # The parser has seen that it is UTF-8.
        text = column.view(pa.string())
        return one_line(text) if b"\n" in document or b"\r" in document else text, NONE_BAD
    text, bad = utf8(column)
    rows = dict(bad.rows)
    for row in pc.indices_nonzero(pc.invert(_valid(text))).to_pylist():
        rows[row] = _why_not_json(text[row].as_py())
    suspects = pc.indices_nonzero(pc.fill_null(pc.match_substring_regex(text, SUSPECT), False))
    if len(suspects):
        bare = pc.replace_substring_regex(text.take(suspects), STRING, '""')
        rows |= dict.fromkeys(
            suspects.filter(pc.match_substring_regex(bare, NAN)).to_pylist(), "not JSON: NaN or Infinity"
        )
        rows |= dict.fromkeys(
            suspects.filter(pc.match_substring_regex(bare, COMMA)).to_pylist(), "not JSON: a trailing comma"
        )
    return one_line(text), Bad(rows)


def _valid(text: Column) -> Column:
    """Whether each value is JSON, or nearly so, and true for null."""
    try:
        return pc.fill_null(query("SELECT json_valid(v) AS r FROM batch", text), True)
    except TooLarge as error:
        rest = without(text, error.rows)
        known = {row: as_one_array(text.slice(row, 1)) is not None for row in error.rows}
        return pa.array([known.get(row, fine) for row, fine in enumerate(_valid(rest).to_pylist())], pa.bool_())


def without(column: Column, rows: Iterable[int]) -> Column:
    """The column with null in place of some rows."""
    gone = np.zeros(len(column), np.bool_)
    gone[list(rows)] = True
    return pc.if_else(gone, pa.scalar(None, column.type), column)


def as_one_array(column: Column) -> bytes | None:
    """All values as one JSON array, if a strict parser takes them in one go. If not, they still may all be JSON.

    The values are the elements of the array, with a tab before each comma, which no string may hold. A value cannot
    close that array, so each gives an element, unless it leaves something open that takes in the next one: an array,
    or an object, if what is next starts with a field's name. Where neither can be, as many elements as values means
    one each. Otherwise they have to be the only fields of objects as well: what is open there is closed too early by
    the `}` behind it, a field's name is no value, and what goes on behind a comma is a value here and a name there.
    """
    values = (pc.fill_null(column, EMPTY_OBJECT) if column.null_count else column).cast(pa.binary())
    elements = _document(values, b"[", b"\t,", b"]")
    if _count(elements) != len(values):
        return None
    if elements.find(b"[", 1) < 0 and pc.all(pc.starts_with(values, b"{"), min_count=0).as_py():
        return elements
    return elements if _count(_document(values, b'[{"":', b'}\t,{"":', b"}]")) == len(values) else None


def _document(values: Column, start: bytes, between: bytes, end: bytes) -> bytes:
    whole = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
    return b"".join((start, pc.binary_join(whole, between)[0].as_buffer(), end))


def _count(document: bytes) -> int | None:
    """The elements of a JSON array; None if it is not JSON."""
    try:
        found = _parser().parse(document)
    except (ValueError, RuntimeError):
        return None
    return len(found) if isinstance(found, simdjson.Array) else None


@cache
def _parser() -> simdjson.Parser:
    """One a process: it keeps its memory."""
    return simdjson.Parser()


def one_line(text: Column) -> Column:
    """In valid JSON a line break can only be white space between tokens."""
    for mark in ("\n", "\r"):
        if holds(text, mark):
            text = pc.replace_substring(text, mark, " ")
    return text


def as_json(column: Column, format: str, what: str) -> tuple[Column, Bad]:
    """A key or value as JSON, one line each: text as a string, bytes as a string of base64. Null stays null."""
    match format:
        case "Json":
            text, bad = json_text(column)
        case "String":
            plain, bad = utf8(column)
            text = quoted(plain)
        case _:
            text, bad = concat('"', base64(column), '"'), NONE_BAD
    return text, told_of(what, bad)


def plain(column: Column, format: str, what: str) -> tuple[Column, Bad]:
    """A key or value that stays one column: text, or the bytes as they are."""
    match format:
        case "Json":
            text, bad = json_text(column)
        case "String":
            text, bad = utf8(column)
        case _:
            return column.cast(pa.binary()), NONE_BAD
    return text, told_of(what, bad)


def told_of(what: str, bad: Bad) -> Bad:
    return Bad({row: f"{what} is {why}" for row, why in bad.rows.items()})


def top_key_among(text: Column, names: tuple[str, ...]) -> Column:
    """The first of the names that a JSON object has at its top, however it spells it; null if none."""
    first = f"list_intersect({list(names)!r}, json_keys(v))[1]"
    # What is not JSON has no keys, and DuckDB would fail the whole column over it.
    return query(f"SELECT CASE WHEN json_valid(v) THEN {first} END AS r FROM batch", text)  # noqa: S608 - ours


def _why_not_json(value: str) -> str:
    """The words for a value that was found not to be JSON."""
    if len(value) > LONG:
        return "not JSON"
    try:
        json.loads(value)
    except ValueError as error:
        return f"not JSON: {error}"
    except RecursionError:
        return "not JSON"
    return "not JSON: a lone surrogate"
