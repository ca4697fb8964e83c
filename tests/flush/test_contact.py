"""Where a sink begins, and what it does when Kafka's topics change under it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3sink_job.errors import FinalError
from s3sink_job.flush.contact import GIVEN_UP_AFTER, Contact, Topic, first_contact, follow, starting_offsets
from s3sink_job.flush.manifest import Gap, GapReason, Manifest
from s3sink_job.flush.plan import Offsets, TopicPartition
from s3sink_job.flush.state import Owner, PartitionState, State, TopicState, commit
from s3sink_job.spec import FromEarliest, FromLatest, FromOffsets, FromTimestamp, TopicOffset
from tests.flush.examples import NOW, state_of

SEEN = {("orders", 0): Offsets(5, 90, 100), ("orders", 1): Offsets(0, 0, 0)}
LATER = NOW + 10


def meet_kafka(
    state: State,
    *offsets: Offsets,
    topic_id: str = "id-1",
    known_ends: dict[TopicPartition, int] | None = None,
    skip_lost: bool = False,
) -> Contact:
    topics = {"orders": Topic(topic_id, tuple(range(len(offsets))))}
    seen = {("orders", number): found for number, found in enumerate(offsets)}
    return follow(state, topics, seen, known_ends or {}, skip_lost=skip_lost, now=LATER)


def at(offset: int) -> TopicOffset:
    return TopicOffset(topic="orders", partition=0, offset=offset)


def test_earliest_begins_with_the_oldest_record() -> None:
    assert starting_offsets(FromEarliest(), SEEN, {}) == {("orders", 0): 5, ("orders", 1): 0}


def test_latest_begins_behind_records_of_transactions_that_are_still_open() -> None:
    assert starting_offsets(FromLatest(), SEEN, {}) == {("orders", 0): 100, ("orders", 1): 0}


def test_a_timestamp_begins_with_the_first_record_of_that_time_or_at_the_end() -> None:
    wanted = FromTimestamp(timestamp=datetime(2026, 1, 1, tzinfo=UTC))
    found = {("orders", 0): 42, ("orders", 1): None}

    assert starting_offsets(wanted, SEEN, found) == {("orders", 0): 42, ("orders", 1): 0}


def test_a_timestamp_that_only_records_of_this_moment_reach_begins_at_the_end_that_was_seen() -> None:
    """Beyond it the log would look cut short, and get another generation."""
    wanted = FromTimestamp(timestamp=datetime(2026, 1, 1, tzinfo=UTC))

    assert starting_offsets(wanted, SEEN, {("orders", 0): 103})["orders", 0] == 100


def test_listed_offsets_begin_there_and_other_partitions_at_earliest() -> None:
    seen = {**SEEN, ("orders", 1): Offsets(7, 9, 9)}

    assert starting_offsets(FromOffsets(offsets=(at(50),)), seen, {}) == {("orders", 0): 50, ("orders", 1): 7}


@pytest.mark.parametrize("offset", [5, 100])
def test_listed_offsets_may_be_the_first_and_the_end(offset: int) -> None:
    assert starting_offsets(FromOffsets(offsets=(at(offset),)), SEEN, {})["orders", 0] == offset


@pytest.mark.parametrize("offset", [4, 101])
def test_a_listed_offset_that_kafka_does_not_have_is_an_error_that_names_the_field(offset: int) -> None:
    with pytest.raises(FinalError, match=r"startingOffsets\.offsets\[0\].*5 to 100"):
        starting_offsets(FromOffsets(offsets=(at(offset),)), SEEN, {})


def test_a_listed_partition_that_does_not_exist_is_an_error_that_names_it() -> None:
    wanted = FromOffsets(offsets=(at(5), TopicOffset(topic="orders", partition=9, offset=0)))

    with pytest.raises(FinalError, match=r"offsets\[1\]: orders has no partition 9"):
        starting_offsets(wanted, SEEN, {})


def test_first_contact_stores_where_every_partition_begins() -> None:
    state = first_contact(
        State(owner=Owner("c", "ns", "sink")),
        {"orders": Topic("id-1", (0, 1))},
        {("orders", 0): 100, ("orders", 1): 0},
        NOW,
    )

    assert state.topics["orders"] == TopicState(
        "id-1", 1, {0: PartitionState(100, 100, NOW), 1: PartitionState(0, 0, NOW)}
    )


def test_nothing_changes_while_kafka_does_not() -> None:
    contact = meet_kafka(state_of(5), Offsets(0, 9, 9))

    assert contact.state == state_of(5)
    assert contact.seen == {("orders", 0): Offsets(0, 9, 9)}
    assert (contact.gaps, dict(contact.problems), contact.notes) == ((), {}, ())


def test_a_partition_added_later_begins_at_earliest_so_that_none_of_its_records_is_missed() -> None:
    contact = meet_kafka(state_of(5), Offsets(0, 9, 9), Offsets(3, 20, 20))

    assert contact.state.topics["orders"].partitions[1] == PartitionState(3, 3, LATER)
    assert contact.state.offset("orders", 0) == 5
    assert contact.state.topics["orders"].generation == 1


def test_a_topic_added_later_begins_at_earliest() -> None:
    topics = {"orders": Topic("id-1", (0,)), "more": Topic("id-9", (0,))}
    seen = {("orders", 0): Offsets(0, 5, 5), ("more", 0): Offsets(2, 8, 8)}

    contact = follow(state_of(5), topics, seen, {}, skip_lost=False, now=LATER)

    assert contact.state.topics["more"] == TopicState("id-9", 1, {0: PartitionState(2, 2, LATER)})


def test_a_topic_made_anew_is_read_from_its_beginning_under_new_names() -> None:
    contact = meet_kafka(state_of(50), Offsets(0, 60, 60), topic_id="id-2", known_ends={("orders", 0): 50})

    assert contact.state.topics["orders"] == TopicState("id-2", 2, {0: PartitionState(0, 0, LATER)})
    assert contact.gaps == ()
    assert "-g2" in contact.notes[0]


def test_records_that_went_down_with_a_deleted_topic_are_noted() -> None:
    contact = meet_kafka(state_of(50), Offsets(0, 5, 5), topic_id="id-2", known_ends={("orders", 0): 60})

    assert contact.gaps == (Gap("orders", 1, 0, 50, 60, GapReason.TOPIC_REMADE, LATER),)


def test_a_topic_made_anew_may_have_fewer_partitions() -> None:
    contact = meet_kafka(state_of(50, 60), Offsets(0, 5, 5), topic_id="id-2")

    assert set(contact.state.topics["orders"].partitions) == {0}


def test_a_missing_topic_is_named_and_the_others_go_on() -> None:
    topics = {"orders": Topic("id-1", (0,)), "gone": None}

    contact = follow(state_of(5), topics, {("orders", 0): Offsets(0, 9, 9)}, {}, skip_lost=False, now=LATER)

    assert contact.problems["gone", 0].reason == "TopicMissing"
    assert set(contact.seen) == {("orders", 0)}


def test_a_topic_that_vanished_keeps_its_offsets_until_it_is_known_to_be_another() -> None:
    contact = follow(state_of(5, 6), {"orders": None}, {}, {}, skip_lost=True, now=LATER)

    assert contact.state == state_of(5, 6)
    assert set(contact.problems) == {("orders", 0), ("orders", 1)}


def vanished(
    state: State, *, ends: dict[TopicPartition, int] | None = None, skip_lost: bool = True, since: float | None = None
) -> Contact:
    gone = {} if since is None else {"orders": since}
    return follow(state, {"orders": None}, {}, ends or {}, skip_lost=skip_lost, now=LATER, gone=gone)


def test_a_vanished_topic_of_a_pattern_is_reported_unless_told_to_skip() -> None:
    contact = vanished(state_of(5), skip_lost=False, since=LATER - GIVEN_UP_AFTER)

    assert contact.problems["orders", 0].reason == "TopicMissing"
    assert contact.gaps == ()


def test_a_vanished_topic_of_a_pattern_with_skip_and_nothing_unwritten_is_given_up_at_once() -> None:
    contact = vanished(state_of(5), ends={("orders", 0): 5}, since=LATER)

    assert (dict(contact.problems), contact.gaps, contact.state) == ({}, (), state_of(5))


def test_what_a_vanished_topic_had_unwritten_is_a_gap_only_once_it_is_surely_gone() -> None:
    ends = {("orders", 0): 9}
    unsure = vanished(state_of(5), ends=ends, since=LATER - GIVEN_UP_AFTER + 1)
    sure = vanished(state_of(5), ends=ends, since=LATER - GIVEN_UP_AFTER)

    assert (set(unsure.problems), unsure.gaps) == ({("orders", 0)}, ())
    assert sure.gaps == (Gap("orders", 1, 0, 5, 9, GapReason.TOPIC_DELETED, LATER),)
    assert sure.problems == {}
    again = vanished(_committed(sure), ends=ends, since=LATER - 2 * GIVEN_UP_AFTER)
    assert (again.gaps, dict(again.problems)) == ((), {})


def test_a_topic_that_only_may_not_be_seen_is_never_given_up() -> None:
    contact = vanished(state_of(5), ends={("orders", 0): 9}, since=None)

    assert contact.problems["orders", 0].reason == "TopicMissing"
    assert contact.gaps == ()


def test_a_given_up_topic_that_comes_back_is_read_from_its_beginning_under_new_names() -> None:
    ends = {("orders", 0): 9}
    state = _committed(vanished(state_of(5), ends=ends, since=LATER - GIVEN_UP_AFTER))

    back = meet_kafka(state, Offsets(0, 3, 3), topic_id="id-2", known_ends=ends, skip_lost=True)

    assert back.state.topics["orders"] == TopicState("id-2", 2, {0: PartitionState(0, 0, LATER)})
    assert back.gaps == ()


def test_first_contact_is_remembered_even_if_no_topic_was_there() -> None:
    state = first_contact(State(owner=Owner("c", "ns", "sink")), {}, {}, NOW)

    assert (state.contacted, dict(state.topics)) == (True, {})


def test_retention_stops_the_partition_and_says_what_is_gone_unless_told_to_skip() -> None:
    contact = meet_kafka(state_of(5, 5), Offsets(8, 20, 20), Offsets(0, 9, 9))

    assert contact.problems["orders", 0].reason == "DataLoss"
    assert "5 to 7" in contact.problems["orders", 0].message
    assert set(contact.seen) == {("orders", 1)}
    assert contact.gaps == ()


def test_retention_with_skip_goes_on_behind_the_gap_and_notes_it() -> None:
    contact = meet_kafka(state_of(5), Offsets(8, 20, 20), skip_lost=True)

    assert contact.gaps == (Gap("orders", 1, 0, 5, 8, GapReason.RETENTION, LATER),)
    assert contact.problems == {}
    assert _committed(contact).offset("orders", 0) == 8


def test_retention_up_to_the_committed_offset_lost_nothing() -> None:
    contact = meet_kafka(state_of(5), Offsets(5, 20, 20))

    assert (contact.gaps, dict(contact.problems)) == ((), {})


def test_a_log_cut_short_stops_the_partition_unless_told_to_skip() -> None:
    contact = meet_kafka(state_of(50), Offsets(0, 30, 30))

    assert contact.problems["orders", 0].reason == "LogTruncated"
    assert contact.seen == {}


def test_a_log_that_ends_at_the_committed_offset_is_not_cut_short() -> None:
    assert meet_kafka(state_of(50), Offsets(0, 50, 50)).problems == {}


@pytest.mark.parametrize("partitions", [(0, 1), (1, 0)])
def test_retention_and_a_log_cut_short_at_once_can_both_be_committed(partitions: tuple[int, int]) -> None:
    """One partition's new generation must not make the note about the other one impossible to commit."""
    found = {partitions[0]: Offsets(60, 80, 80), partitions[1]: Offsets(0, 30, 30)}

    contact = meet_kafka(state_of(50, 50), found[0], found[1], skip_lost=True)

    state = _committed(contact)
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
def test_with_skip_every_partition_goes_on_whatever_became_of_its_topic(
    committed: list[int], found: list[Offsets], ends: dict[TopicPartition, int], topic_id: str
) -> None:
    before = state_of(*committed)

    contact = meet_kafka(before, *found, topic_id=topic_id, known_ends=ends, skip_lost=True)

    assert contact.problems == {}
    state = _committed(contact)
    for (name, partition), offsets in contact.seen.items():
        assert offsets.earliest <= state.offset(name, partition) <= offsets.end
    if state.topics["orders"].generation == 1:
        for partition, offset in enumerate(committed):
            assert state.offset("orders", partition) >= offset


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=4),
    st.lists(offsets_drawn, min_size=1, max_size=4),
)
def test_without_skip_nothing_that_was_not_written_is_ever_passed_over(
    committed: list[int], found: list[Offsets]
) -> None:
    contact = meet_kafka(state_of(*committed), *found, skip_lost=False)

    assert contact.gaps == ()
    for partition, offset in enumerate(committed):
        assert contact.state.offset("orders", partition) == offset
    for at_partition in contact.seen:
        assert at_partition not in contact.problems


def _committed(contact: Contact) -> State:
    """The state after what contact found was committed, as the driver does it."""
    if not contact.gaps:
        return contact.state
    return commit(contact.state, Manifest(1, "w", 1, LATER, {}, contact.state.last, gaps=contact.gaps))
