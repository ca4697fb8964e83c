"""Formats a time as folders, by a Java-style pattern in a time zone and a language.

Times are microseconds since 1970. A local time is what a clock on the wall shows, without its time zone.
"""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from typing import Any

from babel import Locale, UnknownLocaleError
from babel.dates import DateTimeFormat
from babel.localedata import LocaleDataDict, load

from s3sink_api.spec.date_patterns import Token, levels_of
from s3sink_job.base.errors import FinalError
from s3sink_job.base.time_zones import zone_of
from s3sink_job.layout.escaping import MISSING, escape, segment
from s3sink_job.layout.settings import LayoutItem

SECOND, DAY = 1_000_000, 86_400_000_000
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - local time
LEAST = -62_104_060_800 * SECOND
"""The start of the year 2. In the first and last year Python cannot apply every time zone or week."""
BEYOND = 253_370_764_800 * SECOND
"""The start of the year 9999."""
RANGE = "the years 2 to 9998"
UNITS = {"s": SECOND, "m": 60 * SECOND} | dict.fromkeys("HhKka", 3600 * SECOND)


class Clock:
    def __init__(self, item: LayoutItem) -> None:
        self._levels = levels_of(item.format)
        self._zone, self._locale = zone_of(item.timezone, "spec.layout"), locale_of(item.locale)
        # The first day of a week depends on the country. Without one Java takes the United States.
        self._weeks = self._locale if self._locale.territory else locale_of("en_US")
        self.every = round(item.every * SECOND) if item.every else 0
        fields = [token.text for level in self._levels for token in level if token.field]
        self.unit = min((_unit(field) for field in fields), default=DAY)
        """The finest unit in the pattern."""

    @property
    def missing(self) -> str:
        """The folders of a record without a time: as many as for any time, with the same names."""
        return "/".join(f"{_name(level)}{MISSING}" for level in self._levels)

    @property
    def hint(self) -> str:
        """The folders with `*` in place of times."""
        return "/".join(f"{_name(level)}*" for level in self._levels)

    def offset(self, time: int) -> int:
        """How far the local time is ahead of UTC."""
        shift = (datetime.fromtimestamp(0, UTC) + timedelta(microseconds=time)).astimezone(self._zone).utcoffset()
        return shift // timedelta(microseconds=1) if shift else 0

    def round(self, local: int) -> int:
        """Rounds down to the start of the folder's time."""
        step = self.every or self.unit
        return local // step * step

    def folder(self, local: int) -> str:
        """The folder of a rounded local time."""
        shown = EPOCH + timedelta(microseconds=local)
        if self.every:
            # Daylight saving may skip this hour: then the time after the change.
            shown = shown.replace(tzinfo=self._zone).astimezone(UTC).astimezone(self._zone)
        return "/".join(segment("".join(self._text(token, shown) for token in level)) for level in self._levels)

    def folder_at(self, time: int) -> str:
        return self.folder(self.round(time + self.offset(time)))

    def _text(self, token: Token, shown: datetime) -> str:
        if not token.field:
            return escape(token.text, but="=")
        if token.text[0] == "S":
            return f"{shown.microsecond:06d}".ljust(9, "0")[: len(token.text)]
        of_weeks = token.text[0] in "Yw" or token.text in {"e", "ee"}
        return escape(DateTimeFormat(shown, self._weeks if of_weeks else self._locale)[token.text])


@lru_cache(maxsize=64)
def clock_of(item: LayoutItem) -> Clock:
    return Clock(item)


class OwnLocale(Locale):
    """A locale with its own copy of the names: Babel shares a cache between locales, and mixes up their names."""

    @cached_property
    def _data(self) -> LocaleDataDict:
        own: Any = deepcopy(load(str(self)))
        return LocaleDataDict(own)


@lru_cache(maxsize=64)
def locale_of(name: str) -> Locale:
    try:
        return OwnLocale.parse(name.replace("-", "_"))
    except (UnknownLocaleError, ValueError):
        raise FinalError(f"spec.layout: unknown locale {name!r}", reason="UnknownLocale") from None


def _unit(field: str) -> int:
    if field[0] == "S":
        return max(1, SECOND // int(10 ** len(field)))
    return UNITS.get(field[0], DAY)


def _name(level: tuple[Token, ...]) -> str:
    """`year=` of `'year='yyyy`; empty if the folder has no name."""
    text = "" if level[0].field else "".join(token.text for token in level[: _fixed(level)])
    name, equals, _ = text.partition("=")
    return escape(name) + equals if equals else ""


def _fixed(level: tuple[Token, ...]) -> int:
    return next((number for number, token in enumerate(level) if token.field), len(level))
