"""When records are written, and by which rule."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_job.flush.kafka_metadata import Offsets
from s3sink_job.flush.plan import PartitionTimes, Plan, drained, make_plan, note_caught_up
from s3sink_job.flush.rules import Reason, Rules
from s3sink_job.flush.slicing import Limits
from s3sink_job.flush.state import PartitionState, SinkState
from tests.flush.examples import NOW, state_of

AT = ("orders", 0)
RULES = Rules(records=100, interval=60.0)


def seen(stable: int, *, earliest: int = 0, end: int | None = None) -> dict[tuple[str, int], Offsets]:
    return {AT: Offsets(earliest, stable, stable if end is None else end)}


def plan(
    state: SinkState,
    stable: int,
    *,
    now: float = NOW + 1,
    rules: Rules = RULES,
    times: PartitionTimes = PartitionTimes(),  # noqa: B008 - frozen
    limits: Limits = Limits(),  # noqa: B008 - frozen
) -> Plan:
    return make_plan(state, seen(stable), times, rules, now, limits)


def test_records_wait_until_a_rule_is_met() -> None:
    waiting = plan(state_of(0), 99)

    assert waiting.slices == ()
    assert waiting.next_due == NOW + 60


def test_the_records_rule_writes_full_objects_only() -> None:
    (due,) = plan(state_of(50), 399).slices

    assert (due.start, due.end, due.reason) == (50, 350, Reason.RECORDS)


@pytest.mark.parametrize("records", [100, 300, 400, 700, 1_500])
def test_a_backlog_longer_than_a_flush_still_gives_full_objects(records: int) -> None:
    limits = Limits(bytes_per_task=1_000 * 1024)
    rules = replace(RULES, records=records)

    backlog = plan(state_of(0), 10_000, rules=rules, limits=limits)

    (due,) = backlog.slices
    assert (due.end - due.start) % records == 0
    assert backlog.left == 10_000 - 10_000 % records - due.end
    assert due.more == (backlog.left > 0)


def test_the_interval_is_due_without_new_records() -> None:
    state, times = state_of(0), PartitionTimes()
    assert plan(state, 1, now=NOW + 59, times=times).slices == ()

    (due,) = plan(state, 1, now=NOW + 60, times=times).slices

    assert (due.start, due.end, due.reason) == (0, 1, Reason.INTERVAL)


def test_the_interval_writes_everything_not_only_full_objects() -> None:
    (due,) = plan(state_of(0), 250, now=NOW + 60).slices

    assert (due.end, due.reason) == (250, Reason.INTERVAL)


BYTES = replace(RULES, bytes=5_000)
MEASURED = PartitionState(0, 0, NOW, written_per_offset=100.0, read_per_offset=200.0)


def test_the_bytes_rule_writes_full_objects_by_the_measured_size() -> None:
    """5,000 bytes are 50 offsets, and 47 are planned: so an inexact measure leaves no tiny object."""
    assert plan(state_of(MEASURED), 46, rules=BYTES).slices == ()

    (due,) = plan(state_of(MEASURED), 99, rules=BYTES).slices

    assert (due.start, due.end, due.reason) == (0, 94, Reason.BYTES)


def test_records_fill_an_object_first_where_they_are_small() -> None:
    (due,) = plan(state_of(MEASURED), 250, rules=replace(BYTES, bytes=50_000)).slices

    assert (due.end, due.reason) == (200, Reason.RECORDS)


def test_the_bytes_rule_makes_nothing_due_before_the_first_measure() -> None:
    """A guess would make objects of any size. The other rules bring the first measure."""
    assert plan(state_of(0), 99, rules=replace(RULES, bytes=1)).slices == ()


def test_a_record_larger_than_an_object_is_an_object() -> None:
    (due,) = plan(state_of(MEASURED), 3, rules=replace(RULES, bytes=1)).slices

    assert (due.end, due.reason) == (3, Reason.BYTES)


ALIGNED = replace(RULES, interval=3600.0, aligned=900.0)
HOUR = 1_000_800.0
"""A multiple of 15 minutes and of an hour since 1970."""


def test_aligned_writes_everything_at_the_multiple_of_the_clock() -> None:
    state = state_of(PartitionState(0, 0, HOUR - 10))

    waiting = plan(state, 5, now=HOUR - 1, rules=ALIGNED)
    assert (waiting.slices, waiting.next_due) == ((), HOUR)
    (due,) = plan(state, 5, now=HOUR, rules=ALIGNED).slices
    assert (due.end, due.reason) == (5, Reason.ALIGNED)


def test_aligned_leaves_later_records_for_the_next_multiple() -> None:
    for flushed_at in (HOUR, HOUR + 3):
        state = state_of(PartitionState(0, 5, flushed_at))

        waiting = plan(state, 6, now=HOUR + 600, rules=ALIGNED)

        assert (waiting.slices, waiting.next_due) == ((), HOUR + 900)


def test_aligned_is_made_up_for_if_the_driver_was_down_at_the_time() -> None:
    state = state_of(PartitionState(0, 0, HOUR - 10))

    assert plan(state, 5, now=HOUR + 7, rules=ALIGNED).slices[0].reason == Reason.ALIGNED


def test_the_rule_that_was_due_first_is_the_reason() -> None:
    state = state_of(PartitionState(0, 0, HOUR - 10))
    rules = replace(ALIGNED, interval=5.0)

    assert plan(state, 5, now=HOUR + 1, rules=rules).slices[0].reason == Reason.INTERVAL


def test_the_rest_that_a_flush_left_is_due_at_once() -> None:
    """Otherwise a long backlog would get only one flush per interval."""
    left = PartitionState(0, 50, flushed_at=NOW, waiting_since=NOW - 60)

    (due,) = plan(state_of(left), 60, now=NOW + 1).slices

    assert (due.start, due.end, due.reason) == (50, 60, Reason.INTERVAL)


def test_an_idle_hour_does_not_make_the_next_record_due_at_once() -> None:
    state, later = state_of(10), NOW + 3600
    times = note_caught_up(PartitionTimes(), state, seen(10), later)

    waiting = plan(state, 11, now=later + 1, times=times)

    assert waiting.slices == ()
    assert waiting.next_due == later + 60


def test_after_a_restart_a_partition_lags_since_its_last_flush() -> None:
    state = state_of(PartitionState(0, 10, flushed_at=NOW - 59))

    assert plan(state, 11, now=NOW).slices == ()
    assert plan(state, 11, now=NOW + 1).slices[0].reason == Reason.INTERVAL


def test_a_lagging_partition_does_not_count_as_caught_up() -> None:
    times = note_caught_up(PartitionTimes(), state_of(10), seen(11), NOW + 30)

    assert times.level_at == {}


def test_a_drain_writes_what_was_there_at_the_start_and_nothing_newer() -> None:
    (due,) = plan(state_of(5), 30, rules=replace(RULES, drain_to={AT: (1, 20)})).slices

    assert (due.start, due.end, due.reason) == (5, 20, Reason.DRAIN)


def test_a_drain_ignores_partitions_that_were_not_there_at_the_start() -> None:
    assert plan(state_of(0), 30, rules=replace(RULES, drain_to={})).slices == ()


def test_a_drain_is_over_when_every_partition_reached_its_end() -> None:
    state = state_of(20, 5)

    assert not drained(state, {("orders", 0): (1, 20), ("orders", 1): (1, 6)})
    assert drained(state, {("orders", 0): (1, 20), ("orders", 1): (1, 5)})


def test_a_drain_does_not_wait_for_a_topic_that_was_recreated() -> None:
    again = state_of(0, generation=2)
    drain_to = {("orders", 0): (1, 50), ("orders", 1): (1, 5)}

    assert drained(again, drain_to)
    assert plan(again, 30, rules=replace(RULES, drain_to=drain_to)).slices == ()


def test_a_partition_in_backoff_is_due_when_the_backoff_ends() -> None:
    times = PartitionTimes(held_until={AT: NOW + 30})

    held = plan(state_of(0), 100, now=NOW + 29, times=times)
    assert held.slices == ()
    assert held.next_due == NOW + 30

    assert plan(state_of(0), 100, now=NOW + 30, times=times).slices != ()


def test_a_partition_that_is_never_retried_has_no_due_time() -> None:
    held = plan(state_of(0), 100, now=NOW + 29, times=PartitionTimes(held_until={AT: math.inf}))

    assert (held.slices, held.next_due) == ((), None)


def test_the_backoff_of_one_partition_does_not_delay_the_others() -> None:
    times = PartitionTimes(held_until={("orders", 0): NOW + 1000})
    both = {("orders", 0): Offsets(0, 100, 100), ("orders", 1): Offsets(0, 100, 100)}

    result = make_plan(state_of(0, 0), both, times, RULES, NOW)

    assert [s.partition for s in result.slices] == [1]


def test_offsets_that_kafka_no_longer_has_are_never_read() -> None:
    result = make_plan(state_of(5), seen(500, earliest=6), PartitionTimes(), RULES, NOW + 1000)

    assert result.slices == ()


def test_an_open_transaction_keeps_its_records_out_of_the_objects() -> None:
    result = make_plan(state_of(0), seen(10, end=500), PartitionTimes(), RULES, NOW + 1000)

    assert [(s.start, s.end) for s in result.slices] == [(0, 10)]


def test_the_partition_that_waited_longest_goes_first_when_there_are_too_many() -> None:
    young, old = PartitionState(0, 0, NOW - 100), PartitionState(0, 0, NOW - 200)
    both = {("orders", 0): Offsets(0, 9, 9), ("orders", 1): Offsets(0, 9, 9)}

    result = make_plan(state_of(young, old), both, PartitionTimes(), RULES, NOW, Limits(partitions=1))

    assert [s.partition for s in result.slices] == [1]
    assert result.next_due == NOW


def test_the_generation_of_a_topic_is_in_its_slices() -> None:
    (due,) = plan(state_of(0, generation=3), 100).slices

    assert due.generation == 3


sizes = st.none() | st.floats(0.001, 5_000, allow_nan=False)
partition_states = st.builds(
    PartitionState,
    *(st.just(0), st.integers(0, 500), st.floats(NOW - 100, NOW, allow_nan=False)),
    waiting_since=st.none() | st.floats(NOW - 300, NOW - 100, allow_nan=False),
    written_per_offset=sizes,
    read_per_offset=sizes,
)
lengths = st.lists(st.integers(0, 200), min_size=3, max_size=3)
situations = st.lists(st.tuples(partition_states, lengths), min_size=1, max_size=6)
rules_drawn = st.builds(
    Rules,
    records=st.integers(1, 300),
    interval=st.floats(0.1, 200, allow_nan=False),
    bytes=st.none() | st.integers(1, 100_000),
    aligned=st.none() | st.floats(0.1, 200, allow_nan=False),
    drain_to=st.none()
    | st.dictionaries(st.tuples(st.just("orders"), st.integers(0, 5)), st.tuples(st.just(1), st.integers(0, 900))),
)
limits_drawn = st.builds(
    Limits,
    parallel=st.integers(1, 5),
    bytes_per_task=st.integers(1, 500_000),
    bytes_per_second=st.none() | st.integers(1, 10_000),
    partitions=st.integers(1, 4),
    objects=st.integers(1, 50),
    pieces=st.integers(1, 4),
    smallest=st.integers(1, 50_000),
)
holds_drawn = st.dictionaries(
    st.tuples(st.just("orders"), st.integers(0, 5)), st.floats(NOW - 50, NOW + 50, allow_nan=False)
)


def situation(
    drawn: list[tuple[PartitionState, list[int]]],
) -> tuple[SinkState, dict[tuple[str, int], Offsets]]:
    found_offsets = {}
    for number, (_, (earliest, stable, end)) in enumerate(drawn):
        found_offsets["orders", number] = Offsets(earliest, earliest + stable, earliest + stable + end)
    return state_of(*(at for at, _ in drawn)), found_offsets


@given(situations, rules_drawn, limits_drawn, holds_drawn)
def test_no_plan_reads_offsets_that_are_gone_unstable_written_or_in_backoff(
    drawn: list[tuple[PartitionState, list[int]]],
    rules: Rules,
    limits: Limits,
    holds: dict[tuple[str, int], float],
) -> None:
    state, found_offsets = situation(drawn)

    result = make_plan(state, found_offsets, PartitionTimes(held_until=holds), rules, NOW, limits)

    reached = {at: state.offset(*at) for at in found_offsets}
    for due in result.slices:
        offsets = found_offsets[due.at]
        assert due.start == reached[due.at]
        assert offsets.earliest <= due.start < due.end <= offsets.stable
        reached[due.at] = due.end
    assert len({s.at for s in result.slices}) <= limits.partitions
    for due in result.slices:
        assert holds.get(due.at, 0.0) <= NOW
        if rules.drain_to is not None:
            assert (due.generation, due.end) <= rules.drain_to[due.at]


@given(situations, rules_drawn, limits_drawn, holds_drawn)
def test_a_lagging_partition_is_due_at_the_time_in_the_plan(
    drawn: list[tuple[PartitionState, list[int]]],
    rules: Rules,
    limits: Limits,
    holds: dict[tuple[str, int], float],
) -> None:
    state, found_offsets = situation(drawn)
    times = PartitionTimes(held_until=holds)

    first = make_plan(state, found_offsets, times, rules, NOW, limits)

    if first.next_due is None:
        readable = {
            at: min(o.stable, (rules.drain_to or {}).get(at, (0, 0))[1]) if rules.drain_to is not None else o.stable
            for at, o in found_offsets.items()
            if o.earliest <= state.offset(*at)
        }
        assert all(end <= state.offset(*at) for at, end in readable.items())
    else:
        assert make_plan(state, found_offsets, times, rules, first.next_due, limits).slices


@given(situations, rules_drawn, limits_drawn)
def test_plans_one_after_another_cover_everything_once(
    drawn: list[tuple[PartitionState, list[int]]], rules: Rules, limits: Limits
) -> None:
    state, found_offsets = situation(drawn)
    rules = replace(rules, interval=0.1, drain_to=None)
    covered = {at: state.offset(*at) for at in found_offsets}

    for _ in range(10_000):
        slices = make_plan(state, found_offsets, PartitionTimes(), rules, NOW + 1, limits).slices
        if not slices:
            break
        for due in slices:
            assert due.start == covered[due.at]
            covered[due.at] = due.end
        state = state_of(*(replace(at, offset=covered["orders", n]) for n, (at, _) in enumerate(drawn)))

    for at, offsets in found_offsets.items():
        if offsets.earliest <= covered[at]:
            assert covered[at] >= offsets.stable
