"""Text and JSON on whole Arrow columns.

Each function takes a column and gives a column back, plus the rows it could not take. A row is looked at
in Python only after a whole-column check found something unusual in its batch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import simdjson

from s3sink_job.duck import base64, query
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
WRAP = b'}\t,{"":'


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
    document = _one_document(column)
    if _is_list_of(len(column), document):
        # The parser has seen that it is UTF-8.
        text = column.view(pa.string())
        return one_line(text) if b"\n" in document or b"\r" in document else text, NONE_BAD
    text, bad = utf8(column)
    valid = pc.fill_null(query("SELECT json_valid(v) AS r FROM batch", text), True)
    rows = dict(bad.rows)
    for row in pc.indices_nonzero(pc.invert(valid)).to_pylist():
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


def _one_document(column: Column) -> bytes:
    """All values as one JSON array, each wrapped as `{"":…}` with a tab behind it."""
    filled = pc.fill_null(column, b"null") if column.null_count else column
    values = pa.ListArray.from_arrays(pa.array([0, len(filled)], pa.int32()), filled.cast(pa.binary()))
    return b"".join((b'[{"":', pc.binary_join(values, WRAP)[0].as_buffer(), b"}]"))


def _is_list_of(count: int, document: bytes) -> bool:
    """Whether a strict parser takes the whole column in one go. If not, it still may all be JSON.

    A value cut short cannot borrow its end from the next: a string may not hold a tab, an array is not closed by
    `}`, and behind a `}` no object goes on with `{`. So each value gives one element at least, and as many as there
    are values means one each.
    """
    try:
        found = _parser().parse(document)
        return isinstance(found, simdjson.Array) and len(found) == count
    except (ValueError, RuntimeError):
        return False


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
    try:
        json.loads(value)
    except ValueError as error:
        return f"not JSON: {error}"
    except RecursionError:
        return "not JSON"
    return "not JSON: a lone surrogate"
