"""Folders by time: local time of the configured zone, for every way of writing a time."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from s3sink_api.spec.date_patterns import check_pattern
from s3sink_job.base.errors import FinalError
from s3sink_job.layout.escaping import MISSING
from s3sink_job.layout.settings import TOPIC, LayoutItem, ObjectLayout
from s3sink_job.layout.time_folders import NotATime, micros
from s3sink_job.layout.time_patterns import BEYOND, LEAST, clock_of
from tests.decode.batches import Record, batch_of
from tests.layout.test_folders import folders, one

HOURLY = "yyyy/MM/dd/HH"
MILLIS = 1_700_000_000_123
ZONES = ["UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia"]
DAY = 86_400_000


def by_record(format: str, **how: Any) -> LayoutItem:
    return LayoutItem("Time", source="Record", format=format, **how)


def by_field(format: str, **how: Any) -> LayoutItem:
    return LayoutItem("Time", source="Field", path=("t",), format=format, **how)


def at(time: datetime) -> int:
    return (time - datetime.fromtimestamp(0, UTC)) // timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("pattern", "shown"),
    [
        ("'year='yyyy/'month='MM/'day='dd/'hour='HH", "year=2023/month=11/day=14/hour=23"),
        ("'dt='yyyy-MM-dd", "dt=2023-11-14"),
        ("yy.M.d", "23.11.14"),
        ("uuuu-DDD", "2023-318"),
        ("YYYY-'W'ww e", "2023-W46 3"),
        ("MMM MMMM LLLL", "Nov November November"),
        ("E EEEE", "Tue Tuesday"),
        ("Q QQQ", "4 Q4"),
        ("h a K k", "11 PM 11 23"),
        ("H:mm:ss.SSS", "23%3A13%3A20.123"),
        ("SSSSSSSSS S", "123000000 1"),
        ("'it''s' yyyy", "it%27s 2023"),
        ("''yyyy''", "%272023%27"),
        ("''''yyyy", "%272023"),
        ("'50%=x'", "50%25=x"),
        ("'..'/yyyy", "%2E%2E/2023"),
    ],
)
def test_a_pattern_gives_the_same_text_as_in_java(pattern: str, shown: str) -> None:
    assert check_pattern(pattern) == ""
    assert one(Record(b"", millis=MILLIS), by_record(pattern, timezone="Europe/Berlin")) == shown


@pytest.mark.parametrize(("locale", "shown"), [("de", "Dienstag, November"), ("fr-FR", "mardi, novembre")])
def test_months_and_days_have_the_names_of_the_language(locale: str, shown: str) -> None:
    assert one(Record(b"", millis=MILLIS), by_record("EEEE, MMMM", locale=locale)) == shown


def test_languages_side_by_side_keep_their_own_names() -> None:
    shown = [one(Record(b"", millis=MILLIS), by_record("LLLL", locale=name)) for name in ("ja", "es", "ar", "pt-BR")]

    assert shown == ["11月", "noviembre", "نوفمبر", "novembro"]


@pytest.mark.parametrize(("locale", "shown"), [("en-US", "2025 1 2"), ("de-DE", "2025 1 1"), ("en", "2025 1 2")])
def test_weeks_are_those_of_the_country(locale: str, shown: str) -> None:
    monday = Record(b"", millis=at(datetime(2024, 12, 30, tzinfo=UTC)))

    assert one(monday, by_record("YYYY w e", locale=locale)) == shown


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("yyyy-MM-ddTHH", "the letter T"),
        ("yyyy/MM/dd/z", "the letter z"),
        ("yyyy'open", "close every quote"),
        ("MMMMMM", "at most 5"),
        ("aa", "at most 1"),
        ("yyyy//MM", "both sides of each /"),
        ("/yyyy", "both sides of each /"),
        ("yyyy'/'", "both sides of each /"),
        ("", "both sides of each /"),
        ("[yyyy]", "in quotes"),
    ],
)
def test_a_pattern_that_cannot_be_shown_is_refused_with_the_reason(pattern: str, why: str) -> None:
    assert why in check_pattern(pattern)


def test_a_zone_or_language_that_does_not_exist_is_a_final_error() -> None:
    with pytest.raises(FinalError, match="unknown time zone 'Mars/Olympus'"):
        clock_of(by_record("yyyy", timezone="Mars/Olympus"))
    with pytest.raises(FinalError, match="unknown locale 'xx'"):
        clock_of(by_record("yyyy", locale="xx"))


times = st.integers(-2_208_988_800_000, 4_102_444_800_000) | st.sampled_from(
    [at(datetime(2024, *when, tzinfo=UTC)) for when in ((3, 31, 1), (10, 27, 1), (4, 6, 15), (3, 10, 5, 30))]
).flatmap(lambda middle: st.integers(middle - DAY, middle + DAY))


@given(st.lists(times, min_size=1, max_size=6), st.sampled_from(ZONES), st.sampled_from([1, 5, 60, 3600, 86400]))
@example([1_711_846_800_000, 1_711_846_799_999], "Europe/Berlin", 60)
@example([-1, 0, -2_208_988_800_000], "America/St_Johns", 3600)
def test_folders_of_a_batch_are_those_of_its_single_times(millis: list[int], zone: str, unit: int) -> None:
    pattern = {1: "SSS ss mm HH", 5: "ss mm HH", 60: "mm HH", 3600: "HH", 86400: "D"}[unit]
    known = [time for time in millis if time != -1] or [0]

    found, bad = folders(batch_of(*(Record(b"", millis=time) for time in known)), by_record(pattern, timezone=zone))

    assert not bad
    for time, folder in zip(known, found or [], strict=True):
        local = (datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=time)).astimezone(ZoneInfo(zone))
        shown = {"SSS": f"{local:%f}"[:3], "ss": f"{local:%S}", "mm": f"{local:%M}", "HH": f"{local:%H}"}
        shown["D"] = str(local.timetuple().tm_yday)
        assert folder == " ".join(shown[part] for part in pattern.split())


@given(
    st.lists(times, min_size=1, max_size=6), st.sampled_from(ZONES), st.sampled_from([900, 3600, 7200, 21600, 86400])
)
@example([1_711_846_800_000], "Europe/Berlin", 7200)
def test_steps_are_counted_in_local_time(millis: list[int], zone: str, every: int) -> None:
    item = by_record("yyyy-MM-dd HH.mm", timezone=zone, every=float(every))
    known = [time for time in millis if time != -1] or [0]

    found, _ = folders(batch_of(*(Record(b"", millis=time) for time in known)), item)

    for time, folder in zip(known, found or [], strict=True):
        local = (datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=time)).astimezone(ZoneInfo(zone))
        start = datetime.fromtimestamp(0, UTC).replace(tzinfo=None)
        floor = start + (local.replace(tzinfo=None) - start) // timedelta(seconds=every) * timedelta(seconds=every)
        assert (
            folder
            == f"{floor.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC).astimezone(ZoneInfo(zone)):%Y-%m-%d %H.%M}"
        )


def test_an_hour_that_daylight_saving_skips_has_no_folder() -> None:
    """Two hours from 02:00 on, in the night in which 02:00 became 03:00: like Confluent's partitioner."""
    item = by_record("HH", timezone="Europe/Berlin", every=7200.0)

    assert one(Record(b"", millis=at(datetime(2024, 3, 31, 1, 30, tzinfo=UTC))), item) == "03"


