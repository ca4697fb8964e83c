"""Logs that were cut and grew again: no record of the new log is stepped over, and nothing goes on by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_job.flush.contact import Contact, Topic, follow
from s3sink_job.flush.manifest import GapReason, SourceLog
from s3sink_job.flush.plan import Offsets, TopicPartition
from s3sink_job.flush.state import Cut, PartitionState, State, commit
from s3sink_job.flush.truncation import Asked, Validated, moved_leaders
from tests.flush.examples import NOW, manifest, slice_entry, state_of

AT = ("orders", 0)
LATER = NOW + 10


def committed(offset: int, epoch: int | None = 5) -> PartitionState:
    return PartitionState(0, offset, NOW, leader_epoch=epoch)


def look(
    state: State,
    *offsets: Offsets,
    validated: Validated = Validated(),  # noqa: B008 - frozen
    skip_lost: bool = False,
    known_ends: dict[TopicPartition, int] | None = None,
    topic_id: str = "id-1",
) -> Contact:
    topics = {"orders": Topic(topic_id, tuple(range(len(offsets))))}
    seen = {("orders", number): found for number, found in enumerate(offsets)}
    return follow(state, topics, seen, known_ends or {}, skip_lost=skip_lost, now=LATER, validated=validated)


GROWN = Offsets(0, 1200, 1200, 6)
"""Cut to 500 below what was committed, and grown past it."""
CUT = Validated({AT: 500})


def test_a_log_that_was_cut_and_grew_again_stops_its_partition() -> None:
    contact = look(state_of(committed(1000), committed(7)), GROWN, Offsets(0, 9, 9, 5), validated=CUT)

    problem = contact.problems[AT]
    assert problem.reason == "LogTruncated"
    assert "orders-0" in problem.message
    assert "1000" in problem.message
    assert "500" in problem.message
    assert "onDataLoss to Skip" in problem.message
    assert set(contact.seen) == {("orders", 1)}


def test_it_stays_stopped_though_kafka_finds_nothing_wrong_any_more() -> None:
    stopped = look(state_of(committed(1000)), GROWN, validated=CUT).state

    later = look(stopped, Offsets(0, 5000, 5000, 6))

    assert stopped.topics["orders"].partitions[0].cut == Cut(500, LATER)
    assert later.problems[AT].reason == "LogTruncated"
    assert later.seen == {}
    assert later.state == stopped


def test_a_log_that_ends_below_the_committed_offset_stays_stopped_once_it_has_grown_past_it() -> None:
    stopped = look(state_of(committed(1000, None)), Offsets(0, 500, 500)).state

    assert look(stopped, Offsets(0, 1200, 1200)).problems[AT].reason == "LogTruncated"


def test_skip_begins_a_new_generation_where_the_logs_differ() -> None:
    contact = look(state_of(committed(1000), committed(7)), GROWN, Offsets(0, 9, 9, 5), validated=CUT, skip_lost=True)

    topic = contact.state.topics["orders"]
    assert topic.generation == 2
    assert {p: (s.start, s.offset, s.leader_epoch) for p, s in topic.partitions.items()} == {
        0: (500, 500, 6),
        1: (7, 7, 5),
    }
    assert set(contact.seen) == {AT, ("orders", 1)}
    assert contact.problems == {}
    (event,) = contact.state.truncations
    assert (event.partition, event.generation, event.committed, event.resumed) == (0, 1, 1000, 500)
    assert any("orders-0" in note and "500" in note for note in contact.notes)


def test_skip_ends_a_stop_of_long_ago_where_the_logs_differed_then() -> None:
    stopped = look(state_of(committed(1000)), GROWN, validated=CUT).state

    contact = look(stopped, Offsets(0, 5000, 5000, 6), skip_lost=True)

    assert contact.state.topics["orders"].partitions[0] == PartitionState(500, 500, LATER, leader_epoch=6)


def test_a_second_cut_below_the_first_counts() -> None:
    stopped = look(state_of(committed(1000)), GROWN, validated=CUT).state

    contact = look(stopped, Offsets(0, 900, 900, 7), validated=Validated({AT: 300}), skip_lost=True)

    assert contact.state.offset(*AT) == 300


@pytest.mark.parametrize("validated", [Validated({AT: None}), Validated()])
def test_where_the_broker_cannot_name_the_point_everything_is_written_again(validated: Validated) -> None:
    contact = look(state_of(committed(1000)), Offsets(40, 500, 500, 6), validated=validated, skip_lost=True)

    assert contact.state.offset(*AT) == 40


def test_what_the_old_log_had_beyond_the_committed_offset_is_recorded_as_a_gap() -> None:
    contact = look(state_of(committed(1000)), GROWN, validated=CUT, skip_lost=True, known_ends={AT: 1100})

    (gap,) = contact.gaps
    assert (gap.generation, gap.start, gap.end, gap.reason) == (1, 1000, 1100, GapReason.LOG_TRUNCATED)
    assert not gap.moves


def test_records_of_the_new_log_that_retention_took_are_recorded_too() -> None:
    contact = look(state_of(committed(1000)), Offsets(700, 1200, 1200, 6), validated=CUT, skip_lost=True)

    (gap,) = contact.gaps
    assert (gap.generation, gap.start, gap.end, gap.reason) == (2, 500, 700, GapReason.RETENTION)


def test_a_partition_that_kafka_does_not_confirm_is_not_read() -> None:
    silent = Validated(unknown={AT: "TimeoutException"})

    contact = look(state_of(committed(1000), committed(7)), GROWN, Offsets(0, 9, 9, 5), validated=silent)

    assert contact.problems[AT].reason == "PartitionUnavailable"
    assert "TimeoutException" in contact.problems[AT].message
    assert set(contact.seen) == {("orders", 1)}


def test_a_state_without_epochs_takes_the_present_ones_over_and_warns() -> None:
    contact = look(state_of(committed(1000, None)), Offsets(0, 1200, 1200, 6))

    assert contact.state.topics["orders"].partitions[0].leader_epoch == 6
    assert any("no leader epochs" in note for note in contact.notes)
    assert look(contact.state, Offsets(0, 1300, 1300, 6)).notes == ()


def test_brokers_without_epochs_change_nothing() -> None:
    state = state_of(committed(1000, None))

    contact = look(state, Offsets(0, 1200, 1200))

    assert (contact.state, contact.notes, contact.problems) == (state, (), {})


def test_only_a_change_of_leader_is_asked_about() -> None:
    state = state_of(committed(1000), committed(7), committed(3, None))
    seen = {("orders", 0): GROWN, ("orders", 1): Offsets(0, 9, 9, 5), ("orders", 2): Offsets(0, 9, 9, 9)}

    assert moved_leaders(state, {"orders": "id-1"}, seen) == {AT: Asked(1000, 5, 6)}
    assert moved_leaders(state, {"orders": "id-2"}, seen) == {}


def test_the_epoch_of_a_commit_is_that_of_the_plan_behind_it() -> None:
    flush = replace(manifest(slices=(slice_entry(10, 20),)), logs={"orders": SourceLog("id-1", {0: 8})})

    assert commit(state_of(committed(10)), flush).topics["orders"].partitions[0].leader_epoch == 8


def test_a_commit_without_an_epoch_does_not_keep_an_older_one() -> None:
    """It would make the whole log look cut."""
    after = commit(state_of(committed(10)), manifest(slices=(slice_entry(10, 20),)))

    assert after.topics["orders"].partitions[0].leader_epoch is None


@given(st.integers(1, 50), st.integers(0, 50), st.integers(0, 80), st.integers(0, 50), st.booleans())
def test_with_skip_nothing_of_a_cut_log_is_stepped_over(
    offset: int, cut: int, grown: int, earliest: int, named: bool
) -> None:
    cut = min(cut, offset - 1)
    end = cut + grown
    offsets = Offsets(min(earliest, end), end, end, 6)

    contact = look(
        state_of(committed(offset)), offsets, validated=Validated({AT: cut if named else None}), skip_lost=True
    )

    begin = contact.state.offset(*AT)
    gaps = [(gap.start, gap.end) for gap in contact.gaps]
    assert begin <= max(cut, offsets.earliest)
    assert gaps == ([(begin, offsets.earliest)] if begin < offsets.earliest else [])


def test_an_id_that_is_not_known_is_no_other_id() -> None:
    """Brokers before Kafka 2.8 answer with a zero id. Upgraded, they tell the real one."""
    unknown = replace(
        state_of(committed(1000)), topics={"orders": replace(state_of(committed(1000)).topics["orders"], id="")}
    )

    adopted = look(unknown, Offsets(0, 1200, 1200, 5))
    kept = look(state_of(committed(1000)), Offsets(0, 1200, 1200, 5), topic_id="")

    assert (adopted.state.topics["orders"].id, adopted.state.topics["orders"].generation) == ("id-1", 1)
    assert (kept.state.topics["orders"].id, kept.state.topics["orders"].generation) == ("id-1", 1)


def test_logs_that_were_cut_together_begin_one_new_generation() -> None:
    state = state_of(*(committed(1000) for _ in range(3)), committed(7))
    validated = Validated({("orders", p): 500 + p for p in range(3)})

    contact = look(
        *(state, GROWN, GROWN, GROWN, Offsets(0, 9, 9, 5)),
        validated=validated,
        skip_lost=True,
        known_ends={("orders", 2): 1100},
    )

    topic = contact.state.topics["orders"]
    assert topic.generation == 2
    assert [topic.partitions[p].offset for p in range(4)] == [500, 501, 502, 7]
    assert {event.generation for event in contact.state.truncations} == {1}
    assert [gap.generation for gap in contact.gaps] == [1]


def test_ten_thousand_cut_logs_are_as_many_steps() -> None:
    """Not as many times as many: a cluster may come back from a snapshot."""
    count = 10_000
    state = state_of(*(committed(1000) for _ in range(count)))
    validated = Validated({("orders", p): 500 for p in range(count)})

    stopped = look(state, *[GROWN] * count, validated=validated)
    contact = look(stopped.state, *[GROWN] * count, skip_lost=True)

    assert len(stopped.problems) == count
    assert contact.state.topics["orders"].generation == 2
