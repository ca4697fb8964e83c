"""Dates and times as text by ISO 8601, whole columns at a time.

Arrow writes the years 1 to 9999. Years beyond have a sign and more digits: `+12345-01-31`, `-0044-03-15`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.types import INT, TEXT, Column

FIRST_DAY, END_OF_DAYS = -719_162, 2_932_897
"""Days since 1970: the years 1 to 9999."""
TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
DAY_SECONDS = 86_400
YEAR_DIGITS = 4


def date_text(column: Column) -> Column:
    text, beyond = pc.cast(column, TEXT), beyond_years(column)
    if not pc.any(beyond).as_py():
        return text
    return pc.replace_with_mask(text, beyond, _far_dates(column.filter(beyond).view(pa.int32()).to_numpy()))


def timestamp_text(column: Column) -> Column:
    """With `Z` in UTC, with nothing behind the time where it is local."""
    kind = column.type
    # Without its time zone: for a type with one Arrow needs a time zone database, which may be missing.
    local = column.cast(pa.timestamp(kind.unit))
    text = pc.replace_substring(pc.cast(local, TEXT), " ", "T", max_replacements=1)
    beyond = beyond_years(column)
    if pc.any(beyond).as_py():
        text = pc.replace_with_mask(text, beyond, _far_timestamps(local.filter(beyond)))
    return pc.binary_join_element_wise(text, "Z", "") if kind.tz else text


def time_text(column: Column) -> Column:
    """The time of a day; what is no time of a day has its sign and its hours as they are."""
    text, beyond = pc.cast(column, TEXT), not_in_a_day(column)
    if not pc.any(beyond).as_py():
        return text
    raw = column.filter(beyond).cast(pa.int32() if pa.types.is_time32(column.type) else INT).to_pylist()
    return pc.replace_with_mask(text, beyond, pa.array([_far_time(value, column.type.unit) for value in raw], TEXT))


def beyond_years(column: Column) -> Column:
    """Which dates or timestamps are beyond the years 1 to 9999."""
    if pa.types.is_date(column.type):
        return _outside(column.cast(pa.int32()), FIRST_DAY, END_OF_DAYS)
    day = DAY_SECONDS * TICKS[column.type.unit]
    most = 2**63 - 1
    return _outside(column.cast(INT), max(FIRST_DAY * day, -most - 1), min(END_OF_DAYS * day, most))


def not_in_a_day(column: Column) -> Column:
    raw = column.cast(pa.int32() if pa.types.is_time32(column.type) else INT)
    return _outside(raw, 0, DAY_SECONDS * TICKS[column.type.unit])


def _outside(numbers: Column, first: int, end: int) -> Column:
    last = end - 1 if end < 2**63 - 1 else end
    return pc.fill_null(pc.or_(pc.less(numbers, first), pc.greater(numbers, last)), False)


def _far_dates(days: np.ndarray) -> Column:
    return pa.array([_far_date(text) for text in np.datetime_as_string(days.astype("datetime64[D]"))], TEXT)


def _far_date(text: str) -> str:
    """Years before 0 and after 9999 have a sign, and four digits or more."""
    year, month, day = text.rsplit("-", 2)
    sign = "-" if year[0] == "-" else "+" if len(year) > YEAR_DIGITS else ""
    return f"{sign}{year.lstrip('-').zfill(YEAR_DIGITS)}-{month}-{day}"


def _far_timestamps(times: Column) -> Column:
    unit, raw = times.type.unit, times.cast(INT).to_numpy()
    # Floor division, also of times before 1970.
    days, rest = np.divmod(raw, DAY_SECONDS * TICKS[unit])
    kind = pa.time32(unit) if unit in {"s", "ms"} else pa.time64(unit)
    clock = pa.array(rest).cast(pa.int32() if pa.types.is_time32(kind) else INT).view(kind)
    return pc.binary_join_element_wise(_far_dates(days), "T", pc.cast(clock, TEXT), "")


def _far_time(value: int, unit: str) -> str:
    seconds, fraction = divmod(abs(value), TICKS[unit])
    digits = len(str(TICKS[unit])) - 1
    sign = "-" if value < 0 else ""
    return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:0{digits}}"
