"""SQL expressions on Arrow columns, by a locked DuckDB. A row that fails is a fault of that row alone.

The expressions were checked on their parsed tree: see `s3sink_api.spec.sql_expressions`. Nothing else reaches DuckDB.
"""

from __future__ import annotations

import atexit
import itertools
import re
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_api.spec.sql_parser import locked_database
from s3sink_job.columns.nested import with_text_keys
from s3sink_job.columns.types import INT, TEXT, UNITS, Column
from s3sink_job.shape.sql_budget import TOO_LARGE, TOO_SLOW, Budget, TooManyBytes

NO_RETRY = (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException, duckdb.NotImplementedException)
"""Errors of the types, so of all rows."""
OF_TYPES = frozenset(["Binder", "Catalog", "Parser", "Not implemented"])
"""The same in their messages."""
AT_ONCE = 2**28
"""The most that one statement does: bytes of its fields times characters of SQL. DuckDB looks at the clock only once in
2,048 rows, and the result is in memory before its bytes are counted: it has no more than these."""
OF_A_ROW = 8
"""Bytes that a row counts, whatever it holds: also a call with nothing takes its time."""
OF_A_PADDING = 4_000
"""Bytes that such a call may make of nothing."""
LOOK_SECONDS, LOOKS = 0.5, 20
"""How often the clock is looked at, and how many times without a statement before that ends."""
STATEMENTS = 32
"""Prepared ones that are kept: one for each text and types of its fields."""
# The other way plans the statement again, which takes twice as long.
warnings.filterwarnings("ignore", "Arrow output on a DB-API result makes an extra copy", UserWarning)


@dataclass
class Evaluated:
    columns: list[Column]
    """Null in rows at fault."""
    faults: dict[int, str] = field(default_factory=dict)


class UnusableType(Exception):
    """A type that no column of an object can have."""


def evaluate(
    expressions: Sequence[str], columns: Mapping[str, Column], count: int, budget: Budget | None = None
) -> Evaluated:
    """The value of each expression in each row. `count` is the number of rows."""
    inputs = pa.table(dict(columns) or {"nothing": pa.nulls(count)})
    sql = ", ".join(f"{sql} AS r{number}" for number, sql in enumerate(expressions))
    rows = _rows_at_once(sql, inputs)
    with budget or Budget() as limits:
        if rows >= count:
            return _evaluate(sql, inputs, limits)
        starts = range(0, count, rows)
        return _joined(starts, [_evaluate(sql, inputs.slice(start, rows), limits) for start in starts], count)


