"""What a terminal shows of a backlog: how far, how fast, how long it takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.spinner import Spinner

from s3sink_job.flush.manifest import Manifest, Slice, SliceEntry
from s3sink_job.flush.plan import Plan
from s3sink_job.flush.state import Owner, SinkState
from s3sink_job.report.progress import Estimate, Progress, duration_text
from s3sink_job.report.status import Reporter
from s3sink_job.report.terminal import render, status_line


def test_there_is_no_backlog_if_one_flush_takes_all() -> None:
    progress = Progress()
    progress.see(1_000, 0, 0.0)

    assert progress.estimate(1.0) is None


def test_before_its_first_flush_a_backlog_has_no_rate() -> None:
    progress = Progress()
    progress.see(1_000, 600, 10.0)

    assert progress.estimate(11.0) == Estimate(0, 1_000)
    assert str(progress.estimate(11.0)) == "0% · 0 of 1,000 records"


def test_each_flush_updates_the_rate_and_the_time_left_runs_on() -> None:
    progress = Progress()
    progress.see(1_000, 600, 10.0)
    progress.moved(400, 14.0)
    progress.see(600, 200, 14.0)

    assert progress.estimate(14.0) == Estimate(400, 600, 100.0, 6.0)
    assert progress.estimate(16.0) == Estimate(400, 600, 100.0, 4.0)
    assert str(progress.estimate(16.0)) == "40% · 400 of 1,000 records · 100 records/s · 4 s left"
    late = progress.estimate(60.0)
    assert late is not None
    assert late.seconds_left == 0.0


def test_new_records_are_added_to_the_backlog() -> None:
    progress = Progress()
    progress.see(1_000, 600, 0.0)
    progress.moved(400, 4.0)
    progress.see(1_600, 1_200, 4.0)

    assert progress.estimate(4.0) == Estimate(400, 1_600, 100.0, 16.0)


def test_the_backlog_ends_after_its_last_flush() -> None:
    progress = Progress()
    progress.see(1_000, 600, 0.0)
    progress.moved(400, 4.0)
    progress.see(600, 0, 4.0)
    assert progress.estimate(5.0) is not None
    progress.moved(600, 8.0)
    progress.see(30, 0, 8.0)

    assert progress.estimate(8.0) is None


def test_a_new_backlog_starts_at_zero() -> None:
    progress = Progress()
    for _ in range(2):
        progress.see(1_000, 600, 0.0)
        assert progress.estimate(0.0) == Estimate(0, 1_000)
        progress.moved(1_000, 4.0)
        progress.see(0, 0, 4.0)
        progress.see(0, 0, 4.0)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3_569, "59 min"), (3_600, "1 h 0 min"), (200_000, "2 d 7 h")],
)
def test_durations_are_shown_in_the_largest_units(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9), st.floats(0, 1e6, allow_nan=False))))
def test_there_is_always_a_line_to_show(turns: list[tuple[int, int, float]]) -> None:
    progress, now = Progress(), 0.0
    for due, beyond, passed in turns:
        progress.see(due + beyond, beyond, now)
        now += passed
        progress.moved(due, now)
        estimate = progress.estimate(now)
        if estimate is not None:
            assert 0 <= estimate.share <= 1
            assert str(estimate)


def drawn(reporter: Reporter, now: float) -> str:
    console = Console(width=120)
    with console.capture() as capture:
        console.print(render(reporter, Spinner("dots"), now))
    return capture.get()


def test_there_is_a_bar_only_while_there_is_a_backlog() -> None:
    reporter, state = Reporter(), SinkState(owner=Owner("c", "ns", "sink"))
    slices = (Slice("orders", 1, 0, 0, 400, "Drain"),)
    assert "0 behind" in status_line(reporter, 0.0)
    assert "━" not in drawn(reporter, 0.0)

    reporter.observed(state, {}, {}, {}, Plan(slices, 0.0, left=600), 0.0)
    entry = SliceEntry("orders", 1, 0, 0, 400, "Drain", 400)
    reporter.flushed(Manifest(1, "writer", 1, 4.0, {}, slices=(entry,)), 4.0, 4.0)

    assert "40% · 400 of 1,000 records · 100 records/s · 6 s left" in status_line(reporter, 4.0)
    assert "━" in drawn(reporter, 4.0)
