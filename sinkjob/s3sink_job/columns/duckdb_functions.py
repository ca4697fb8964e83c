"""DuckDB's functions on whole Arrow columns, with a limit on memory."""

from __future__ import annotations

import binascii
import hashlib
from collections.abc import Iterable
from functools import cache

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.types import Column

MEMORY = "512MB"


class TooLarge(Exception):
    """Single rows that need more memory to be parsed than the limit."""

    def __init__(self, rows: list[int]) -> None:
        super().__init__(f"too large to parse: more values in one record than fit into {MEMORY} of memory")
        self.rows = rows


def query(sql: str, column: Column) -> Column:
    """The column `r` of a query over the table `batch`, which has the given column as `v`. May raise `TooLarge`."""
    found, too_large = _in_parts(sql, column, 0)
    if too_large:
        raise TooLarge(too_large)
    return found[0] if len(found) == 1 else pa.concat_arrays(found)


def _in_parts(sql: str, column: Column, first: int) -> tuple[list[Column], list[int]]:
    """The answer in parts, and the rows, counted from `first`, that are too large."""
    try:
        return [_answer(sql, column)], []
    except duckdb.OutOfMemoryException:
        if len(column) == 1:
            return [], [first]
    half = len(column) // 2
    found, too_large = _in_parts(sql, column.slice(0, half), first)
    more, others = _in_parts(sql, column.slice(half), first + half)
    return found + more, too_large + others


def _answer(sql: str, column: Column) -> Column:
    database().register("batch", pa.table({"v": column}))
    try:
        return database().sql(sql).to_arrow_table().column("r").combine_chunks()
    finally:
        database().unregister("batch")


def without_rows(column: Column, rows: Iterable[int]) -> Column:
    """The column with null in place of some rows."""
    gone = np.zeros(len(column), np.bool_)
    gone[list(rows)] = True
    return pc.if_else(gone, pa.scalar(None, column.type), column)


def base64(column: Column) -> Column:
    """Bytes as base64 text."""
    column = column.cast(pa.binary())
    try:
        return query("SELECT to_base64(v) AS r FROM batch", column).cast(pa.string())
    except TooLarge:
        return pa.array([None if v is None else _base64(v) for v in column.to_pylist()], pa.string())


def sha256(column: Column) -> Column:
    """The digest of each text, in hexadecimal digits."""
    try:
        return query("SELECT sha256(v) AS r FROM batch", column).cast(pa.string())
    except TooLarge:
        return pa.array([hashlib.sha256(v.encode()).hexdigest() for v in column.to_pylist()], pa.string())


def _base64(value: bytes) -> str:
    return binascii.b2a_base64(value, newline=False).decode()


@cache
def database() -> duckdb.DuckDBPyConnection:
    """One database in memory for each process. One thread is enough: Spark runs tasks in parallel."""
    return duckdb.connect(config={"threads": 1, "memory_limit": MEMORY})
