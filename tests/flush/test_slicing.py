"""How a backlog is split into flushes, and a flush into slices that keep every task busy."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_api.spec import DriverPod, ExecutorPod, Spark, parse
from s3sink_job.flush.manifest import Slice, SliceEntry
from s3sink_job.flush.slicing import (
    ASSUMED_BYTES,
    DueRange,
    Limits,
    choose_ranges,
    contiguous_slices,
    limits_of,
    split_into_slices,
)
from s3sink_job.flush.transitions import commit
from tests.api.documents import minimal, put
from tests.flush.examples import NOW, manifest, state_of

WHOLE = Limits(parallel=4, smallest=1)


def due(
    length: int, *, partition: int = 0, objects_of: int = 100, weight: float = 1e3, flushed_at: float = 0
) -> DueRange:
    return DueRange("orders", 1, partition, 0, length, "Records", objects_of, weight, flushed_at)


def lengths(taken: list[tuple[DueRange, int]]) -> dict[int, int]:
    return {part.partition: length for part, length in taken}


def ranges(slices: tuple[Slice, ...], partition: int = 0) -> list[tuple[int, int]]:
    return [(s.start, s.end) for s in slices if s.partition == partition]


def test_one_long_partition_keeps_every_task_busy() -> None:
    slices = split_into_slices([(due(800), 800)], WHOLE)

    assert ranges(slices) == [(0, 200), (200, 400), (400, 600), (600, 800)]


def test_splitting_makes_no_additional_objects() -> None:
    assert ranges(split_into_slices([(due(350), 350)], WHOLE)) == [(0, 100), (100, 200), (200, 350)]
    assert ranges(split_into_slices([(due(199), 199)], WHOLE)) == [(0, 199)]


def test_nothing_is_split_while_there_are_enough_partitions() -> None:
    slices = split_into_slices([(due(800, partition=n), 800) for n in range(4)], WHOLE)

    assert [len(ranges(slices, n)) for n in range(4)] == [1, 1, 1, 1]


def test_a_long_partition_among_short_ones_is_split() -> None:
    slices = split_into_slices([(due(9_000), 9_000), *((due(100, partition=n), 100) for n in range(1, 5))], WHOLE)

    assert [len(ranges(slices, n)) for n in range(5)] == [4, 1, 1, 1, 1]


def test_no_slice_is_smaller_than_the_limit() -> None:
    """An object is 100 offsets of 1,000 bytes: a slice has at least two of them."""
    slices = split_into_slices([(due(800), 800)], replace(WHOLE, parallel=100, smallest=150_000))

    assert ranges(slices) == [(0, 200), (200, 400), (400, 600), (600, 800)]


def test_a_slice_with_due_offsets_after_it_is_marked() -> None:
    assert [s.more for s in split_into_slices([(due(800), 800)], WHOLE)] == [True, True, True, False]
    assert [s.more for s in split_into_slices([(due(900), 800)], WHOLE)] == [True, True, True, True]


def test_a_flush_reads_a_limited_number_of_bytes_per_task() -> None:
    limits = Limits(parallel=2, bytes_per_task=1_000_000)

    assert lengths(choose_ranges([due(10_000)], limits)) == {0: 2_000}


def test_an_object_larger_than_a_flush_is_still_written_whole() -> None:
    limits = Limits(bytes_per_task=1_000)

    assert lengths(choose_ranges([due(250)], limits)) == {0: 100}


def test_a_rate_limit_allows_a_minute_and_splits_objects_for_it() -> None:
    limits = Limits(bytes_per_second=500)

    assert lengths(choose_ranges([due(10_000)], limits)) == {0: 30}
    assert lengths(choose_ranges([due(10_000)], Limits(bytes_per_second=5_000))) == {0: 300}


def test_a_long_backlog_leaves_room_for_the_others() -> None:
    taken = choose_ranges(
        [due(100_000), due(300, partition=1), due(100, partition=2)], Limits(bytes_per_task=3_000_000)
    )

    assert lengths(taken) == {0: 2_600, 1: 300, 2: 100}


def test_the_partition_with_the_oldest_flush_comes_first() -> None:
    parts = [due(1_000, partition=n, flushed_at=NOW - n) for n in range(5)]

    assert list(lengths(choose_ranges(parts, Limits(bytes_per_task=200_000)))) == [4, 3]


def test_a_flush_writes_a_limited_number_of_objects() -> None:
    parts = [due(1_000, partition=n) for n in range(3)]

    assert lengths(choose_ranges(parts, Limits(objects=12))) == {0: 1_000, 1: 200}


def test_tasks_are_those_of_the_driver_or_of_all_executors() -> None:
    spec = parse(put(minimal(), "spec.source.maxBytesPerSecond", "1Mi")).spec
    local = replace(spec, spark=Spark(driver=DriverPod(cores=3)))
    cluster = replace(spec, spark=Spark(mode="Cluster", executor=ExecutorPod(instances=4, cores=2)))

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
def test_a_flush_always_writes_something_within_its_limits(parts: list[DueRange], limits: Limits) -> None:
    taken = choose_ranges(parts, limits)

    assert 1 <= len(taken) <= limits.partitions
    assert all(0 < length <= part.length for part, length in taken)
    assert sum(-(-length // part.object_length) for part, length in taken) <= limits.objects
    one_each = sum(min(part.length, part.object_length) * part.bytes_per_offset for part, _ in taken[:1])
    assert sum(length * part.bytes_per_offset for part, length in taken) <= max(limits.bytes, one_each) * 1.000001


@given(dues, limits_drawn)
def test_slices_join_at_the_ends_of_objects_and_none_is_too_small(parts: list[DueRange], limits: Limits) -> None:
    taken = choose_ranges(parts, limits)
    slices = split_into_slices(taken, limits)

    assert len(slices) <= limits.parallel + len(taken)
    for part, length in taken:
        own = [s for s in slices if s.at == ("orders", part.partition)]
        assert [s.start for s in own] == [part.start, *(s.end for s in own[:-1])]
        assert own[-1].end == part.start + length
        assert len(own) <= limits.pieces
        assert all((s.end - part.start) % part.object_length == 0 for s in own[:-1])
        if len(own) > 1:
            assert all((s.end - s.start) * part.bytes_per_offset >= limits.smallest * 0.999999 for s in own)
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
def test_a_commit_skips_nothing_if_slices_stop_short_or_are_missing(
    done: list[tuple[Slice, int]], lost: set[int]
) -> None:
    """`commit` would refuse slices that do not join. It never has to."""
    left = [item for n, item in enumerate(done) if n not in lost or item[0].start == 5]

    kept = contiguous_slices(left)

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


def test_nothing_after_a_slice_that_stopped_short_is_committed() -> None:
    first, second, other = (
        Slice("orders", 1, 0, 0, 10, "Drain"),
        Slice("orders", 1, 0, 10, 20, "Drain"),
        Slice("orders", 1, 1, 0, 10, "Drain"),
    )

    assert contiguous_slices([(second, 20), (first, 9), (other, 10)]) == {first, other}
    assert contiguous_slices([(second, 11), (first, 10), (other, 10)]) == {first, second, other}


@pytest.mark.parametrize("weight", [1.0, ASSUMED_BYTES])
def test_every_range_is_written_in_the_end(weight: float) -> None:
    at, flushes, limits = 0, 0, Limits(bytes_per_task=10_000, parallel=2, smallest=1)
    while at < 950:
        part = replace(due(950, objects_of=7, weight=weight), start=at)
        slices = split_into_slices(choose_ranges([part], limits), limits)
        assert slices[0].start == at
        at, flushes = slices[-1].end, flushes + 1
    assert (at, flushes > 1) == (950, weight > 100)
