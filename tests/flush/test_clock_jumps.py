"""The machine's clock is set forward or back while a sink runs, or while it does not: flushes go on."""

from __future__ import annotations

import math
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from s3sink_api.spec import Retries
from s3sink_job.flush.partition_backoff import PartitionBackoff
from s3sink_job.flush.plan import PartitionTimes, note_caught_up
from s3sink_job.flush.problem import Problem
from s3sink_job.flush.state import PartitionState, SinkState
from tests.flush.examples import NOW, state_of
from tests.flush.test_planning import AT, plan, seen


def first_due(state: SinkState, clock: Callable[[float], float], level_until: float = -1.0) -> float:
    """Seconds until the partition is flushed, by a clock that shows `clock(seconds)`. Level: it has no lag until then.

    The driver observes Kafka every second.
    """
    times = PartitionTimes()
    for second in range(20_000):
        end = 10 if second <= level_until else 11
        now = clock(float(second))
        times = note_caught_up(times, state, seen(end), now)
        if plan(state, end, now=now, times=times).slices:
            return float(second)
    raise AssertionError("never flushed")


@given(
    at=st.integers(0, 50),
    by=st.sampled_from([-3600, -59, -1, 1, 59, 3600]),
    back=st.booleans(),
    level_until=st.integers(-1, 50),
)
def test_a_clock_that_jumps_delays_a_flush_by_at_most_an_interval(
    at: int, by: int, back: bool, level_until: int
) -> None:
    """And a jump that is corrected 20 seconds later, too."""

    def clock(second: float) -> float:
        jumped = second >= at and not (back and second >= at + 20)
        return NOW + second + (by if jumped else 0)

    jumps = 2 if back else 1
    waited = first_due(state_of(10), clock, level_until) - max(0, level_until)
    assert waited <= 60 * (jumps + 1) + 2


def test_a_driver_that_starts_with_its_clock_an_hour_back_flushes_after_an_interval() -> None:
    assert first_due(state_of(10), lambda second: NOW - 3600 + second) == 60


def test_a_clock_an_hour_ahead_flushes_at_once_and_nothing_more_than_once() -> None:
    assert first_due(state_of(10), lambda second: NOW + 3600 + second) == 0
    flushed = state_of(PartitionState(0, 10, flushed_at=NOW + 3600))
    assert first_due(flushed, lambda second: NOW + second) == 60, "after the clock was corrected"


def test_a_backoff_does_not_last_until_a_clock_that_was_set_back_is_where_it_was() -> None:
    now = [NOW]
    backoff = PartitionBackoff(Retries(), lambda: now[0], ends=True)
    backoff.hold(AT, Problem("StoreUnavailable", "503"), retryable=True)
    backoff.hold(("orders", 1), Problem("BadRecord", "not JSON"), retryable=False)
    assert backoff.held(AT)
    now[0] -= 3600
    assert not backoff.held(AT)
    assert backoff.until[AT] <= now[0]
    assert backoff.until["orders", 1] == math.inf, "a run that ends does not try it again"
