"""DuckDB's functions on whole Arrow columns."""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

import duckdb
import pyarrow as pa

Column: TypeAlias = pa.Array


def query(sql: str, column: Column) -> Column:
    """The column `r` of a query over `batch`, whose column `v` is the given one."""
    database = _database()
    database.register("batch", pa.table({"v": column}))
    try:
        return database.sql(sql).to_arrow_table().column("r").combine_chunks()
    finally:
        database.unregister("batch")


def base64(column: Column) -> Column:
    """Bytes as base64 text."""
    return query("SELECT to_base64(v) AS r FROM batch", column.cast(pa.binary())).cast(pa.string())


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One in memory a process; tasks bring their own parallelism."""
    return duckdb.connect(config={"threads": 1, "memory_limit": "512MB"})