def _rows_at_once(sql: str, inputs: pa.Table) -> int:
    count: int = inputs.num_rows
    padding = (sql.count("pad(") + sql.count("repeat(")) * OF_A_PADDING
    work: int = (inputs.get_total_buffer_size() + count * OF_A_ROW) * len(sql) + count * padding
    return count if work <= AT_ONCE else max(1, count * AT_ONCE // work)


def _evaluate(sql: str, inputs: pa.Table, budget: Budget) -> Evaluated:
    """By halves, down to the rows that fail."""
    count = inputs.num_rows
    if (over := budget.over()) is not None:
        return Evaluated([], dict.fromkeys(range(count), over))
    try:
        found = _engine().select(sql, inputs, budget)
        budget.take(sum([column.get_total_buffer_size() for column in found]))
        return Evaluated([usable(column) for column in found])
    except (duckdb.Error, pa.ArrowInvalid, MemoryError) as error:
        if count <= 1 and isinstance(error, TooManyBytes):
            budget.fill(error.size)
        if count <= 1 or isinstance(error, NO_RETRY):
            return Evaluated([], dict.fromkeys(range(count), _message(error)))
    half = count // 2
    both = [_evaluate(sql, part, budget) for part in (inputs.slice(0, half), inputs.slice(half))]
    return _joined((0, half), both, count)


def _joined(starts: Sequence[int], parts: Sequence[Evaluated], count: int) -> Evaluated:
    """`starts` are the first rows of the parts."""
    faults = {start + row: why for start, part in zip(starts, parts, strict=True) for row, why in part.faults.items()}
    types = next(([column.type for column in part.columns] for part in parts if part.columns), [])
    sizes = [end - start for start, end in zip(starts, [*starts[1:], count], strict=True)]
    columns = []
    for at, kind in enumerate(types):
        pieces = zip(parts, sizes, strict=True)
        columns.append(pa.concat_arrays([p.columns[at] if p.columns else pa.nulls(size, kind) for p, size in pieces]))
    return Evaluated(columns, faults)


class _Watch:
    """Interrupts a statement that is not done when the time of its batch is over.

    One thread looks at the clock for all of them: to start one for each took a third of a statement's time. It ends
    when there are no more.
    """

    def __init__(self, interrupt: Callable[[], None]) -> None:
        self._interrupt = interrupt
        self._lock = threading.Lock()
        self._running: Budget | None = None
        self._thread: threading.Thread | None = None
        self._looks_left = 0
        self._closed = threading.Event()

    def begin(self, budget: Budget) -> None:
        with self._lock:
            self._running, self._looks_left = budget, LOOKS
            if self._thread is None:
                self._thread = threading.Thread(target=self._look, name="sql-deadline", daemon=True)
                self._thread.start()

    def end(self) -> None:
        with self._lock:
            self._running = None

    def close(self) -> None:
        """Ends the thread: while it lives, DuckDB's package complains about leaks when the interpreter ends."""
        self._closed.set()
        thread = self._thread
        if thread is not None:
            thread.join()

    def _look(self) -> None:
        while not self._closed.wait(LOOK_SECONDS):
            with self._lock:
                if self._running is not None and self._running.seconds_left <= 0:
                    self._interrupt()
                elif self._running is None:
                    self._looks_left -= 1
                if not self._looks_left:
                    self._thread = None
                    return


class _Inputs:
    """A table that is another one each time: DuckDB asks for its rows whenever a statement reads it."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


class _Engine:
    """A database with prepared statements. To plan a statement takes longer than to evaluate it for a batch."""

    def __init__(self) -> None:
        self._database = locked_database()
        self._prepared: OrderedDict[tuple[str, pa.Schema], tuple[str, _Inputs]] = OrderedDict()
        self._numbers = itertools.count()
        self._watch = _Watch(self._database.interrupt)
        self._lock = threading.Lock()

    def close(self) -> None:
        for name, _ in self._prepared.values():
            self._database.unregister(name)
        self._prepared.clear()
        self._watch.close()
        self._database.close()

    def select(self, sql: str, inputs: pa.Table, budget: Budget) -> list[Column]:
        with self._lock:
            self._watch.begin(budget)
            try:
                name, source = self._statement(sql, inputs)
                source.table = inputs
                try:
                    return _columns(self._database.execute(f"EXECUTE {name}"))
                finally:
                    # An empty slice would keep the whole batch in memory.
                    source.table = inputs.schema.empty_table()
            finally:
                self._watch.end()

    def _statement(self, sql: str, inputs: pa.Table) -> tuple[str, _Inputs]:
        key = (sql, inputs.schema)
        if key in self._prepared:
            self._prepared.move_to_end(key)
            return self._prepared[key]
        name, source = f"s{next(self._numbers)}", _Inputs(inputs)
        self._database.register(name, source)
        try:
            # The SQL was written from the checked tree, and the name is ours.
            self._database.execute(f"PREPARE {name} AS SELECT {sql} FROM {name}")  # noqa: S608
        except duckdb.Error:
            self._database.unregister(name)
            raise
        self._prepared[key] = name, source
        if len(self._prepared) > STATEMENTS:
            _, (oldest, _) = self._prepared.popitem(last=False)
            self._database.execute(f"DEALLOCATE {oldest}")
            self._database.unregister(oldest)
        return name, source


def _columns(result: duckdb.DuckDBPyConnection) -> list[Column]:
    if all(str(kind) == "BOOLEAN" for _, kind, *_ in result.description or ()):
        # Conditions. A table of Arrow takes three times as long.
        return [_booleans(column) for column in result.fetchnumpy().values()]
    found: pa.Table = result.to_arrow_table()
    return [_one_array(column) for column in found.columns]


def _booleans(column: Any) -> Column:
    return pa.array(np.ma.getdata(column), pa.bool_(), mask=np.ma.getmaskarray(column))


def _one_array(column: pa.ChunkedArray) -> Column:
    found = column.combine_chunks()
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found


def _message(error: Exception) -> str:
    """Without the query and its columns, which have names of our own."""
    if isinstance(error, MemoryError | duckdb.OutOfMemoryException):
        return TOO_LARGE
    if isinstance(error, duckdb.InterruptException):
        return TOO_SLOW
    text = re.sub(r" when casting from source column \w+", "", str(error).partition("\n")[0])
    return text if re.match("[A-Za-z ]+ Error: ", text) else f"Invalid Error: {text}"


def without_values(why: str) -> str:
    """A fault without what DuckDB says of the values. Messages about types and names have none."""
    kind, found, _ = why.partition(" Error: ")
    return f"{kind} Error" if found and kind not in OF_TYPES else why


@cache
def _engine() -> _Engine:
    """One for each process. One thread is enough: Spark runs tasks in parallel."""
    engine = _Engine()
    # If not, DuckDB's package complains about leaks when the interpreter ends.
    atexit.register(engine.close)
    return engine


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
