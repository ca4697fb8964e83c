"""Checks that values are JSON, whole columns at a time.

A row is looked at in Python only after a check of the whole column found something unusual.
"""

from __future__ import annotations

import json
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc
import simdjson

from s3sink_job.columns.duckdb_functions import TooLarge, query, without_rows
from s3sink_job.columns.text import holds
from s3sink_job.columns.types import Column
from s3sink_job.decode.bad_records import NO_FAULTS, Fault, Faults, faults_at
from s3sink_job.decode.utf8 import utf8

NOT_JSON = "NotJson"
# DuckDB's parser accepts these; RFC 8259, and most readers of the objects, do not.
COMMA = r",\s*[\]}]"
NAN = "(?i:nan|inf)"
SUSPECT = f"{COMMA}|{NAN}"
STRING = r'"(?:[^"\\]|\\.)*"'
EMPTY_OBJECT = b"{}"
LONG = 2**20
"""For a longer text Python would need many times its memory, only to find the place of the error."""


def json_text(column: Column) -> tuple[Column, Faults]:
    """Bytes as JSON text on one line. Null stays null."""
    if (document := as_one_array(column)) is not None:
        # The parser has checked that it is UTF-8.
        text = column.view(pa.string())
        return one_line(text) if b"\n" in document or b"\r" in document else text, NO_FAULTS
    text, not_utf8 = utf8(column)
    faults = dict(not_utf8)
    for row in pc.indices_nonzero(pc.invert(_valid(text))).to_pylist():
        faults[row] = Fault(NOT_JSON, _why_not_json(text[row].as_py()))
    suspects = pc.indices_nonzero(pc.fill_null(pc.match_substring_regex(text, SUSPECT), False))
    if len(suspects):
        bare = pc.replace_substring_regex(text.take(suspects), STRING, '""')
        for pattern, why in ((NAN, "not JSON: NaN or Infinity"), (COMMA, "not JSON: a trailing comma")):
            rows = suspects.filter(pc.match_substring_regex(bare, pattern)).to_pylist()
            faults |= faults_at(rows, NOT_JSON, why)
    return one_line(text), faults


def _valid(text: Column) -> Column:
    """Whether DuckDB takes each value for JSON; true for null."""
    try:
        return pc.fill_null(query("SELECT json_valid(v) AS r FROM batch", text), True)
    except TooLarge as error:
        rest = without_rows(text, error.rows)
        known = {row: as_one_array(text.slice(row, 1)) is not None for row in error.rows}
        return pa.array([known.get(row, fine) for row, fine in enumerate(_valid(rest).to_pylist())], pa.bool_())


def as_one_array(column: Column) -> bytes | None:
    """All values as one JSON array, if a strict parser accepts it. If it does not, all may still be JSON.

    The values are the elements of the array, with a tab before each comma, which no JSON string may hold. No value can
    close that array. So each value is one element, unless it leaves an array or an object open which takes in the next
    value; for an object the next value has to start with a field's name. Where neither is possible, as many elements
    as values means one each. Otherwise a second check makes each value the only field of an object: an open array or
    object is then closed too early by the `}` behind it, and a field's name is no value.
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
    """One for each process: it keeps its buffers."""
    return simdjson.Parser()


def one_line(text: Column) -> Column:
    """JSON without line breaks: in valid JSON they are only white space between tokens."""
    for mark in ("\n", "\r"):
        if holds(text, mark):
            text = pc.replace_substring(text, mark, " ")
    return text


def _why_not_json(value: str) -> str:
    """The message for a value that is not JSON."""
    if len(value) > LONG:
        return "not JSON"
    try:
        json.loads(value)
    except ValueError as error:
        return f"not JSON: {error}"
    except RecursionError:
        return "not JSON"
    return "not JSON: a lone surrogate"
