"""A reset: every topic is read again once, with a new generation, and existing objects stay."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_api.spec import FromEarliest, FromLatest, FromOffsets, FromTimestamp, Reset, TopicOffset
from s3sink_job.base.errors import FinalError, ProtocolError
from s3sink_job.flush.kafka_metadata import Offsets, Topic
from s3sink_job.flush.plan import drained
from s3sink_job.flush.resets import pending_reset, reset_topics
from s3sink_job.flush.starting_offsets import describe_start, starting_offsets
from s3sink_job.flush.state import Owner, PartitionState, ResetDone, SinkState, TopicState
from s3sink_job.flush.statefile import state_from_json, state_to_json
from s3sink_job.flush.topic_changes import detect_topic_changes
from s3sink_job.flush.transitions import RESETS_KEPT, commit, published, record_reset
from tests.flush.examples import NOW, gap, manifest, object_entry, slice_entry, state_of

LATER = NOW + 10
ORDERS = {"orders": Topic("id-1", (0, 1))}
STARTS = {("orders", 0): 3, ("orders", 1): 0}


def reset(state: SinkState, nonce: str = "again") -> SinkState:
    return reset_topics(state, nonce, ORDERS, STARTS, LATER)


def test_every_partition_begins_at_reset_to_with_the_next_generation() -> None:
    state = reset(state_of(50, 60))

    fresh = {0: PartitionState(3, 3, LATER), 1: PartitionState(0, 0, LATER)}
    assert state.topics["orders"] == TopicState("id-1", 2, fresh)
    assert state.resets == (ResetDone("again", LATER),)


def test_a_reset_keeps_totals_gaps_and_schema() -> None:
    flush = replace(manifest(slices=(slice_entry(5, 9),), gaps=(gap(9, 12),)), schemas={"orders": "f00d"})
    before = commit(state_of(5, 0), flush)

    after = reset(before)

    assert after.topics["orders"].schema == "f00d"
    kept = ("owner", "epoch", "flush", "last", "totals", "recent_gaps", "stamp")
    assert [getattr(after, name) for name in kept] == [getattr(before, name) for name in kept]


def test_no_reset_before_the_last_flush_is_published() -> None:
    pending = commit(state_of(5, 0), manifest(slices=(slice_entry(5, 9),), objects=(object_entry(5, 8),)))

    with pytest.raises(ProtocolError, match="still being published"):
        reset(pending)
    assert reset(published(pending)).publishing is None


def test_a_flush_of_the_old_generation_cannot_be_committed_after_a_reset() -> None:
    with pytest.raises(ProtocolError, match="is at generation 2"):
        commit(reset(state_of(3, 0)), manifest(slices=(slice_entry(3, 9),)))


def test_a_missing_topic_begins_at_earliest_when_it_is_back_after_a_reset() -> None:
    before = state_of(50)
    before = replace(before, topics={**before.topics, "gone": TopicState("id-9", 3, {0: PartitionState(0, 7, NOW)})})

    state = reset(before)
    assert state.topics["gone"] == TopicState("id-9", 4, {})

    topics = {**ORDERS, "gone": Topic("id-9", (0,))}
    seen = {("orders", 0): Offsets(0, 9, 9), ("orders", 1): Offsets(0, 9, 9), ("gone", 0): Offsets(2, 9, 9)}
    back = detect_topic_changes(state, topics, seen, {}, skip_lost=False, now=LATER)
    assert back.state.topics["gone"] == TopicState("id-9", 4, {0: PartitionState(2, 2, LATER)})
    assert (back.gaps, dict(back.problems)) == ((), {})


def test_a_missing_topic_is_still_reported_after_a_reset() -> None:
    state = reset_topics(state_of(50), "again", {}, {}, LATER)

    changes = detect_topic_changes(state, {"orders": None}, {}, {}, skip_lost=False, now=LATER)

    assert changes.problems["orders", 0].reason == "TopicMissing"


def test_a_reset_and_a_recreated_topic_make_one_new_generation() -> None:
    state = reset_topics(state_of(50), "again", {"orders": Topic("id-2", (0,))}, {("orders", 0): 0}, LATER)

    changes = detect_topic_changes(
        state, {"orders": Topic("id-2", (0,))}, {("orders", 0): Offsets(0, 5, 5)}, {}, skip_lost=False, now=LATER
    )

    assert (changes.state.topics["orders"].generation, changes.state, changes.notes) == (2, state, ())


def test_a_partition_stopped_by_data_loss_resumes_after_a_reset() -> None:
    seen = {("orders", 0): Offsets(80, 90, 90), ("orders", 1): Offsets(0, 30, 30)}
    stuck = detect_topic_changes(state_of(50, 50), ORDERS, seen, {}, skip_lost=False, now=LATER)
    assert {p.reason for p in stuck.problems.values()} == {"DataLoss", "LogTruncated"}

    state = reset_topics(stuck.state, "again", ORDERS, starting_offsets(FromEarliest(), seen, {}), LATER)

    assert detect_topic_changes(state, ORDERS, seen, {}, skip_lost=False, now=LATER).problems == {}


def test_a_drain_does_not_wait_for_the_generation_before_a_reset() -> None:
    assert drained(reset(state_of(5, 0)), {("orders", 0): (1, 90)})


def test_a_sink_that_has_never_run_begins_at_reset_to_with_generation_1() -> None:
    state = reset(SinkState(owner=Owner("c", "ns", "sink")))

    assert (state.contacted, state.topics["orders"].generation, state.offset("orders", 0)) == (True, 1, 3)
    assert pending_reset(Reset(nonce="again"), state) is None


def test_each_nonce_counts_once() -> None:
    state = reset(reset(state_of(5, 0), "one"), "two")

    assert pending_reset(None, state) is None
    assert pending_reset(Reset(nonce="one"), state) is None
    assert pending_reset(Reset(nonce="two"), state) is None
    assert pending_reset(Reset(nonce="three"), state) == Reset(nonce="three")
    with pytest.raises(ProtocolError, match="already done"):
        reset(state, "one")


def test_the_state_stays_small_however_often_it_is_reset() -> None:
    state = state_of(5)
    for number in range(RESETS_KEPT + 5):
        state = record_reset(state, str(number), LATER)

    assert len(state.resets) == RESETS_KEPT
    assert state.resets[-1].nonce == str(RESETS_KEPT + 4)


def test_a_listed_offset_that_kafka_does_not_have_is_refused_with_its_field() -> None:
    seen = {("orders", 0): Offsets(5, 90, 100)}
    wanted = FromOffsets(offsets=(TopicOffset(topic="orders", partition=0, offset=4),))

    with pytest.raises(FinalError, match=r"spec\.reset\.to\.offsets\[0\]: orders-0 has offsets 5 to 100, got 4"):
        starting_offsets(wanted, seen, {}, "spec.reset.to")


def test_a_reset_raises_the_format_version_of_the_state() -> None:
    """0.1.0 would read it, forget the nonce and continue; after the next upgrade the reset would be done again."""
    assert json.loads(state_to_json(state_of(5)))["formatVersion"] == 1
    assert json.loads(state_to_json(reset(state_of(5))))["formatVersion"] == 2


def test_a_state_from_before_there_were_resets_is_read() -> None:
    doc = json.loads(state_to_json(state_of(5)))
    del doc["resets"]

    assert state_from_json(json.dumps(doc).encode(), "the state") == state_of(5)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (FromEarliest(), "Earliest"),
        (FromLatest(), "Latest"),
        (FromTimestamp(timestamp=datetime(2026, 1, 1, tzinfo=UTC)), "Timestamp 2026-01-01T00:00:00Z"),
        (
            FromOffsets(offsets=(TopicOffset(topic="orders", partition=0, offset=4),)),
            "Offsets (1 listed, else Earliest)",
        ),
    ],
)
def test_the_start_is_described_as_text(wanted: FromEarliest | FromTimestamp | FromOffsets, words: str) -> None:
    assert describe_start(wanted) == words


partition_states = st.builds(PartitionState, st.integers(0, 9), st.integers(9, 20), st.just(NOW))
known_topics = st.dictionaries(
    st.sampled_from("abc"),
    st.builds(
        TopicState,
        st.sampled_from(["id-1", "id-2"]),
        st.integers(1, 9),
        st.dictionaries(st.integers(0, 3), partition_states),
        st.sampled_from(["", "f00d"]),
    ),
)
kafkas_topics = st.dictionaries(
    st.sampled_from("abcd"),
    st.builds(Topic, st.sampled_from(["id-1", "id-2"]), st.sets(st.integers(0, 3)).map(lambda s: tuple(sorted(s)))),
)


@given(known_topics, kafkas_topics, st.data())
def test_a_reset_raises_every_generation_and_keeps_no_offset(
    known: dict[str, TopicState], found: dict[str, Topic], data: st.DataObject
) -> None:
    before = replace(state_of(), topics=known)
    starts = {(name, p): data.draw(st.integers(0, 30)) for name, topic in found.items() for p in topic.partitions}

    after = reset_topics(before, "again", found, starts, LATER)

    assert set(after.topics) == {*known, *found}
    for name, topic in after.topics.items():
        assert topic.generation == (known[name].generation + 1 if name in known else 1)
        assert topic.schema == (known[name].schema if name in known else "")
        expected = {p: starts[name, p] for p in found[name].partitions} if name in found else {}
        assert {p: at.offset for p, at in topic.partitions.items()} == expected
        assert topic.id == (found[name].id if name in found else known[name].id)
    assert state_from_json(state_to_json(after), "the state") == after
