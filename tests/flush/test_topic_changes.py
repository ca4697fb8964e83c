"""Where a sink begins, and what it does when topics change in Kafka."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3sink_api.spec import FromEarliest, FromLatest, FromOffsets, FromTimestamp, TopicOffset
from s3sink_job.base.errors import FinalError
from s3sink_job.flush.kafka_metadata import Offsets, Topic, TopicPartition
from s3sink_job.flush.manifest import Gap, GapReason, Manifest
from s3sink_job.flush.starting_offsets import start_topics, starting_offsets
from s3sink_job.flush.state import Owner, PartitionState, SinkState, TopicState
from s3sink_job.flush.topic_changes import GIVEN_UP_AFTER, TopicChanges, detect_topic_changes
from s3sink_job.flush.transitions import commit
from tests.flush.examples import NOW, state_of

SEEN = {("orders", 0): Offsets(5, 90, 100), ("orders", 1): Offsets(0, 0, 0)}
LATER = NOW + 10


def detect(
    state: SinkState,
    *offsets: Offsets,
    topic_id: str = "id-1",
    known_ends: dict[TopicPartition, int] | None = None,
    skip_lost: bool = False,
) -> TopicChanges:
    topics = {"orders": Topic(topic_id, tuple(range(len(offsets))))}
    seen = {("orders", number): found for number, found in enumerate(offsets)}
    return detect_topic_changes(state, topics, seen, known_ends or {}, skip_lost=skip_lost, now=LATER)


def at(offset: int) -> TopicOffset:
    return TopicOffset(topic="orders", partition=0, offset=offset)


def test_earliest_begins_with_the_oldest_record() -> None:
    assert starting_offsets(FromEarliest(), SEEN, {}) == {("orders", 0): 5, ("orders", 1): 0}


def test_latest_begins_after_records_of_open_transactions() -> None:
    assert starting_offsets(FromLatest(), SEEN, {}) == {("orders", 0): 100, ("orders", 1): 0}


def test_a_timestamp_begins_with_the_first_record_of_that_time_or_at_the_end() -> None:
    wanted = FromTimestamp(timestamp=datetime(2026, 1, 1, tzinfo=UTC))
    found = {("orders", 0): 42, ("orders", 1): None}

    assert starting_offsets(wanted, SEEN, found) == {("orders", 0): 42, ("orders", 1): 0}


def test_a_timestamp_never_begins_after_the_end_that_was_seen() -> None:
    """After it the log would look truncated, and get a new generation."""
    wanted = FromTimestamp(timestamp=datetime(2026, 1, 1, tzinfo=UTC))

    assert starting_offsets(wanted, SEEN, {("orders", 0): 103})["orders", 0] == 100


def test_listed_offsets_begin_there_and_other_partitions_at_earliest() -> None:
    seen = {**SEEN, ("orders", 1): Offsets(7, 9, 9)}

    assert starting_offsets(FromOffsets(offsets=(at(50),)), seen, {}) == {("orders", 0): 50, ("orders", 1): 7}


@pytest.mark.parametrize("offset", [5, 100])
def test_a_listed_offset_may_be_the_earliest_or_the_end(offset: int) -> None:
    assert starting_offsets(FromOffsets(offsets=(at(offset),)), SEEN, {})["orders", 0] == offset


@pytest.mark.parametrize("offset", [4, 101])
def test_a_listed_offset_that_kafka_does_not_have_is_an_error_with_the_field(offset: int) -> None:
    with pytest.raises(FinalError, match=r"startingOffsets\.offsets\[0\].*5 to 100"):
        starting_offsets(FromOffsets(offsets=(at(offset),)), SEEN, {})


def test_a_listed_partition_that_does_not_exist_is_named_in_the_error() -> None:
    wanted = FromOffsets(offsets=(at(5), TopicOffset(topic="orders", partition=9, offset=0)))

    with pytest.raises(FinalError, match=r"offsets\[1\]: orders has no partition 9"):
        starting_offsets(wanted, SEEN, {})


def test_the_first_start_stores_where_every_partition_begins() -> None:
    state = start_topics(
        SinkState(owner=Owner("c", "ns", "sink")),
        {"orders": Topic("id-1", (0, 1))},
        {("orders", 0): 100, ("orders", 1): 0},
        NOW,
    )

    assert state.topics["orders"] == TopicState(
        "id-1", 1, {0: PartitionState(100, 100, NOW), 1: PartitionState(0, 0, NOW)}
    )


def test_nothing_changes_while_kafka_does_not() -> None:
    changes = detect(state_of(5), Offsets(0, 9, 9))

    assert changes.state == state_of(5)
    assert changes.seen == {("orders", 0): Offsets(0, 9, 9)}
    assert (changes.gaps, dict(changes.problems), changes.notes) == ((), {}, ())


def test_a_partition_added_later_begins_at_earliest() -> None:
    changes = detect(state_of(5), Offsets(0, 9, 9), Offsets(3, 20, 20))

    assert changes.state.topics["orders"].partitions[1] == PartitionState(3, 3, LATER)
    assert changes.state.offset("orders", 0) == 5
    assert changes.state.topics["orders"].generation == 1


def test_a_topic_added_later_begins_at_earliest() -> None:
    topics = {"orders": Topic("id-1", (0,)), "more": Topic("id-9", (0,))}
    seen = {("orders", 0): Offsets(0, 5, 5), ("more", 0): Offsets(2, 8, 8)}

    changes = detect_topic_changes(state_of(5), topics, seen, {}, skip_lost=False, now=LATER)

    assert changes.state.topics["more"] == TopicState("id-9", 1, {0: PartitionState(2, 2, LATER)})


def test_a_recreated_topic_is_read_from_earliest_with_a_new_generation() -> None:
    changes = detect(state_of(50), Offsets(0, 60, 60), topic_id="id-2", known_ends={("orders", 0): 50})

    assert changes.state.topics["orders"] == TopicState("id-2", 2, {0: PartitionState(0, 0, LATER)})
    assert changes.gaps == ()
    assert "-g2" in changes.notes[0]


def test_unwritten_records_of_a_recreated_topic_are_recorded_as_a_gap() -> None:
    changes = detect(state_of(50), Offsets(0, 5, 5), topic_id="id-2", known_ends={("orders", 0): 60})

    assert changes.gaps == (Gap("orders", 1, 0, 50, 60, GapReason.TOPIC_REMADE, LATER),)


def test_a_recreated_topic_may_have_fewer_partitions() -> None:
    changes = detect(state_of(50, 60), Offsets(0, 5, 5), topic_id="id-2")

    assert set(changes.state.topics["orders"].partitions) == {0}


def test_a_missing_topic_is_named_and_the_others_continue() -> None:
    topics = {"orders": Topic("id-1", (0,)), "gone": None}

    changes = detect_topic_changes(
        state_of(5), topics, {("orders", 0): Offsets(0, 9, 9)}, {}, skip_lost=False, now=LATER
    )

    assert changes.problems["gone", 0].reason == "TopicMissing"
    assert set(changes.seen) == {("orders", 0)}


def test_a_missing_topic_keeps_its_offsets() -> None:
    changes = detect_topic_changes(state_of(5, 6), {"orders": None}, {}, {}, skip_lost=True, now=LATER)

    assert changes.state == state_of(5, 6)
    assert set(changes.problems) == {("orders", 0), ("orders", 1)}


def missing_topic(
    state: SinkState,
    *,
    ends: dict[TopicPartition, int] | None = None,
    skip_lost: bool = True,
    since: float | None = None,
) -> TopicChanges:
    gone = {} if since is None else {"orders": since}
    return detect_topic_changes(state, {"orders": None}, {}, ends or {}, skip_lost=skip_lost, now=LATER, gone=gone)


def test_a_missing_topic_of_a_pattern_is_reported_without_skip() -> None:
    changes = missing_topic(state_of(5), skip_lost=False, since=LATER - GIVEN_UP_AFTER)

    assert changes.problems["orders", 0].reason == "TopicMissing"
    assert changes.gaps == ()


def test_a_missing_topic_of_a_pattern_is_given_up_if_nothing_is_unwritten() -> None:
    changes = missing_topic(state_of(5), ends={("orders", 0): 5}, since=LATER)

    assert (dict(changes.problems), changes.gaps, changes.state) == ({}, (), state_of(5))


def test_unwritten_records_of_a_missing_topic_become_a_gap_after_a_while() -> None:
    ends = {("orders", 0): 9}
    unsure = missing_topic(state_of(5), ends=ends, since=LATER - GIVEN_UP_AFTER + 1)
    sure = missing_topic(state_of(5), ends=ends, since=LATER - GIVEN_UP_AFTER)

    assert (set(unsure.problems), unsure.gaps) == ({("orders", 0)}, ())
    assert sure.gaps == (Gap("orders", 1, 0, 5, 9, GapReason.TOPIC_DELETED, LATER),)
    assert sure.problems == {}
    again = missing_topic(_committed(sure), ends=ends, since=LATER - 2 * GIVEN_UP_AFTER)
    assert (again.gaps, dict(again.problems)) == ((), {})


def test_a_topic_that_the_user_may_not_see_is_never_given_up() -> None:
    changes = missing_topic(state_of(5), ends={("orders", 0): 9}, since=None)

    assert changes.problems["orders", 0].reason == "TopicMissing"
    assert changes.gaps == ()


def test_a_given_up_topic_that_is_back_gets_a_new_generation() -> None:
    ends = {("orders", 0): 9}
    state = _committed(missing_topic(state_of(5), ends=ends, since=LATER - GIVEN_UP_AFTER))

    back = detect(state, Offsets(0, 3, 3), topic_id="id-2", known_ends=ends, skip_lost=True)

    assert back.state.topics["orders"] == TopicState("id-2", 2, {0: PartitionState(0, 0, LATER)})
    assert back.gaps == ()


def test_the_first_start_is_stored_even_without_topics() -> None:
    state = start_topics(SinkState(owner=Owner("c", "ns", "sink")), {}, {}, NOW)

    assert (state.contacted, dict(state.topics)) == (True, {})


def test_retention_stops_the_partition_and_names_the_lost_offsets() -> None:
    changes = detect(state_of(5, 5), Offsets(8, 20, 20), Offsets(0, 9, 9))

    assert changes.problems["orders", 0].reason == "DataLoss"
    assert "5 to 7" in changes.problems["orders", 0].message
    assert set(changes.seen) == {("orders", 1)}
    assert changes.gaps == ()


def test_retention_with_skip_continues_after_a_recorded_gap() -> None:
    changes = detect(state_of(5), Offsets(8, 20, 20), skip_lost=True)

    assert changes.gaps == (Gap("orders", 1, 0, 5, 8, GapReason.RETENTION, LATER),)
    assert changes.problems == {}
    assert _committed(changes).offset("orders", 0) == 8


def test_retention_up_to_the_committed_offset_lost_nothing() -> None:
    changes = detect(state_of(5), Offsets(5, 20, 20))

    assert (changes.gaps, dict(changes.problems)) == ((), {})


def test_a_truncated_log_stops_the_partition_without_skip() -> None:
    changes = detect(state_of(50), Offsets(0, 30, 30))

    assert changes.problems["orders", 0].reason == "LogTruncated"
    assert changes.seen == {}


def test_a_log_that_ends_at_the_committed_offset_is_not_truncated() -> None:
    assert detect(state_of(50), Offsets(0, 50, 50)).problems == {}


@pytest.mark.parametrize("partitions", [(0, 1), (1, 0)])
def test_retention_and_a_truncated_log_at_once_can_both_be_committed(partitions: tuple[int, int]) -> None:
    """The new generation for one partition must not make the gap of the other one impossible to commit."""
    found = {partitions[0]: Offsets(60, 80, 80), partitions[1]: Offsets(0, 30, 30)}

    changes = detect(state_of(50, 50), found[0], found[1], skip_lost=True)

    state = _committed(changes)
    assert state.offset("orders", partitions[0]) == 60
    assert state.offset("orders", partitions[1]) == 0


offsets_drawn = st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20)).map(
    lambda n: Offsets(n[0], n[0] + n[1], n[0] + n[1] + n[2])
)


@settings(max_examples=300)
@given(
    st.lists(st.integers(0, 40), min_size=2, max_size=4),
    st.lists(offsets_drawn, min_size=2, max_size=4),
    st.dictionaries(st.tuples(st.just("orders"), st.integers(0, 3)), st.integers(0, 60)),
    st.sampled_from(["id-1", "id-2"]),
)
def test_with_skip_every_partition_continues_whatever_happened_to_its_topic(
    committed: list[int], found: list[Offsets], ends: dict[TopicPartition, int], topic_id: str
) -> None:
    before = state_of(*committed)

    changes = detect(before, *found, topic_id=topic_id, known_ends=ends, skip_lost=True)

    assert changes.problems == {}
    state = _committed(changes)
    for (name, partition), offsets in changes.seen.items():
        assert offsets.earliest <= state.offset(name, partition) <= offsets.end
    if state.topics["orders"].generation == 1:
        for partition, offset in enumerate(committed):
            assert state.offset("orders", partition) >= offset


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=4),
    st.lists(offsets_drawn, min_size=1, max_size=4),
)
def test_without_skip_no_unwritten_offset_is_ever_skipped(committed: list[int], found: list[Offsets]) -> None:
    changes = detect(state_of(*committed), *found, skip_lost=False)

    assert changes.gaps == ()
    for partition, offset in enumerate(committed):
        assert changes.state.offset("orders", partition) == offset
    for at_partition in changes.seen:
        assert at_partition not in changes.problems


def _committed(changes: TopicChanges) -> SinkState:
    """The state after the gaps were committed, as the driver does it."""
    if not changes.gaps:
        return changes.state
    return commit(changes.state, Manifest(1, "w", 1, LATER, {}, changes.state.last, gaps=changes.gaps))
