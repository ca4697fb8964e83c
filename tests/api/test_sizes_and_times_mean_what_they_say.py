from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_api.spec import FromTimestamp, format_duration, format_quantity, parse_duration, parse_quantity
from tests.api.documents import errors_of, everything_built, minimal, parsed, put


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64Mi", 64 * 2**20),
        ("500M", 500_000_000),
        ("1Gi", 2**30),
        ("1.5Gi", 3 * 2**29),
        ("1.1Ki", 1127),
        ("2k", 2000),
        ("2Ki", 2048),
        ("1000", 1000),
        (1000, 1000),
        ("0", 0),
        ("7Ei", 7 * 2**60),
    ],
)
def test_a_quantity_is_a_number_of_bytes(text, size):
    assert parse_quantity(text) == size


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "Mi",
        "64 Mi",
        "-1",
        "64mb",
        "1e3",
        "500m",
        "0.3",
        "8Ei",
        "٣Mi",
        "9" * 5000,
        True,
        1.5,
        None,
        [],
        -1,
    ],
)
def test_what_is_no_quantity_is_refused(wrong):
    with pytest.raises(ValueError):
        parse_quantity(wrong)


@pytest.mark.parametrize("text", ["64mb", "64 MiB", "64mi", "64MB"])
def test_the_units_of_other_tools_get_a_hint(text):
    message = errors_of(put(minimal(), "spec.destination.partSize", text))["spec.destination.partSize"]
    assert message == f'must be a quantity such as 64Mi, got "{text}"; write 64Mi'


@given(st.integers(0, 2**63 - 1))
def test_a_quantity_survives_being_written_and_read(size):
    assert parse_quantity(format_quantity(size)) == size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("15m", 900),
        ("1h30m", 5400),
        ("50ms", 0.05),
        ("1m500ms", 60.5),
        ("1.5h", 5400),
        ("48h", 172800),
        ("0s", 0),
    ],
)
def test_a_duration_is_a_number_of_seconds(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "wrong", ["", "5", "m", "1 h", "-5s", "1d", "1h30", "0.5ms", "9" * 40 + "h", "٣s", 5, 1.5, None]
)
def test_what_is_no_duration_is_refused(wrong):
    with pytest.raises(ValueError):
        parse_duration(wrong)


@given(st.integers(0, 10**12))
def test_a_duration_survives_being_written_and_read(millis):
    assert parse_duration(format_duration(millis / 1000)) == millis / 1000


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("2d", "days are written in hours: 48h"),
        (5, "with its unit, such as 15m, got 5"),
        ("0s", 'must be longer than 0s, got "0s"'),
        ("5", 'must be a duration such as 50ms, 30s, 15m or 1h30m, got "5"'),
    ],
)
def test_an_interval_without_a_meaning_is_refused(wrong, said):
    assert said in errors_of(put(minimal(), "spec.flush.interval", wrong))["spec.flush.interval"]


START = "spec.source.startingOffsets"


@pytest.mark.parametrize(
    ("value", "instant"),
    [
        ("2026-01-01T00:00:00Z", datetime(2026, 1, 1, tzinfo=UTC)),
        ("2026-01-01T00:00:00.5+01:00", datetime(2025, 12, 31, 23, 0, 0, 500000, tzinfo=UTC)),
        (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)),
        (datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), datetime(2026, 1, 1, tzinfo=UTC)),
        (date(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)),
        ("2026-01-01", datetime(2026, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_starting_time_is_an_instant_however_yaml_read_it(value, instant):
    start = parsed(START, {"position": "Timestamp", "timestamp": value}).spec.source.starting_offsets
    assert isinstance(start, FromTimestamp)
    assert start.timestamp == instant


@pytest.mark.parametrize(
    "value",
    ["2026-01-01T00:00:00", datetime(2026, 1, 1), "1700000000", 5, "2026-02-30T00:00:00Z", "yesterday", ""],  # noqa: DTZ001
)
def test_a_time_that_could_mean_two_instants_is_refused(value):
    message = errors_of(put(minimal(), START, {"position": "Timestamp", "timestamp": value}))
    assert "2026-01-01T00:00:00Z" in message[f"{START}.timestamp"]


def test_a_date_where_text_is_meant_stays_that_text():
    assert parsed("spec.reset.nonce", date(2026, 11, 1)).spec.reset.nonce == "2026-11-01"


@pytest.mark.parametrize("amount", ["500m", "2", 2, "0.5"])
def test_cpu_is_kept_as_kubernetes_reads_it(amount):
    assert parsed("spec.spark.driver.cpuRequest", amount).spec.spark.driver.cpu_request == str(amount)


@pytest.mark.parametrize("amount", ["500mi", "", "-1", True, [], "1.2345", 0.5])
def test_what_is_no_amount_of_cpu_is_refused(amount):
    with everything_built():
        assert (
            "500m" in errors_of(put(minimal(), "spec.spark.driver.cpuRequest", amount))["spec.spark.driver.cpuRequest"]
        )
