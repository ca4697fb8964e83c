"""The folders that a time makes: a Java-style pattern, shown in a time zone and in the words of a language.

Times are microseconds since 1970. Local ones count as a clock on the wall does, with no thought of its zone.
"""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from babel import Locale, UnknownLocaleError
from babel.dates import DateTimeFormat
from babel.localedata import LocaleDataDict, load

from s3sink_job.errors import FinalError
from s3sink_job.flush.escaping import MISSING, escape, segment
from s3sink_job.layout import Item
from s3sink_job.spec.datepatterns import Token, levels_of

SECOND, DAY = 1_000_000, 86_400_000_000
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a clock on the wall
LEAST = -62_104_060_800 * SECOND
"""The start of the year 2. Neither end of the calendar is a place for time zones and weeks."""
BEYOND = 253_370_764_800 * SECOND
"""The start of the year 9999."""
RANGE = "the years 2 to 9998"
UNITS = {"s": SECOND, "m": 60 * SECOND} | dict.fromkeys("HhKka", 3600 * SECOND)


class Clock:
    def __init__(self, item: Item) -> None:
        self._levels = levels_of(item.format)
        self._zone, self._locale = zone_of(item.timezone), locale_of(item.locale)
        # Weeks go by the country. Where there is none Java counts them as in the United States.
        self._weeks = self._locale if self._locale.territory else locale_of("en_US")
        self.every = round(item.every * SECOND) if item.every else 0
        fields = [token.text for level in self._levels for token in level if token.field]
        self.unit = min((_unit(field) for field in fields), default=DAY)
        """The finest that the pattern shows."""

    @property
    def missing(self) -> str:
        """As many folders as for any time, and by the same names."""
        return "/".join(f"{_name(level)}{MISSING}" for level in self._levels)

    @property
    def hint(self) -> str:
        return "/".join(f"{_name(level)}*" for level in self._levels)

    def offset(self, time: int) -> int:
        """How far the local time is ahead of UTC."""
        shift = (datetime.fromtimestamp(0, UTC) + timedelta(microseconds=time)).astimezone(self._zone).utcoffset()
        return shift // timedelta(microseconds=1) if shift else 0

    def round(self, local: int) -> int:
        """Down to what all times of one folder share."""
        step = self.every or self.unit
        return local // step * step

    def folder(self, local: int) -> str:
        """Of a local time that was rounded."""
        shown = EPOCH + timedelta(microseconds=local)
        if self.every:
            # It may be an hour that daylight saving left out: then the time that the clocks were set to.
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
def clock_of(item: Item) -> Clock:
    return Clock(item)


def zone_of(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        raise FinalError(f"spec.layout: there is no time zone {name!r}", reason="UnknownTimeZone") from None


class OwnLocale(Locale):
    """A language with names of its own: Babel keeps those it looked up where other languages find them, too."""

    @cached_property
    def _data(self) -> LocaleDataDict:
        own: Any = deepcopy(load(str(self)))
        return LocaleDataDict(own)


@lru_cache(maxsize=64)
def locale_of(name: str) -> Locale:
    try:
        return OwnLocale.parse(name.replace("-", "_"))
    except (UnknownLocaleError, ValueError):
        raise FinalError(f"spec.layout: there is no locale {name!r}", reason="UnknownLocale") from None


def _unit(field: str) -> int:
    if field[0] == "S":
        return max(1, SECOND // int(10 ** len(field)))
    return UNITS.get(field[0], DAY)


def _name(level: tuple[Token, ...]) -> str:
    """`year=` of `'year='yyyy`, nothing where the folder is not named like that."""
    text = "" if level[0].field else "".join(token.text for token in level[: _fixed(level)])
    name, equals, _ = text.partition("=")
    return escape(name) + equals if equals else ""


def _fixed(level: tuple[Token, ...]) -> int:
    return next((number for number, token in enumerate(level) if token.field), len(level))