def test_the_hour_that_daylight_saving_repeats_is_one_folder() -> None:
    batch = batch_of(*(Record(b"", millis=at(datetime(2024, 10, 27, hour, 30, tzinfo=UTC))) for hour in (0, 1)))

    assert folders(batch, by_record("HH", timezone="Europe/Berlin")) == (["02", "02"], {})


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("1700000000", "2023-11-14 22.13.20.000000"),
        ("1700000000123", "2023-11-14 22.13.20.123000"),
        ("1700000000123456", "2023-11-14 22.13.20.123456"),
        ('"1700000000123"', "2023-11-14 22.13.20.123000"),
        ('"1700000000.9999999"', "2023-11-14 22.13.20.999999"),
        ("1.7e9", "2023-11-14 22.13.20.000000"),
        ("-1", "1969-12-31 23.59.59.000000"),
        ("-0.0000001", "1969-12-31 23.59.59.999999"),
        ("99999999999", "5138-11-16 09.46.39.000000"),
        ("100000000000", "1973-03-03 09.46.40.000000"),
        ("99999999999999", "5138-11-16 09.46.39.999000"),
        ("100000000000000", "1973-03-03 09.46.40.000000"),
        ('"2023-11-14T22:13:20Z"', "2023-11-14 22.13.20.000000"),
        ('"2023-11-14T22:13:20"', "2023-11-14 22.13.20.000000"),
        ('"2023-11-14 22:13:20.5"', "2023-11-14 22.13.20.500000"),
        ('"2023-11-14T23:13:20.123456789+01:00"', "2023-11-14 22.13.20.123456"),
        ('"2023-11-14T23:13+0100"', "2023-11-14 22.13.00.000000"),
        ('"2023-11-14 23:13:20+01"', "2023-11-14 22.13.20.000000"),
        ('"2023-11-14"', "2023-11-14 00.00.00.000000"),
        ('"0099-01-01"', "0099-01-01 00.00.00.000000"),
    ],
)
def test_a_time_in_a_field_may_be_a_number_or_iso_text(written: str, shown: str) -> None:
    item, value = by_field("yyyy-MM-dd HH.mm.ss.SSSSSS"), b'{"t":%b}' % written.encode()

    assert one(value, item) == shown
    assert folders(batch_of(value, b'{"t":"x"}'), item)[0][0] == shown  # type: ignore[index]


