"""What Spark left out is counted up to any end, whatever was handed over in which batches."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_job.flush.manifest import Slice
from s3sink_job.kafka.left_out import COUNTED_END, NUMBER
from s3sink_job.task.slice_rows import LeftOutCount

START = 7


@st.composite
def logs(draw: st.DrawFn) -> tuple[Slice, list[tuple[int, bool]]]:
    """A slice, and its records: the offset of each, and whether it is handed over."""
    steps = draw(st.lists(st.tuples(st.integers(1, 40), st.booleans()), min_size=1, max_size=60))
    offset, records = START - 1, []
    for step, handed_over in steps:
        offset += step
        records.append((offset, handed_over))
    end = offset + draw(st.integers(1, 2 * COUNTED_END))
    records = [(offset, handed_over or offset >= end - COUNTED_END) for offset, handed_over in records]
    return Slice("t", 1, 0, START, end, "test"), records


@given(logs(), st.lists(st.integers(1, 60), max_size=8), st.data())
def test_the_count_is_that_of_the_log(
    log: tuple[Slice, list[tuple[int, bool]]], cuts: list[int], data: st.DataObject
) -> None:
    part, records = log
    numbered = [(offset, number) for number, (offset, handed_over) in enumerate(records) if handed_over]
    count = LeftOutCount(part)
    bounds = sorted({0, len(numbered), *(cut for cut in cuts if cut < len(numbered))})
    for first, last in itertools.pairwise(bounds):
        rows = numbered[first:last]
        batch = pa.RecordBatch.from_pydict({"offset": [row[0] for row in rows], NUMBER: [row[1] for row in rows]})
        assert count.take(batch).schema.names == ["offset"]
        # A slice may end at any row, because of a bad record or of a type that changed.
        end = data.draw(st.sampled_from(rows))[0]
        assert count.before(end) == sum(1 for offset, handed_over in records if offset < end and not handed_over)
    if numbered:
        behind = any(offset > numbered[-1][0] for offset, _ in records)
        assert not (behind and count.is_complete)
        assert count.is_complete == (numbered[-1][0] >= part.end - COUNTED_END)
        if count.is_complete:
            assert count.before(part.end) == len(records) - len(numbered)
            assert count.of_all(len(numbered) * 100) == len(records) * 100


@pytest.mark.parametrize("numbers", [{}, {NUMBER: pa.nulls(3, pa.int64())}], ids=["no column", "nulls"])
def test_without_numbers_nothing_was_left_out(numbers: dict[str, pa.Array]) -> None:
    count = LeftOutCount(Slice("t", 1, 0, 0, 1000, "test"))
    batch = pa.RecordBatch.from_pydict({"offset": [1, 2, 3], **numbers})
    assert count.take(batch).schema.names == ["offset"]
    assert (count.is_complete, count.before(2), count.before(1000), count.of_all(30)) == (True, 0, 0, 30)
