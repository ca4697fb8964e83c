"""The times of a cron schedule, in UTC, as Kubernetes reads it. Only for schedules that were validated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from s3sink_api.spec.regexes import CRON_FIELDS, DAYS, MONTHS

_NAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_DAY = timedelta(days=1)
_FURTHEST = 366 * 8
"""Days: the 29th of February may be eight years away."""


@dataclass(frozen=True)
class CronTimes:
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """From 0, Sunday."""
    either: bool
    """Whether one of the two kinds of days is enough, as cron has it if both are restricted."""

    def last(self, after: datetime, until: datetime) -> datetime | None:
        """The last time in `(after, until]`."""
        day = until.date()
        while day >= after.date():
            found = [time for time in self._times(day.year, day.month, day.day) if after < time <= until]
            if found:
                return max(found)
            day -= _DAY
        return None

    def next(self, after: datetime) -> datetime | None:
        day = after.date()
        for _ in range(_FURTHEST):
            found = [time for time in self._times(day.year, day.month, day.day) if time > after]
            if found:
                return min(found)
            day += _DAY
        return None

    def _times(self, year: int, month: int, day: int) -> Iterator[datetime]:
        midnight = datetime(year, month, day, tzinfo=UTC)
        kinds = (day in self.days, midnight.isoweekday() % 7 in self.weekdays)
        if month in self.months and (any(kinds) if self.either else all(kinds)):
            for hour in self.hours:
                for minute in self.minutes:
                    yield midnight.replace(hour=hour, minute=minute)


def cron_times(schedule: str) -> CronTimes:
    texts = _NAMES.get(schedule, schedule).lower().split()
    names = ((), (), (), MONTHS, DAYS)
    bounds = [(low, high) for _, _, low, high in CRON_FIELDS]
    fields = (_values(text, *bound, own) for text, bound, own in zip(texts, bounds, names, strict=True))
    minutes, hours, days, months, weekdays = fields
    open_days = [text[0] in "*?" for text in (texts[2], texts[4])]
    return CronTimes(minutes, hours, days, months, weekdays, either=not any(open_days))


def _values(text: str, low: int, high: int, names: tuple[str, ...]) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        if first in {"*", "?"}:
            start, end = low, high
        else:
            start = _number(first, low, names)
            end = _number(last, low, names) if last else high if step else start
        found.update(range(start, end + 1, int(step or 1)))
    return frozenset(found)


def _number(text: str, low: int, names: tuple[str, ...]) -> int:
    return names.index(text) + low if text in names else int(text)
