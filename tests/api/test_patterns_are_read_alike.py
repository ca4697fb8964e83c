"""The API server reads the parser's patterns with RE2: nothing in them may mean something else there."""

from __future__ import annotations

import re
from datetime import date

import pytest

from s3sink_api.spec import regexes
from s3sink_api.spec.kafka_properties import PREFIXED, PROPERTY, REFUSED_PROPERTIES, SECRET_PROPERTIES
from s3sink_api.spec.spark_conf import REFUSED_SETTINGS, SETTING

PATTERNS = {name: value for name, value in vars(regexes).items() if isinstance(value, str) and name.isupper()}
PATTERNS |= {"PROPERTY": PROPERTY, "PREFIXED": PREFIXED, "SETTING": SETTING, "SECRET_PROPERTIES": SECRET_PROPERTIES[0]}
PATTERNS |= {pattern: pattern for pattern, _ in (*REFUSED_PROPERTIES, *REFUSED_SETTINGS)}


@pytest.mark.parametrize("name", PATTERNS)
def test_no_pattern_holds_what_the_two_dialects_read_differently(name):
    pattern = PATTERNS[name]
    assert re.compile(pattern, re.ASCII)
    assert not re.search(r"\\[dDsSwWbBAZzkpPQEuUN0-9]|\(\?|[*+?}]\+|(?<!\[)\^", pattern)


def test_an_instant_is_a_day_of_the_calendar():
    for year in range(1970, 3000):
        for month, day in ((m, d) for m in range(14) for d in (0, 1, 9, 10, 28, 29, 30, 31, 32)):
            try:
                expected = bool(date(year, month, day))
            except ValueError:
                expected = False
            text = f"{year}-{month:02}-{day:02}"
            assert bool(re.fullmatch(regexes.INSTANT, text)) == expected, text


@pytest.mark.parametrize(
    ("what", "pattern", "low", "high"), regexes.CRON_FIELDS, ids=[f[0] for f in regexes.CRON_FIELDS]
)
def test_ranges_of_a_schedule_run_forwards_within_their_bounds(what, pattern, low, high):
    compiled = re.compile(pattern)
    for first in range(100):
        assert bool(compiled.fullmatch(f"{first}")) == (low <= first <= high)
        assert bool(compiled.fullmatch(f"{first:02}")) == (low <= first <= high)
        for last in range(100):
            assert bool(compiled.fullmatch(f"{first}-{last}")) == (low <= first <= last <= high), (first, last)


@pytest.mark.parametrize("port", [1, 9, 10, 80, 999, 1000, 9092, 9999, 10000, 59999, 64999, 65000, 65529, 65530, 65535])
def test_every_port_is_one(port):
    assert re.fullmatch(regexes.SERVERS, f"kafka:{port}")


@pytest.mark.parametrize("port", ["0", "00", "080", "65536", "65540", "65600", "66000", "70000", "100000", ""])
def test_what_is_no_port_is_none(port):
    assert not re.fullmatch(regexes.SERVERS, f"kafka:{port}")
