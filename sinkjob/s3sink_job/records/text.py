"""Text and JSON on whole Arrow columns.

Each function takes a column and gives a column back, plus the rows it could not take. A row is looked at
in Python only after a whole-column check found something unusual in its batch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True)
class Bad:
    """Rows of a batch that cannot be taken: row number → why."""

    rows: dict[int, str]

    def __bool__(self) -> bool:
        return bool(self.rows)


Column: TypeAlias = pa.Array
NONE_BAD = Bad({})

# DuckDB's parser lets these pass; RFC 8259, and most readers of the files, do not.
SUSPECT = r",\s*[\]}]|(?i:nan|inf)"
CONTROL = {chr(c): f"\\u{c:04x}" for c in range(0x20)} | {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


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
    text, bad = utf8(column)
    valid = _json_valid(text)
    suspect = pc.match_substring_regex(text, SUSPECT)
    odd = pc.fill_null(pc.or_(pc.invert(valid), suspect), False)
    if pc.any(odd).as_py():
        rows = dict(bad.rows)
        for row in pc.indices_nonzero(odd).to_pylist():
            reason = _why_not_json(text[row].as_py(), valid[row].as_py())
            if reason is not None:
                rows[row] = reason
        bad = Bad(rows)
    return one_line(text), bad


def one_line(text: Column) -> Column:
    """In valid JSON a line break can only be white space between tokens."""
    for mark in ("\n", "\r"):
        if holds(text, mark):
            text = pc.replace_substring(text, mark, " ")
    return text


def holds(text: Column, mark: str) -> bool:
    """Whether any row holds the character: a scan of the bytes, much faster than a search row by row."""
    data = text.buffers()[2]
    return data is not None and mark.encode() in memoryview(data).cast("B").tobytes()


def quoted(text: Column) -> Column:
    """Text as JSON strings."""
    text = pc.replace_substring(text, "\\", "\\\\") if holds(text, "\\") else text
    text = pc.replace_substring(text, '"', '\\"') if holds(text, '"') else text
    if pc.any(pc.match_substring_regex(text, r"[\x00-\x1f]")).as_py():
        for mark, escape in CONTROL.items():
            text = pc.replace_substring(text, mark, escape) if holds(text, mark) else text
    return pc.binary_join_element_wise('"', text, '"', "")


def base64(column: Column) -> Column:
    """Bytes as base64 text."""
    batch = pa.table({"v": column.cast(pa.binary())})
    return _query("SELECT to_base64(v) AS r FROM batch", batch)


def _json_valid(text: Column) -> Column:
    return _query("SELECT json_valid(v) AS r FROM batch", pa.table({"v": text}))


def _query(sql: str, batch: pa.Table) -> Column:
    database = _database()
    database.register("batch", batch)
    try:
        return database.sql(sql).to_arrow_table().column("r").combine_chunks()
    finally:
        database.unregister("batch")


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One in-memory DuckDB a process, for its vectorised text functions; tasks bring their own parallelism."""
    return duckdb.connect(config={"threads": 1, "memory_limit": "512MB"})


def _why_not_json(value: str, parsed: bool) -> str | None:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    try:
        json.loads(value, parse_constant=refuse)
    except RecursionError:
        # Deep nesting is legal: only Python's own parser gives up on it.
        return None if parsed else "not JSON"
    except ValueError as error:
        return f"not JSON: {error}"
    return None if parsed else "not JSON: a lone surrogate"
