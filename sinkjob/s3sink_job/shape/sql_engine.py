"""SQL expressions on Arrow columns, by a locked DuckDB. A row that fails is a fault of that row alone.

The expressions were checked on their parsed tree: see `s3sink_api.spec.sql_expressions`. Nothing else reaches DuckDB.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_api.spec.sql_parser import locked_database
from s3sink_job.columns.nested import with_text_keys
from s3sink_job.columns.types import INT, TEXT, UNITS, Column

SECONDS = 60.0
"""For one batch. Its rows that are not done by then are faults."""
NO_RETRY = (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException, duckdb.NotImplementedException)
"""Errors of the types, so of all rows."""
TOO_SLOW = "took too long"


@dataclass
class Evaluated:
    columns: list[Column]
    """Null in rows at fault."""
    faults: dict[int, str] = field(default_factory=dict)


class UnusableType(Exception):
    """A type that no column of an object can have."""


def evaluate(expressions: Sequence[str], columns: Mapping[str, Column], count: int) -> Evaluated:
    """The value of each expression in each row. `count` is the number of rows."""
    inputs = pa.table(dict(columns) or {"nothing": pa.nulls(count)})
    return _evaluate(", ".join(f"{sql} AS r{number}" for number, sql in enumerate(expressions)), inputs, _Deadline())


class _Deadline:
    def __init__(self) -> None:
        self._at = time.monotonic() + SECONDS

    @property
    def left(self) -> float:
        return self._at - time.monotonic()


def _evaluate(sql: str, inputs: pa.Table, deadline: _Deadline) -> Evaluated:
    """By halves, down to the rows that fail."""
    count = inputs.num_rows
    try:
        return Evaluated([usable(column) for column in _run(sql, inputs, deadline)])
    except (duckdb.Error, pa.ArrowInvalid) as error:
        if count <= 1 or isinstance(error, NO_RETRY) or deadline.left <= 0:
            why = TOO_SLOW if isinstance(error, duckdb.InterruptException) else _message(error)
            return Evaluated([], dict.fromkeys(range(count), why))
    half = count // 2
    first, second = (_evaluate(sql, part, deadline) for part in (inputs.slice(0, half), inputs.slice(half)))
    faults = first.faults | {half + row: why for row, why in second.faults.items()}
    return Evaluated(_joined(first.columns, half, second.columns, count - half), faults)


def _joined(first: list[Column], size: int, second: list[Column], other: int) -> list[Column]:
    if not first:
        first = [pa.nulls(size, column.type) for column in second]
    second = second or [pa.nulls(other, column.type) for column in first]
    return [pa.concat_arrays(both) for both in zip(first, second, strict=True)]


def _run(sql: str, inputs: pa.Table, deadline: _Deadline) -> list[Column]:
    database = _database()
    timer = threading.Timer(max(0.0, deadline.left), database.interrupt)
    timer.start()
    try:
        found = database.from_arrow(inputs).project(sql).to_arrow_table()
    finally:
        timer.cancel()
    return [_one_array(column) for column in found.columns]


def _one_array(column: pa.ChunkedArray) -> Column:
    found = column.combine_chunks()
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found


def _message(error: Exception) -> str:
    """Without the query and its columns, which have names of our own."""
    return re.sub(r" when casting from source column \w+", "", str(error).partition("\n")[0])


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One for each process. One thread is enough: Spark runs tasks in parallel."""
    return locked_database()


def usable(column: Column) -> Column:
    """The column with a type that decoded columns can have, too. Raises `UnusableType` if there is none."""
    wanted = _usable_type(column.type)
    return with_text_keys(column if column.type.equals(wanted) else pc.cast(column, wanted))


def _usable_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _usable_type(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_usable_type(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _usable_type(kind.item_type))
    if pa.types.is_integer(kind):
        if kind.equals(pa.uint64()):
            return pa.decimal128(20, 0)
        return INT if kind in (INT, pa.uint32()) else pa.int32()
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return TEXT
    if pa.types.is_timestamp(kind):
        return pa.timestamp(kind.unit if kind.unit in UNITS else "ms", kind.tz and "UTC")
    plain = (
        *(pa.types.is_null, pa.types.is_boolean, pa.types.is_floating, pa.types.is_string, pa.types.is_binary),
        *(pa.types.is_date32, pa.types.is_decimal, pa.types.is_time64),
    )
    if not any(test(kind) for test in plain):
        raise UnusableType(f"its type is {kind}, which no column can have: cast it to another type")
    return kind
