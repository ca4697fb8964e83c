"""Truncated logs that grew again: no record of the new log is skipped, and nothing continues without a decision."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_job.flush.kafka_metadata import Offsets, Topic, TopicPartition
from s3sink_job.flush.manifest import GapReason, SourceLog
from s3sink_job.flush.state import PartitionState, SinkState, TruncatedLog
from s3sink_job.flush.topic_changes import TopicChanges, detect_topic_changes
from s3sink_job.flush.transitions import commit
from s3sink_job.flush.truncation import OffsetToValidate, OffsetValidation, offsets_to_validate
from tests.flush.examples import NOW, manifest, slice_entry, state_of

AT = ("orders", 0)
LATER = NOW + 10


def committed(offset: int, epoch: int | None = 5) -> PartitionState:
    return PartitionState(0, offset, NOW, leader_epoch=epoch)


def detect(
    state: SinkState,
    *offsets: Offsets,
    validated: OffsetValidation = OffsetValidation(),  # noqa: B008 - frozen
    skip_lost: bool = False,
    known_ends: dict[TopicPartition, int] | None = None,
    topic_id: str = "id-1",
) -> TopicChanges:
    topics = {"orders": Topic(topic_id, tuple(range(len(offsets))))}
    seen = {("orders", number): found for number, found in enumerate(offsets)}
    return detect_topic_changes(
        state, topics, seen, known_ends or {}, skip_lost=skip_lost, now=LATER, validated=validated
    )


GROWN = Offsets(0, 1200, 1200, 6)
"""Truncated to 500, below the committed offset, and grown past it."""
TRUNCATED = OffsetValidation({AT: 500})


def test_a_truncated_log_that_grew_again_stops_its_partition() -> None:
    changes = detect(state_of(committed(1000), committed(7)), GROWN, Offsets(0, 9, 9, 5), validated=TRUNCATED)

    problem = changes.problems[AT]
    assert problem.reason == "LogTruncated"
    assert "orders-0" in problem.message
    assert "1000" in problem.message
    assert "500" in problem.message
    assert "onDataLoss to Skip" in problem.message
    assert set(changes.seen) == {("orders", 1)}


def test_a_stopped_partition_stays_stopped_when_kafka_finds_nothing_wrong() -> None:
    stopped = detect(state_of(committed(1000)), GROWN, validated=TRUNCATED).state

    later = detect(stopped, Offsets(0, 5000, 5000, 6))

    assert stopped.topics["orders"].partitions[0].truncated_log == TruncatedLog(500, LATER)
    assert later.problems[AT].reason == "LogTruncated"
    assert later.seen == {}
    assert later.state == stopped


def test_a_short_log_stays_stopped_after_it_grew_past_the_committed_offset() -> None:
    stopped = detect(state_of(committed(1000, None)), Offsets(0, 500, 500)).state

    assert detect(stopped, Offsets(0, 1200, 1200)).problems[AT].reason == "LogTruncated"


def test_skip_begins_a_new_generation_where_the_logs_differ() -> None:
    changes = detect(
        state_of(committed(1000), committed(7)), GROWN, Offsets(0, 9, 9, 5), validated=TRUNCATED, skip_lost=True
    )

    topic = changes.state.topics["orders"]
    assert topic.generation == 2
    assert {p: (s.start, s.offset, s.leader_epoch) for p, s in topic.partitions.items()} == {
        0: (500, 500, 6),
        1: (7, 7, 5),
    }
    assert set(changes.seen) == {AT, ("orders", 1)}
    assert changes.problems == {}
    (event,) = changes.state.truncations
    assert (event.partition, event.generation, event.committed, event.resumed) == (0, 1, 1000, 500)
    assert any("orders-0" in note and "500" in note for note in changes.notes)


def test_skip_resumes_an_older_stop_at_the_first_difference_of_then() -> None:
    stopped = detect(state_of(committed(1000)), GROWN, validated=TRUNCATED).state

    changes = detect(stopped, Offsets(0, 5000, 5000, 6), skip_lost=True)

    assert changes.state.topics["orders"].partitions[0] == PartitionState(500, 500, LATER, leader_epoch=6)


def test_a_second_truncation_below_the_first_counts() -> None:
    stopped = detect(state_of(committed(1000)), GROWN, validated=TRUNCATED).state

    changes = detect(stopped, Offsets(0, 900, 900, 7), validated=OffsetValidation({AT: 300}), skip_lost=True)

    assert changes.state.offset(*AT) == 300


@pytest.mark.parametrize("validated", [OffsetValidation({AT: None}), OffsetValidation()])
def test_without_a_reported_difference_everything_is_written_again(validated: OffsetValidation) -> None:
    changes = detect(state_of(committed(1000)), Offsets(40, 500, 500, 6), validated=validated, skip_lost=True)

    assert changes.state.offset(*AT) == 40


def test_what_the_old_log_had_beyond_the_committed_offset_is_recorded_as_a_gap() -> None:
    changes = detect(state_of(committed(1000)), GROWN, validated=TRUNCATED, skip_lost=True, known_ends={AT: 1100})

    (gap,) = changes.gaps
    assert (gap.generation, gap.start, gap.end, gap.reason) == (1, 1000, 1100, GapReason.LOG_TRUNCATED)
    assert not gap.moves


def test_records_of_the_new_log_that_retention_deleted_are_recorded_too() -> None:
    changes = detect(state_of(committed(1000)), Offsets(700, 1200, 1200, 6), validated=TRUNCATED, skip_lost=True)

    (gap,) = changes.gaps
    assert (gap.generation, gap.start, gap.end, gap.reason) == (2, 500, 700, GapReason.RETENTION)


def test_a_partition_that_kafka_does_not_confirm_is_not_read() -> None:
    silent = OffsetValidation(unanswered={AT: "TimeoutException"})

    changes = detect(state_of(committed(1000), committed(7)), GROWN, Offsets(0, 9, 9, 5), validated=silent)

    assert changes.problems[AT].reason == "PartitionUnavailable"
    assert "TimeoutException" in changes.problems[AT].message
    assert set(changes.seen) == {("orders", 1)}


def test_a_state_without_epochs_stores_the_current_ones_and_warns() -> None:
    changes = detect(state_of(committed(1000, None)), Offsets(0, 1200, 1200, 6))

    assert changes.state.topics["orders"].partitions[0].leader_epoch == 6
    assert any("no leader epochs" in note for note in changes.notes)
    assert detect(changes.state, Offsets(0, 1300, 1300, 6)).notes == ()


def test_brokers_without_epochs_change_nothing() -> None:
    state = state_of(committed(1000, None))

    changes = detect(state, Offsets(0, 1200, 1200))

    assert (changes.state, changes.notes, changes.problems) == (state, (), {})


def test_only_offsets_with_a_new_leader_are_validated() -> None:
    state = state_of(committed(1000), committed(7), committed(3, None))
    seen = {("orders", 0): GROWN, ("orders", 1): Offsets(0, 9, 9, 5), ("orders", 2): Offsets(0, 9, 9, 9)}

    assert offsets_to_validate(state, {"orders": "id-1"}, seen) == {AT: OffsetToValidate(1000, 5, 6)}
    assert offsets_to_validate(state, {"orders": "id-2"}, seen) == {}


def test_the_epoch_of_a_commit_is_that_of_the_log_that_was_read() -> None:
    flush = replace(manifest(slices=(slice_entry(10, 20),)), logs={"orders": SourceLog("id-1", {0: 8})})

    assert commit(state_of(committed(10)), flush).topics["orders"].partitions[0].leader_epoch == 8


def test_a_commit_without_an_epoch_does_not_keep_an_older_one() -> None:
    """It would make an intact log look truncated."""
    after = commit(state_of(committed(10)), manifest(slices=(slice_entry(10, 20),)))

    assert after.topics["orders"].partitions[0].leader_epoch is None


@given(st.integers(1, 50), st.integers(0, 50), st.integers(0, 80), st.integers(0, 50), st.booleans())
def test_with_skip_no_record_of_a_truncated_log_is_skipped(
    offset: int, difference: int, grown: int, earliest: int, named: bool
) -> None:
    difference = min(difference, offset - 1)
    end = difference + grown
    offsets = Offsets(min(earliest, end), end, end, 6)

    changes = detect(
        state_of(committed(offset)),
        offsets,
        validated=OffsetValidation({AT: difference if named else None}),
        skip_lost=True,
    )

    begin = changes.state.offset(*AT)
    gaps = [(gap.start, gap.end) for gap in changes.gaps]
    assert begin <= max(difference, offsets.earliest)
    assert gaps == ([(begin, offsets.earliest)] if begin < offsets.earliest else [])


def test_an_unknown_topic_id_matches_any_id() -> None:
    """Brokers before Kafka 2.8 answer with a zero id, and with the real one after an upgrade."""
    unknown = replace(
        state_of(committed(1000)), topics={"orders": replace(state_of(committed(1000)).topics["orders"], id="")}
    )

    adopted = detect(unknown, Offsets(0, 1200, 1200, 5))
    kept = detect(state_of(committed(1000)), Offsets(0, 1200, 1200, 5), topic_id="")

    assert (adopted.state.topics["orders"].id, adopted.state.topics["orders"].generation) == ("id-1", 1)
    assert (kept.state.topics["orders"].id, kept.state.topics["orders"].generation) == ("id-1", 1)


def test_logs_truncated_together_begin_one_new_generation() -> None:
    state = state_of(*(committed(1000) for _ in range(3)), committed(7))
    validated = OffsetValidation({("orders", p): 500 + p for p in range(3)})

    changes = detect(
        *(state, GROWN, GROWN, GROWN, Offsets(0, 9, 9, 5)),
        validated=validated,
        skip_lost=True,
        known_ends={("orders", 2): 1100},
    )

    topic = changes.state.topics["orders"]
    assert topic.generation == 2
    assert [topic.partitions[p].offset for p in range(4)] == [500, 501, 502, 7]
    assert {event.generation for event in changes.state.truncations} == {1}
    assert [gap.generation for gap in changes.gaps] == [1]


def test_ten_thousand_truncated_logs_take_linear_time() -> None:
    """A whole cluster may be restored from a snapshot."""
    count = 10_000
    state = state_of(*(committed(1000) for _ in range(count)))
    validated = OffsetValidation({("orders", p): 500 for p in range(count)})

    stopped = detect(state, *[GROWN] * count, validated=validated)
    changes = detect(stopped.state, *[GROWN] * count, skip_lost=True)

    assert len(stopped.problems) == count
    assert changes.state.topics["orders"].generation == 2
