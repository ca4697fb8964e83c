"""Multiples of a duration on the clock of a time zone: the times of `flush.aligned`.

Each multiple that the clock shows is one time: when the clock shows it first. An hour that is repeated in autumn has no
times of its own. Multiples that the clock skips in spring are due together when it skips them. So a day of 23 or 25
hours has one midnight, and times never go back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from s3sink_job.base.time_zones import zone_of

FIELD = "spec.flush.timezone"


def next_aligned(since: float, step: float, timezone: str) -> float:
    """The first time after `since`. Multiples are counted from the start of 1970."""
    if timezone == "UTC":
        return (since // step + 1) * step
    zone = zone_of(timezone, FIELD)
    shown = datetime.fromtimestamp(since, zone)
    if shown.fold:
        # The clock was set back and shows these times again: the next new one is where it was set back from.
        end = _before_it_was_set_back(since, zone)
        multiple = math.ceil(end / step) * step
    else:
        multiple = ((since + _offset(since, zone)) // step + 1) * step
    return _first_shown(multiple, zone)


def _offset(time: float, zone: ZoneInfo) -> float:
    """Seconds that the clock of the zone is ahead of UTC."""
    return _seconds(datetime.fromtimestamp(time, zone))


def _offset_of(local: float, fold: int, zone: ZoneInfo) -> float:
    """The same for a time that the clock shows: for the first or the second time, if it shows it twice."""
    return _seconds(datetime.fromtimestamp(local, UTC).replace(tzinfo=zone, fold=fold))


def _seconds(shown: datetime) -> float:
    shift = shown.utcoffset()
    return shift.total_seconds() if shift else 0.0


def _before_it_was_set_back(since: float, zone: ZoneInfo) -> float:
    """What the clock would have shown next when it was set back, for a time that it shows again."""
    now = _offset(since, zone)
    local = since + now
    earlier = local - _offset_of(local, 0, zone)
    change = _first(math.floor(earlier), math.ceil(since), lambda time: _offset(time, zone) == now)
    return change + _offset(change - 1, zone)


def _first_shown(local: float, zone: ZoneInfo) -> float:
    """When the clock shows `local`, or a later time, for the first time."""
    first, second = (local - _offset_of(local, fold, zone) for fold in (0, 1))
    if second >= first:
        return first
    # The clock never shows it: it is set forward over it.
    return float(_first(math.floor(second), math.ceil(first), lambda time: time + _offset(time, zone) >= local))


def _first(low: int, high: int, holds: Callable[[float], bool]) -> int:
    """The first whole second at which it holds. It holds at `high`, and ever since it held."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
