"""Times of records as folders, on whole columns. They are rounded first, so that only few have to be formatted."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import ROUND_FLOOR, Decimal, localcontext
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.types import Column
from s3sink_job.decode.bad_records import Fault, Faults, ValueFault, faults_at
from s3sink_job.decode.field_values import FieldValues, faults_by_row
from s3sink_job.layout.settings import LayoutItem
from s3sink_job.layout.time_patterns import BEYOND, DAY, LEAST, RANGE, SECOND, clock_of

Ints: TypeAlias = npt.NDArray[np.int64]
SCALES = ((10**11, SECOND), (10**14, 1000), (10**17, 1))
"""Numbers below the first limit are seconds, then milliseconds, then microseconds; all reach to the year 5138."""
WHOLE = "^-?[0-9]{1,17}$"
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
ISO = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?(Z|[+-][0-9]{2}(:?[0-5][0-9])?)?)?$"
ZONED = "(Z|:[0-9.]+[+-][0-9:]+)$"
TOO_FINE = r"(\.[0-9]{6})[0-9]+"
LONGEST = 64
MOST_KEPT = 50_000
EPOCH, MICROSECOND = datetime.fromtimestamp(0, UTC), timedelta(microseconds=1)


class NotATime(ValueError):
    """Why a text is not a time, without the text."""


class Calendar:
    """The folders of an item's times. It caches offsets of time zones and folders."""

    def __init__(self, item: LayoutItem) -> None:
        self._clock = clock_of(item)
        self._shifts: dict[int, int | None] = {}
        self._folders: dict[int, str] = {}

    def folders(self, times: Column, faults: Faults, what: str) -> FieldValues:
        """Of microseconds since 1970, null where there are none."""
        if not len(times):
            return FieldValues(pa.array([], pa.string()), pa.array([], pa.int32()), faults)
        found = pc.fill_null(times, 0).to_numpy()
        local = np.clip(found, LEAST, BEYOND - 1)
        local = local + self._shift(local)
        step = self._clock.every or self._clock.unit
        local = local // step * step
        out = (found < LEAST) | (found >= BEYOND) | (local < LEAST) | (local >= BEYOND)
        if out.any():
            outside = faults_at(np.flatnonzero(out).tolist(), "TimeOutOfRange", f"{what} is outside {RANGE}")
            faults = {**outside, **faults}
            local = np.where(out, 0, local)
        nulls = times.is_null().to_numpy(zero_copy_only=False) if times.null_count else None
        encoded = pa.array(local, mask=nulls).dictionary_encode()
        texts = [self._folder(time) for time in encoded.dictionary.to_pylist()]
        return FieldValues(pa.array(texts, pa.string()), encoded.indices, faults)

    def _folder(self, local: int) -> str:
        if local not in self._folders:
            _make_room(self._folders)
            self._folders[local] = self._clock.folder(local)
        return self._folders[local]

    def _shift(self, times: Ints) -> Ints | int:
        """How far the local times are ahead of UTC."""
        days = times // DAY
        if days.min() == days.max() and (same := self._shift_of(int(days[0]))) is not None:
            return same
        distinct, which = np.unique(days, return_inverse=True)
        shifts = [self._shift_of(day) for day in distinct.tolist()]
        known: Ints = np.array([shift or 0 for shift in shifts], np.int64)[which]
        for number, shift in enumerate(shifts):
            if shift is None:
                rows = which == number
                seconds, each = np.unique(times[rows] // SECOND, return_inverse=True)
                known[rows] = np.array([self._clock.offset(s * SECOND) for s in seconds.tolist()], np.int64)[each]
        return known

    def _shift_of(self, day: int) -> int | None:
        """The offset of a whole day; None if it changes within the day, as for daylight saving."""
        if day not in self._shifts:
            _make_room(self._shifts)
            first, last = (self._clock.offset(time) for time in (day * DAY, day * DAY + DAY))
            self._shifts[day] = first if first == last else None
        return self._shifts[day]


@lru_cache(maxsize=64)
def calendar_of(item: LayoutItem) -> Calendar:
    return Calendar(item)


def times_of(values: FieldValues, what: str) -> tuple[Column, Faults]:
    """Numbers and ISO texts as microseconds since 1970; other texts are faults."""
    distinct = values.distinct
    times = _whole(distinct)
    times = _iso(distinct) if times is None else times
    if times is not None:
        return times.take(values.codes), values.faults
    found: list[int | None] = []
    refused: dict[int, Fault] = {}
    for code, text in enumerate(distinct.to_pylist()):
        try:
            found.append(micros(text) if text else None)
        except NotATime as error:
            found.append(None)
            refused[code] = ValueFault("NotATime", str(error), f"{error}: {text[:LONGEST]!r}").prefixed(what)
    return pa.array(found, pa.int64()).take(values.codes), {**faults_by_row(values.codes, refused), **values.faults}


def micros(text: str) -> int:
    """The microseconds of one text."""
    if NUMBER.fullmatch(text):
        return _scaled(text)
    if not re.match(ISO, text):
        raise NotATime("is not a time: neither a number nor ISO 8601 such as 2026-01-31T23:59:59Z")
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise NotATime("is not a time: there is no such day, hour or time zone") from None
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time
    return (time - EPOCH) // MICROSECOND


def _scaled(text: str) -> int:
    with localcontext(prec=2 * LONGEST):
        # A longer number is no time, and would take long to compute.
        number = Decimal(text if len(text) <= LONGEST else "Infinity")
        for below, scale in SCALES:
            if abs(number) < below:
                return int((number * scale).to_integral_value(ROUND_FLOOR))
    raise NotATime("is not a time: too long a number, even for microseconds since 1970")


def _whole(distinct: Column) -> Column | None:
    """The times, if all are whole numbers and none is too large."""
    if distinct.null_count or not pc.all(pc.match_substring_regex(distinct, WHOLE), min_count=0).as_py():
        return None
    numbers = distinct.cast(pa.int64()).to_numpy()
    size = np.abs(numbers)
    if (size >= SCALES[-1][0]).any():
        return None
    return pa.array(np.select([size < below for below, _ in SCALES], [numbers * scale for _, scale in SCALES]))


def _iso(distinct: Column) -> Column | None:
    """The times, if Arrow reads all of the texts."""
    if not pc.all(pc.match_substring_regex(distinct, ISO), min_count=0).as_py():
        return None
    zoned = pc.match_substring_regex(distinct, ZONED)
    kind = pa.timestamp("us", "UTC") if pc.any(zoned).as_py() else pa.timestamp("us")
    for texts in (distinct, pc.replace_substring_regex(distinct, TOO_FINE, r"\1")):
        try:
            return texts.cast(kind).cast(pa.int64())
        except pa.ArrowInvalid:
            continue
    return None


def _make_room(kept: dict[int, Any]) -> None:
    if len(kept) >= MOST_KEPT:
        kept.clear()
