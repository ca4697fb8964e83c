"""Single headers as columns of their own, where nothing else of the headers is needed.

If all headers of a record passed to Python, Spark would have to measure them (see `batch_size.py`), and reading would
take several times as long.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as f

_PREFIX = "header_"


def header_column(name: str) -> str:
    """The column of a header. A header may have any name, so its bytes are written in hexadecimal digits."""
    return _PREFIX + name.encode().hex()


def header_columns(columns: Iterable[str]) -> list[str]:
    """Those of the columns that are single headers."""
    return sorted(name for name in columns if name.startswith(_PREFIX))


def header_value(column: str) -> Column:
    """The bytes of the last header with this name; null for a record without one."""
    return f.expr(last_header(bytes.fromhex(column.removeprefix(_PREFIX)).decode()))


def last_header(name: str) -> str:
    """The same as SQL. As text, because it is planned several times as fast as the same in Python's functions.

    The name is looked for once: Spark would evaluate a place that the text has twice, twice. A name that is not there
    has the place 0, and behind the last value there is none.
    """
    quoted = name.replace("\\", "\\\\").replace("'", "\\'")
    from_end = f"array_position(reverse(headers.key), '{quoted}')"
    return f"get(headers.value, size(headers) - CAST({from_end} AS INT))"
