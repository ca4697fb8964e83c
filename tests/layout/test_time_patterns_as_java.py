"""Folders of times, compared with Java's formatter: users of Confluent's sink find the same folders."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote

import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

from s3sink_api.spec.date_patterns import MOST, check_pattern
from s3sink_job.layout.settings import LayoutItem
from s3sink_job.layout.time_patterns import Clock

FIELDS = [letter * count for letter, most in MOST.items() for count in range(1, most + 1)]
"""Every letter that a pattern may have, as often as it may have it."""
BETWEEN = "|"

# Java and we have the names and the weeks of countries from different versions of the same tables. In these languages
# both agree; they differ in one or two words of others, such as `a` in Spanish, and in the first day of China's week.
LOCALES = ["en", "ja", "de", "fr", "en-US", "de-DE", "pt-BR"]
"""Japanese comes early: its names were once shown for languages that came after it."""
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]
TIMES = [
    # New year, in one zone or the other.
    *("2025-12-31T23:59:59.999999", "2026-01-01T00:00:00", "1969-12-31T23:59:59.5"),
    # The year of the week is not the year: weeks of Sunday or Monday, of one day or of four.
    *("2016-01-01T12:00:00", "2020-12-31T12:00:00", "2021-01-03T12:00:00", "2023-01-01T12:00:00"),
    *("2024-12-29T12:00:00", "2024-12-30T12:00:00", "2027-01-02T12:00:00", "2028-01-01T12:00:00"),
    # A leap day.
    *("2024-02-29T12:34:56.123456", "2023-02-28T23:00:00", "1900-02-28T23:00:00"),
    # Clocks are put forward and back: Berlin, New York, Lord Howe, where it is half an hour.
    *("2026-03-29T00:59:59", "2026-03-29T01:00:00", "2026-10-25T00:30:00", "2026-10-25T01:30:00"),
    *("2026-03-08T06:59:59", "2026-03-08T07:00:00", "2026-11-01T05:30:00", "2026-11-01T06:30:00"),
    *("2026-04-04T14:45:00", "2026-04-04T15:15:00", "2026-10-03T15:29:59", "2026-10-03T15:30:00"),
    # Each month and day of the week, and years of fewer digits.
    *(f"2026-{month:02d}-{month + 9}T{2 * month - 1:02d}:07:09" for month in range(1, 13)),
    *("0099-05-05T00:00:00", "9998-06-30T12:00:00"),
]


def micros(time: str) -> int:
    return (datetime.fromisoformat(f"{time}+00:00") - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)


def ours(pattern: str, zone: str, locale: str, time: str) -> str:
    item = LayoutItem("Time", source="Record", format=pattern, timezone=zone, locale=locale)
    return unquote(Clock(item).folder_at(micros(time)))


class Java:
    def __init__(self, jvm: Any) -> None:
        self._time, self._locale = jvm.java.time, jvm.java.util.Locale

    def formatter(self, pattern: str, locale: str) -> Any:
        return self._time.format.DateTimeFormatter.ofPattern(pattern, self._locale.forLanguageTag(locale))

    def at(self, time: str, zone: str) -> Any:
        seconds, rest = divmod(micros(time), 1_000_000)
        return self._time.Instant.ofEpochSecond(seconds, rest * 1000).atZone(self._time.ZoneId.of(zone))


@pytest.fixture(scope="session")
def java(spark: SparkSession) -> Java:
    return Java(spark._jvm)


@pytest.mark.parametrize("locale", LOCALES)
def test_every_letter_shows_what_java_does(locale: str, java: Java) -> None:
    pattern = BETWEEN.join(FIELDS)
    formatter = java.formatter(pattern, locale)
    different: dict[tuple[str, ...], tuple[str, str]] = {}
    for zone in ZONES:
        clock = Clock(LayoutItem("Time", source="Record", format=pattern, timezone=zone, locale=locale))
        for time in TIMES:
            theirs = str(formatter.format(java.at(time, zone))).split(BETWEEN)
            shown = unquote(clock.folder_at(micros(time))).split(BETWEEN)
            both = zip(FIELDS, theirs, shown, strict=True)
            different |= {(field, zone, time): (one, other) for field, one, other in both if one != other}
    assert different == {}


@pytest.mark.parametrize(
    "pattern",
    [
        "'year='yyyy/'month='MM/'day='dd/'hour='HH",
        "''",
        "''''",
        "''''''",
        "''yyyy''",
        "'it''s' yyyy",
        "'''yyyy'''",
        "'a'''yyyy'''b'",
        "yyyy'''MM'''dd",
        "yyyy''''MM",
        "'[x]{y}#' yyyy",
        "'größer' yyyy年MM月dd日",
        "yyyyMMdd'T'HHmmssSSS",
        "yyyy-MM-dd HH.mm, EEEE a h",
        "'50%' yyyy*100",
    ],
)
def test_quotes_and_other_characters_are_read_like_in_java(pattern: str, java: Java) -> None:
    time = "2024-02-29T12:34:56.123456"

    assert check_pattern(pattern) == ""
    assert ours(pattern, "Asia/Kolkata", "en", time) == java.formatter(pattern, "en").format(
        java.at(time, "Asia/Kolkata")
    )


@pytest.mark.parametrize("pattern", ["'", "yyyy'", "'''", "'''yyyy", "'''''", "'a''", "{", "#", "yyyy]"])
def test_what_java_refuses_is_refused_here(pattern: str, java: Java) -> None:
    assert check_pattern(pattern)
    with pytest.raises(IllegalArgumentException):
        java.formatter(pattern, "en")


@pytest.mark.parametrize("letter", [*MOST])
def test_a_letter_more_often_than_java_takes_it_is_refused_here(letter: str, java: Java) -> None:
    """Where Java takes more of them, as for years, they would only add zeros."""
    assert check_pattern(letter * (MOST[letter] + 1))
    java.formatter(letter * MOST[letter], "en")