@pytest.mark.parametrize(
    "written",
    ['"yesterday"', "true", '"2023-02-30"', '"2023-11-14T25:00:00Z"', '"2023-11-14T10:00:60Z"', '"14.11.2023"', '"T"',
     '"2023-11-14T10"', '"20231114T101010Z"', "100000000000000000", "1e300", '"0000-01-01"', '"0001-01-01"',
     '"9999-01-01"', '"2023-11-14T10:00:00+25:00"', '"2023-11-14T10:00:00+01:99"', '"\u0661\u0667"', '" 1700000000"',
     '"1_700_000_000"', '"NaN"', '"2023-11-14Z"', '"9' + "9" * 80 + '"'],
)  # fmt: skip
def test_a_time_that_cannot_be_read_is_an_error_even_where_missing_ones_are_not(written: str) -> None:
    item, value = by_field(HOURLY), b'{"t":%b}' % written.encode()

    found, bad = folders(batch_of(b'{"t":1700000000}', value, b'{"t":"2023-11-14"}'), item)

    assert list(bad) == [1]
    assert bad[1].startswith("time in value field t is ")
    assert found is not None
    assert (found[0], found[2]) == ("2023/11/14/22", "2023/11/14/00")
    assert list(folders(batch_of(value), item)[1]) == [0]


def test_a_time_that_is_no_scalar_is_an_error() -> None:
    assert "non-primitive" in one(b'{"t":{}}', by_field(HOURLY))


@pytest.mark.parametrize("value", [b"{}", b'{"t":null}', b'{"t":""}', None])
def test_a_missing_time_has_as_many_folders_as_any_other(value: bytes | None) -> None:
    item = by_field("'year='yyyy/MM/'d='dd")

    assert one(value, item) == f"year={MISSING}/{MISSING}/d={MISSING}"
    assert one(value, item, missing="Fail").startswith("time in value field t is missing")


def test_a_record_without_a_timestamp_has_a_missing_time() -> None:
    """Very old producers set none: Kafka gives -1."""
    assert one(Record(b"", millis=-1), by_record("yyyy")) == MISSING
    assert one(Record(b"", millis=-2), by_record("yyyy")) == "1969"


@pytest.mark.parametrize(
    "millis", [-62_135_596_800_000 - DAY, LEAST // 1000 - 1, BEYOND // 1000, 9_000_000_000_000_000]
)
def test_a_time_beyond_the_calendar_is_an_error_of_that_record_alone(millis: int) -> None:
    found, bad = folders(batch_of(Record(b"", millis=millis), Record(b"", millis=MILLIS)), TOPIC, by_record("yyyy"))

    assert bad == {0: "record time is outside the years 2 to 9998"}
    assert found is not None
    assert found[1] == "orders/2023"


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("millis", [LEAST // 1000, BEYOND // 1000 - 1])
def test_times_at_the_ends_of_the_calendar_are_handled(millis: int, zone: str) -> None:
    item = by_record("yyyy YYYY ww D", timezone=zone, every=86400.0 * 400)
    found, bad = folders(batch_of(Record(b"", millis=millis)), by_record("yyyy YYYY ww D HH", timezone=zone), item)

    assert found is not None
    assert set(bad) <= {0}


@given(
    st.lists(
        st.integers(-(2**31), 2**32).map(lambda s: datetime.fromtimestamp(s / 7, UTC).replace(tzinfo=None)),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(["", "Z", "+05:30", "-0330", "+14"]),
    st.sampled_from(["T", " "]),
    st.sampled_from(["auto", "seconds", "milliseconds", "minutes"]),
)
def test_texts_in_a_batch_are_read_like_single_texts(
    moments: list[datetime], zone: str, middle: str, spec: str
) -> None:
    written = [moment.isoformat(middle, spec) + zone for moment in moments]
    batch = batch_of(*(json.dumps({"t": text}).encode() for text in written))

    found, bad = folders(batch, by_field("yyyy-MM-dd HH.mm.ss.SSSSSS"))

    assert not bad
    expected = []
    for text in written:
        time = datetime.fromisoformat(text)
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        expected.append(f"{time:%Y-%m-%d %H.%M.%S.%f}")
    assert found == expected
    assert [clock_of(by_field("yyyy-MM-dd HH.mm.ss.SSSSSS")).folder_at(micros(text)) for text in written] == expected


@given(
    st.text(max_size=20) | st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]{5,15}[Z+-]?[0-9:]*", fullmatch=True)
)
def test_whether_a_text_is_a_time_does_not_depend_on_other_records(text: str) -> None:
    try:
        alone: int | None = micros(text)
    except NotATime:
        alone = None
    if not text or (alone is not None and not LEAST <= alone < BEYOND):
        return

    found, bad = folders(batch_of(json.dumps({"t": text}).encode()), by_field("yyyy-MM-dd HH.mm.ss.SSSSSS"))

    assert (0 in bad) == (alone is None)
    if alone is not None:
        assert found == [clock_of(by_field("yyyy-MM-dd HH.mm.ss.SSSSSS")).folder_at(alone)]


def test_the_wall_clock_s_folder_needs_no_record() -> None:
    layout = ObjectLayout(items=(LayoutItem("Time", source="Wallclock", format=HOURLY),))

    assert layout.constant
    assert folders(batch_of(b"{}"), *layout.items) == (None, {})
    assert one(None, *layout.items, nulls="Separate") == "_tombstones/1970/01/01/00"
