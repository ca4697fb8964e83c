"""Cron schedules as Kubernetes takes them: five fields, or a name such as `@hourly`."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from s3sink_job.spec.problems import Refusal

_NAMED = {"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 6, _DAYS),
)
_STEP = re.compile(r"(?:(\*|\?)|([0-9]{1,2}|[a-z]{3})(?:-([0-9]{1,2}|[a-z]{3}))?)(?:/([0-9]{1,2}))?")


def _number(text: str, low: int, names: tuple[str, ...]) -> int:
    if text.isdigit():
        return int(text)
    return low + names.index(text) if text in names else -1


def _fits(part: str, low: int, high: int, names: tuple[str, ...]) -> bool:
    found = _STEP.fullmatch(part.lower())
    if not found:
        return False
    every, first, last, step = found.groups()
    if step is not None and int(step) == 0:
        return False
    if every:
        return True
    start = _number(first, low, names)
    end = start if last is None else _number(last, low, names)
    return low <= start <= end <= high


def _cron(text: str) -> str:
    if text in _NAMED:
        return text
    parts = text.split()
    if len(parts) != len(_FIELDS):
        raise Refusal('must be a cron schedule of five fields, such as "0 * * * *"')
    for part, (what, low, high, names) in zip(parts, _FIELDS, strict=True):
        if not all(_fits(item, low, high, names) for item in part.split(",")):
            raise Refusal(f'must be a cron schedule such as "0 * * * *"; its {what} does not fit {low} to {high}')
    return text


Schedule = Annotated[str, AfterValidator(_cron)]
