"""Aligned flushes by the clock of a time zone, also when that clock changes."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_job.base.errors import FinalError
from s3sink_job.flush.aligned_times import next_aligned

HOUR, DAY = 3600, 86_400
ZONES = ("Europe/Berlin", "America/New_York", "America/Havana", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia")
STEPS = (600, 900, HOUR, 2 * HOUR, 6 * HOUR, 7 * HOUR, DAY)


def at(text: str) -> float:
    return datetime.fromisoformat(text).astimezone(UTC).timestamp()


def times_between(start: float, end: float, step: float, zone: str) -> list[float]:
    found = []
    while (start := next_aligned(start, step, zone)) <= end:
        found.append(start)
    return found


def shown(times: list[float], zone: str) -> list[str]:
    return [datetime.fromtimestamp(time, ZoneInfo(zone)).strftime("%d %H:%M") for time in times]


def test_a_day_is_written_at_midnight_of_the_zone() -> None:
    assert next_aligned(at("2026-07-01T12:00Z"), DAY, "Europe/Berlin") == at("2026-07-02T00:00+02:00")
    assert next_aligned(at("2026-07-01T22:00Z"), DAY, "Europe/Berlin") == at("2026-07-03T00:00+02:00")


@pytest.mark.parametrize(
    ("zone", "start", "hours"),
    [
        ("Europe/Berlin", "2026-03-29T00:00+01:00", 23),
        ("Europe/Berlin", "2026-10-25T00:00+02:00", 25),
        # The clock shows midnight twice.
        ("America/Havana", "2026-11-01T00:00-04:00", 25),
        # The clock never shows midnight.
        ("America/Santiago", "2026-09-06T01:00-03:00", 23),
    ],
)
def test_a_day_of_23_or_25_hours_has_one_midnight(zone: str, start: str, hours: int) -> None:
    first = at(start)

    assert next_aligned(first - 1, DAY, zone) == first
    assert next_aligned(first, DAY, zone) == first + hours * HOUR


def test_an_hour_that_is_shown_twice_has_its_times_once() -> None:
    night = times_between(at("2026-10-25T01:30+02:00"), at("2026-10-25T03:30+01:00"), 900, "Europe/Berlin")

    expected = ["01:45", "02:00", "02:15", "02:30", "02:45", "03:00", "03:15", "03:30"]
    assert shown(night, "Europe/Berlin") == [f"25 {time}" for time in expected]
    assert night[5] - night[4] == HOUR + 900


def test_times_that_the_clock_skips_are_one_time() -> None:
    night = times_between(at("2026-03-29T01:30+01:00"), at("2026-03-29T03:30+02:00"), 900, "Europe/Berlin")

    assert shown(night, "Europe/Berlin") == [f"29 {time}" for time in ("01:45", "03:00", "03:15", "03:30")]


def test_an_unknown_time_zone_is_named() -> None:
    with pytest.raises(FinalError, match=r"spec\.flush\.timezone: unknown time zone 'Europe/Atlantis'"):
        next_aligned(0, 900, "Europe/Atlantis")


@given(start=st.integers(0, 2**31).map(lambda time: time // 60 * 60), step=st.sampled_from(STEPS))
def test_utc_by_its_other_names_is_utc(start: int, step: int) -> None:
    assert next_aligned(start, step, "Etc/UTC") == next_aligned(start, step, "UTC")


CHANGES = [
    (zone, change)
    for zone in ZONES
    for change in ("2026-03-08", "2026-03-29", "2026-04-05", "2026-10-04", "2026-10-25", "2026-11-01", "2011-12-30")
]


@given(
    place=st.sampled_from(CHANGES),
    step=st.sampled_from(STEPS),
    minutes=st.integers(-2000, 2000),
    extra=st.floats(0, 59),
)
def test_the_next_time_is_the_first_at_which_the_clock_reaches_a_multiple(
    place: tuple[str, str], step: int, minutes: int, extra: float
) -> None:
    zone, day = place
    since = at(f"{day}T00:00Z") + 60 * minutes + extra
    clock = ZoneInfo(zone)

    def reached(minute: int) -> int:
        """How many multiples the clock shows, or has passed."""
        shown = datetime.fromtimestamp(minute * 60, clock)
        return math.floor(shown.replace(tzinfo=UTC).timestamp() / step)

    # Changes and multiples are at whole minutes: the clock is read at each.
    now = math.floor(since / 60)
    most = max(reached(minute) for minute in range(now - 26 * 60, now + 1))
    expected = next(minute for minute in range(now + 1, now + 60 * 60) if reached(minute) > most)

    assert next_aligned(since, step, zone) == expected * 60


@given(place=st.sampled_from(CHANGES), step=st.sampled_from(STEPS), minutes=st.integers(-2000, 2000))
def test_times_go_forward_and_none_is_left_out(place: tuple[str, str], step: int, minutes: int) -> None:
    zone, day = place
    start = at(f"{day}T00:00Z") + 60 * minutes
    found = times_between(start, start + 2 * DAY, step, zone)

    assert all(earlier < later for earlier, later in pairwise(found))
    for earlier, later in pairwise(found):
        # Whenever the driver looks between two of them, the next one is the same.
        assert next_aligned((earlier + later) / 2, step, zone) == later
