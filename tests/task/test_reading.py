"""A slice is read again only as often as needed: what came before in a partition is expected there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from s3sink_job.flush.manifest import Slice
from s3sink_job.task.reading import FIRST_READING, READ_AGAIN, KnownNeeds, Reading
from s3sink_job.task.slice_result import DEAD_LETTER, ID_IN_HEADER, LARGE_RECORD, UNCOUNTED, Failure, SliceResult

PART, OTHER = Slice("t", 1, 0, 0, 10, "test"), Slice("t", 1, 1, 0, 10, "test")


def failed(reason: str, part: Slice = PART) -> SliceResult:
    return SliceResult(part, part.start, failure=Failure(reason, "more is needed", retryable=True))


@pytest.mark.parametrize(("reason", "times"), [(LARGE_RECORD, 1), (ID_IN_HEADER, 1), (UNCOUNTED, 3)])
def test_what_a_partition_needed_is_read_at_once_from_then_on(reason: str, times: int) -> None:
    needs = KnownNeeds()
    for _ in range(times):
        assert needs.reading([PART]) == FIRST_READING
        needs.learn([failed(reason), failed(reason, replace(PART, start=5))])
    wanted = replace(FIRST_READING, **{READ_AGAIN[reason]: True})
    assert needs.reading([PART]) == needs.reading([OTHER, PART]) == wanted
    assert needs.reading([OTHER]) == FIRST_READING


def test_whole_records_are_read_at_once_while_most_partitions_have_dead_letters() -> None:
    needs = KnownNeeds()
    needs.learn([failed(DEAD_LETTER)])
    assert needs.reading([PART]) == FIRST_READING
    needs.learn_letters([replace(SliceResult(PART, 10), letters=(3,)), SliceResult(OTHER, 10)])
    assert needs.reading([PART]) == Reading(whole=True)
    assert needs.reading([PART, OTHER]) == FIRST_READING
    needs.learn_letters([SliceResult(PART, 10)])
    assert needs.reading([PART]) == FIRST_READING


def test_a_reading_only_grows() -> None:
    found = FIRST_READING
    for reason, name in READ_AGAIN.items():
        more = found.with_more([reason])
        assert getattr(more, name)
        assert more != found
        found = more
    assert found.with_more(READ_AGAIN) == found
