"""How a backlog is cut: into flushes that end, and into slices that keep every task busy without shreds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_job.flush.cut import ASSUMED, Due, Limits, cut, joined, limits_of, take
from s3sink_job.flush.manifest import Slice, SliceEntry
from s3sink_job.flush.state import commit
from s3sink_job.spec import Driver, Executor, Spark, parse
from tests.flush.examples import NOW, manifest, state_of
from tests.spec.documents import minimal, put

WHOLE = Limits(parallel=4, smallest=1)


def due(length: int, *, partition: int = 0, objects_of: int = 100, weight: float = 1e3, flushed_at: float = 0) -> Due:
    return Due("orders", 1, partition, 0, length, "Records", objects_of, weight, flushed_at)


def lengths(taken: list[tuple[Due, int]]) -> dict[int, int]:
    return {part.partition: length for part, length in taken}


def ranges(slices: tuple[Slice, ...], partition: int = 0) -> list[tuple[int, int]]:
    return [(s.start, s.end) for s in slices if s.partition == partition]


def test_one_long_partition_keeps_every_task_busy() -> None:
    slices = cut([(due(800), 800)], WHOLE)

    assert ranges(slices) == [(0, 200), (200, 400), (400, 600), (600, 800)]


def test_cutting_makes_no_more_objects_than_there_would_be() -> None:
    assert ranges(cut([(due(350), 350)], WHOLE)) == [(0, 100), (100, 200), (200, 350)]
    assert ranges(cut([(due(199), 199)], WHOLE)) == [(0, 199)]


def test_nothing_is_cut_while_there_are_partitions_enough() -> None:
    slices = cut([(due(800, partition=n), 800) for n in range(4)], WHOLE)

    assert [len(ranges(slices, n)) for n in range(4)] == [1, 1, 1, 1]


def test_the_one_long_partition_among_short_ones_is_cut() -> None:
    slices = cut([(due(9_000), 9_000), *((due(100, partition=n), 100) for n in range(1, 5))], WHOLE)

    assert [len(ranges(slices, n)) for n in range(5)] == [4, 1, 1, 1, 1]


def test_a_slice_of_its_own_is_worth_its_cost() -> None:
    """100 offsets of 1,000 bytes an object: two of them are the least."""
    slices = cut([(due(800), 800)], replace(WHOLE, parallel=100, smallest=150_000))

    assert ranges(slices) == [(0, 200), (200, 400), (400, 600), (600, 800)]


def test_the_slice_before_another_says_that_more_is_due() -> None:
    assert [s.more for s in cut([(due(800), 800)], WHOLE)] == [True, True, True, False]
    assert [s.more for s in cut([(due(900), 800)], WHOLE)] == [True, True, True, True]


def test_a_flush_reads_no_more_than_its_share_for_each_task() -> None:
    limits = Limits(parallel=2, bytes_per_task=1_000_000)

    assert lengths(take([due(10_000)], limits)) == {0: 2_000}


def test_an_object_larger_than_a_flush_should_be_is_still_written_whole() -> None:
    limits = Limits(bytes_per_task=1_000)

    assert lengths(take([due(250)], limits)) == {0: 100}


def test_a_rate_allows_a_minute_and_cuts_objects_for_it() -> None:
    limits = Limits(bytes_per_second=500)

    assert lengths(take([due(10_000)], limits)) == {0: 30}
    assert lengths(take([due(10_000)], Limits(bytes_per_second=5_000))) == {0: 300}


def test_a_long_backlog_leaves_room_for_the_others() -> None:
    taken = take([due(100_000), due(300, partition=1), due(100, partition=2)], Limits(bytes_per_task=3_000_000))

    assert lengths(taken) == {0: 2_600, 1: 300, 2: 100}


def test_whoever_was_flushed_longest_ago_is_not_left_out_for_ever() -> None:
    parts = [due(1_000, partition=n, flushed_at=NOW - n) for n in range(5)]

    assert list(lengths(take(parts, Limits(bytes_per_task=200_000)))) == [4, 3]


def test_a_manifest_lists_so_many_objects_and_no_more() -> None:
    parts = [due(1_000, partition=n) for n in range(3)]

    assert lengths(take(parts, Limits(objects=12))) == {0: 1_000, 1: 200}


def test_tasks_are_those_of_the_driver_or_of_all_executors() -> None:
    spec = parse(put(minimal(), "spec.source.maxBytesPerSecond", "1Mi")).spec
    local = replace(spec, spark=Spark(driver=Driver(cores=3)))
    cluster = replace(spec, spark=Spark(mode="Cluster", executor=Executor(instances=4, cores=2)))

    assert limits_of(local) == Limits(parallel=3, bytes_per_second=2**20)
    assert limits_of(cluster).parallel == 8
    assert limits_of(cluster, spread=True) == replace(limits_of(cluster), partitions=8)


dues = st.lists(
    st.builds(
        due,
        st.integers(1, 5_000),
        objects_of=st.integers(1, 700),
        weight=st.floats(1, 5_000, allow_nan=False),
        flushed_at=st.floats(0, 10, allow_nan=False),
    ),
    min_size=1,
    max_size=6,
).map(lambda parts: [replace(part, partition=n) for n, part in enumerate(parts)])
limits_drawn = st.builds(
    Limits,
    parallel=st.integers(1, 9),
    bytes_per_task=st.integers(1, 3_000_000),
    bytes_per_second=st.none() | st.floats(1, 50_000, allow_nan=False),
    partitions=st.integers(1, 6),
    objects=st.integers(1, 40),
    pieces=st.integers(1, 5),
    smallest=st.integers(1, 300_000),
)


@given(dues, limits_drawn)
def test_a_flush_always_gets_on_and_keeps_to_its_limits(parts: list[Due], limits: Limits) -> None:
    taken = take(parts, limits)

    assert 1 <= len(taken) <= limits.partitions
    assert all(0 < length <= part.length for part, length in taken)
    assert sum(-(-length // part.object) for part, length in taken) <= limits.objects
    one_each = sum(min(part.length, part.object) * part.weight for part, _ in taken[:1])
    assert sum(length * part.weight for part, length in taken) <= max(limits.bytes, one_each) * 1.000001


@given(dues, limits_drawn)
def test_slices_join_at_the_ends_of_objects_and_none_is_a_shred(parts: list[Due], limits: Limits) -> None:
    taken = take(parts, limits)
    slices = cut(taken, limits)

    assert len(slices) <= limits.parallel + len(taken)
    for part, length in taken:
        own = [s for s in slices if s.at == ("orders", part.partition)]
        assert [s.start for s in own] == [part.start, *(s.end for s in own[:-1])]
        assert own[-1].end == part.start + length
        assert len(own) <= limits.pieces
        assert all((s.end - part.start) % part.object == 0 for s in own[:-1])
        if len(own) > 1:
            assert all((s.end - s.start) * part.weight >= limits.smallest * 0.999999 for s in own)
        assert [s.more for s in own[:-1]] == [True] * (len(own) - 1)


@st.composite
def worked_on(draw: st.DrawFn) -> list[tuple[Slice, int]]:
    """Slices of two partitions in any order, each ended at its end or before it."""
    done = []
    for partition in range(2):
        start = 5
        for length in draw(st.lists(st.integers(1, 6), max_size=5)):
            part = Slice("orders", 1, partition, start, start + length, "Records")
            short = draw(st.integers(0, length)) if draw(st.booleans()) else 0
            done.append((part, part.end - short))
            start = part.end
    return draw(st.permutations(done))


@given(worked_on(), st.sets(st.integers(0, 9)))
def test_whatever_stops_short_or_is_missing_the_commit_steps_over_nothing(
    done: list[tuple[Slice, int]], lost: set[int]
) -> None:
    """`commit` refuses a flush whose slices do not join: it never has to."""
    left = [item for n, item in enumerate(done) if n not in lost or item[0].start == 5]

    kept = joined(left)

    entries = tuple(
        SliceEntry("orders", 1, s.partition, s.start, end, s.reason, end - s.start) for s, end in left if s in kept
    )
    after = commit(state_of(5, 5), manifest(slices=entries))
    for partition in range(2):
        at = 5
        for part, end in sorted(left):
            if part.partition == partition:
                if part.start != at:
                    break
                at = end
        assert after.offset("orders", partition) == at


def test_behind_a_slice_that_stopped_short_nothing_is_committed() -> None:
    first, second, other = (
        Slice("orders", 1, 0, 0, 10, "Drain"),
        Slice("orders", 1, 0, 10, 20, "Drain"),
        Slice("orders", 1, 1, 0, 10, "Drain"),
    )

    assert joined([(second, 20), (first, 9), (other, 10)]) == {first, other}
    assert joined([(second, 11), (first, 10), (other, 10)]) == {first, second, other}


@pytest.mark.parametrize("weight", [1.0, ASSUMED])
def test_every_range_is_written_in_the_end(weight: float) -> None:
    at, flushes, limits = 0, 0, Limits(bytes_per_task=10_000, parallel=2, smallest=1)
    while at < 950:
        part = replace(due(950, objects_of=7, weight=weight), start=at)
        slices = cut(take([part], limits), limits)
        assert slices[0].start == at
        at, flushes = slices[-1].end, flushes + 1
    assert (at, flushes > 1) == (950, weight > 100)
