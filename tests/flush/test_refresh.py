"""The phases of a full refresh as transitions of the state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from s3sink_job.base.errors import ProtocolError
from s3sink_job.flush.kafka_metadata import Offsets, Topic
from s3sink_job.flush.refresh import (
    abandon_run,
    as_if_finished,
    begin_run,
    emptied_topics,
    finish_run,
    incomplete,
    last_replaced,
    make_current,
    must_abandon,
    must_begin,
    publish_run,
    published_of_run,
    removed_from,
    replaced_totals,
    unpublished_since,
    visible_state,
    written_totals,
)
from s3sink_job.flush.state import PartitionState, SinkState, TopicState, Totals, TruncatedLog
from s3sink_job.flush.statefile import state_from_json, state_to_json
from s3sink_job.flush.transitions import commit, next_generation, published
from tests.flush.examples import gap, manifest, object_entry, slice_entry, state_of

AT = ("orders", 0)
TOPICS = {"orders": Topic("id", (0,))}
LOG = Offsets(earliest=0, stable=9, end=9)


def appended() -> SinkState:
    """A sink that has published one flush."""
    flush = manifest(slices=(slice_entry(0, 5),), objects=(object_entry(0, 4),))
    return published(commit(state_of(0), flush))


def begun(state: SinkState | None = None, run: str = "run", end: int = 9) -> SinkState:
    return begin_run(state or appended(), run, TOPICS, {AT: 0}, {AT: end}, 100.0)


def written(state: SinkState) -> SinkState:
    """One flush of the run up to its end."""
    generation = state.topics["orders"].generation
    part = replace(slice_entry(0, 9), generation=generation)
    entry = replace(object_entry(0, 8), generation=generation)
    flush = replace(manifest(slices=(part,), objects=(entry,)), number=state.flush + 1, previous=state.last)
    return commit(state, flush)


def done(state: SinkState) -> SinkState:
    publishing = publish_run(state)
    current = make_current(published_of_run(publishing, state.last or ""), 200.0, None)
    return finish_run(removed_from(current, None, 0))


def test_a_flush_of_a_run_is_committed_and_not_published() -> None:
    state = written(begun())

    assert (state.publishing, state.offset(*AT), state.topics["orders"].generation) == (None, 9, 2)
    assert unpublished_since(state) == (state.last, appended().last)
    assert replaced_totals(state).records == 5
    assert written_totals(state).records == 9


def test_until_the_swap_the_sink_is_what_it_was_before_the_run() -> None:
    before, state = appended(), written(begun())
    for each in (state, publish_run(state)):
        seen = visible_state(each)
        assert (seen.last, seen.topics, seen.totals, seen.end) == (before.last, before.topics, before.totals, None)
        assert last_replaced(seen) is None
    current = make_current(publish_run(state), 200.0, None)
    assert visible_state(current) == current
    assert last_replaced(current) == before.last


def test_every_phase_is_stored_and_read_again() -> None:
    at = PartitionState(start=0, offset=3, flushed_at=1.0, leader_epoch=4, truncated_log=TruncatedLog(2, 5.0))
    odd = replace(appended(), topics={"orders": TopicState("id", 1, {0: at}, "typed-1")})
    state = written(begun())
    phases = [begun(odd), state, publish_run(state), done(state), abandon_run(state)]
    phases.append(removed_from(make_current(publish_run(state), 2.0, "000000000001-replay"), state.last, 3))
    for each in phases:
        assert state_from_json(state_to_json(each), "state") == each
        assert b'"formatVersion": 4' in state_to_json(each)
    assert b"refresh" not in state_to_json(appended())


def test_a_run_that_ended_is_remembered_and_the_next_one_begins() -> None:
    state = done(written(begun()))

    assert (must_begin(state, "run"), must_begin(state, "other")) == (False, True)
    assert replaced_totals(state) == Totals(records=9, bytes=state.totals.bytes - appended().totals.bytes, objects=1)
    again = begun(state, "other")
    assert (again.refresh.number, again.refresh.replaced) == (2, appended().last)  # type: ignore[union-attr]
    assert again.topics["orders"].generation == 3


def test_an_abandoned_run_leaves_the_chain_and_the_former_offsets_come_back() -> None:
    before, state = appended(), written(begun())
    assert (must_abandon(state, "run"), must_abandon(state, "other"), must_abandon(state, None)) == (False, True, True)

    left = abandon_run(replace(state, recent_gaps=(replace(gap(0, 1), at=150.0),)))

    assert (left.last, left.totals, left.end, left.recent_gaps) == (before.last, before.totals, None, ())
    assert left.flush == state.flush, "no number is used twice"
    topic = left.topics["orders"]
    assert (topic.generation, topic.partitions[0].start, topic.partitions[0].offset) == (3, 5, 5)
    assert must_begin(left, "run")


def test_an_abandoned_first_run_starts_where_the_manifest_says() -> None:
    fresh = begin_run(SinkState(owner=appended().owner), "run", TOPICS, {AT: 0}, {AT: 9}, 100.0)

    left = abandon_run(fresh)

    assert (left.contacted, left.last, left.topics["orders"].partitions) == (False, None, {})


def test_nothing_becomes_current_while_something_is_lost_or_out_of_order() -> None:
    state = written(begun())
    lost = published_of_run(publish_run(state), state.last or "", [0])
    for act in (
        lambda: make_current(lost, 1.0, None),
        lambda: make_current(state, 1.0, None),
        lambda: abandon_run(publish_run(state)),
        lambda: finish_run(publish_run(state)),
        lambda: begun(state, "other"),
        lambda: begun(replace(appended(), publishing="000000000001-x")),
        lambda: begun(replace(appended(), lost={"000000000001-x": (0,)})),
    ):
        with pytest.raises(ProtocolError):
            act()


def test_a_run_is_complete_only_if_every_partition_reached_its_end_in_its_generation() -> None:
    state = written(begun())
    assert incomplete(state, {AT: LOG}) == ""
    assert incomplete(state, {}) == "orders-0 is not in Kafka any more"
    assert incomplete(begun(), {AT: LOG}) == "orders-0 is at offset 0 and its end is 9"
    changed = next_generation(state, "orders", "other", {0: 9}, 1.0)
    assert "was recreated or its log truncated" in incomplete(changed, {AT: LOG})


def test_only_topics_that_were_read_before_count_as_emptied() -> None:
    state = appended()
    both = {**TOPICS, "new": Topic("n", (0,))}
    starts, ends = {AT: 9, ("new", 0): 0}, {AT: 9, ("new", 0): 0}
    assert emptied_topics(state, both, starts, ends) == ["orders"]
    assert emptied_topics(state, both, {**starts, AT: 8}, ends) == []


def test_a_plan_continues_as_if_an_unfinished_end_were_done() -> None:
    state = written(begun())
    assert as_if_finished(state) == state
    for each in (publish_run(state), make_current(publish_run(state), 1.0, None)):
        assert must_begin(as_if_finished(each), "other")
