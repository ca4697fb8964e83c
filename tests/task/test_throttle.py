"""A task does not read faster than its share of the rate."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from s3sink_job.task.throttle import Throttle


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def rest(self, seconds: float) -> None:
        self.now += seconds


def test_without_a_rate_the_throttle_never_sleeps() -> None:
    clock = Clock()
    Throttle(None, lambda: clock.now, clock.rest).keep(10**12)

    assert clock.now == 100.0


def test_time_spent_on_work_counts_towards_the_rate() -> None:
    clock = Clock()
    pace = Throttle(1_000.0, lambda: clock.now, clock.rest)
    clock.now += 3.0
    pace.keep(2_000)
    assert clock.now == 103.0
    pace.keep(2_000)
    assert clock.now == 104.0


@given(st.floats(1, 1e9, allow_nan=False), st.lists(st.tuples(st.integers(0, 10**8), st.floats(0, 100)), min_size=1))
def test_the_rate_is_never_exceeded_whatever_the_batches(rate: float, batches: list[tuple[int, float]]) -> None:
    clock = Clock()
    pace = Throttle(rate, lambda: clock.now, clock.rest)
    for size, worked in batches:
        clock.now += worked
        pace.keep(size)

    assert sum(size for size, _ in batches) <= rate * (clock.now - 100.0) * 1.001 + 1
