"""Where a bounded run ends, and that nothing moves its end."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_api.spec import EndingOffsets, Retries, Source, ToLatest, ToOffsets, TopicOffset, ToTimestamp
from s3sink_job.base.errors import FinalError
from s3sink_job.driver.draining import Draining
from s3sink_job.flush.ending_offsets import (
    already_past_end,
    end_wanted,
    ending_offsets,
    fix_end,
    fixed_ends,
    left_to_end,
    must_fix_end,
    within_end,
)
from s3sink_job.flush.kafka_metadata import Offsets, Topic, TopicPartition
from s3sink_job.flush.problem import UNAVAILABLE, Problem
from s3sink_job.flush.resets import reset_topics
from s3sink_job.flush.state import SinkState
from s3sink_job.flush.statefile import state_from_json, state_to_json
from s3sink_job.flush.topic_changes import TopicChanges, detect_topic_changes
from s3sink_job.flush.transitions import commit
from tests.flush.examples import NOW, manifest, state_of

P0, P1 = ("orders", 0), ("orders", 1)
SEEN = {P0: Offsets(5, 90, 100), P1: Offsets(0, 7, 7)}
PAST = ToTimestamp(timestamp=datetime.fromtimestamp(NOW - 1, UTC))


def source(end: EndingOffsets | None = None, topics: tuple[str, ...] = ("orders",)) -> Source:
    return Source(bootstrap_servers="kafka:9092", topics=topics, ending_offsets=end)


def to(offset: int, partition: int = 0) -> ToOffsets:
    return ToOffsets(offsets=(TopicOffset(topic="orders", partition=partition, offset=offset),))


def bounded(state: SinkState, *ends: int, topic_id: str = "id-1") -> SinkState:
    """The end of each partition, in order."""
    found = {("orders", number): end for number, end in enumerate(ends)}
    return fix_end(state, source(ToLatest()), {"orders": Topic(topic_id, tuple(range(len(ends))))}, found, NOW)


def changes_of(state: SinkState, seen: dict[TopicPartition, Offsets], **more: Any) -> TopicChanges:
    return TopicChanges(**({"state": state, "known": seen, "seen": seen, "gaps": (), "problems": {}} | more))


def test_latest_ends_at_the_last_stable_offset() -> None:
    assert ending_offsets(ToLatest(), SEEN, {}, NOW) == {P0: 90, P1: 7}


def test_a_timestamp_ends_before_the_first_record_of_that_time_or_at_the_end_of_the_log() -> None:
    """Records of an open transaction are older than the time, so they are below the end."""
    assert ending_offsets(PAST, SEEN, {P0: 42, P1: 3}, NOW) == {P0: 42, P1: 3}
    assert ending_offsets(PAST, SEEN, {P0: None, P1: None}, NOW) == {P0: 100, P1: 7}
    assert ending_offsets(PAST, SEEN, {P0: 103, P1: 3}, NOW)[P0] == 100, "written after the end was seen"


def test_a_timestamp_in_the_future_is_refused() -> None:
    wanted = ToTimestamp(timestamp=datetime.fromtimestamp(NOW + 1, UTC))

    with pytest.raises(FinalError, match=r"endingOffsets\.timestamp: .* is in the future") as refused:
        ending_offsets(wanted, SEEN, {P0: None, P1: None}, NOW)

    assert refused.value.reason == "EndingOffsets"


def test_listed_offsets_end_there_and_other_partitions_at_their_present_end() -> None:
    assert ending_offsets(to(50), SEEN, {}, NOW) == {P0: 50, P1: 7}
    assert ending_offsets(to(100), SEEN, {}, NOW)[P0] == 100, "within an open transaction"
    assert ending_offsets(to(2), SEEN, {}, NOW)[P0] == 2, "below the earliest offset: nothing is read"


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (to(101), r"offsets\[0\]: orders-0 ends at offset 100, got 101"),
        (to(1, 9), r"offsets\[0\]: orders has no partition 9"),
    ],
)
def test_a_listed_end_that_kafka_does_not_have_is_an_error_with_the_field(wanted: ToOffsets, words: str) -> None:
    with pytest.raises(FinalError, match=words) as refused:
        ending_offsets(wanted, SEEN, {}, NOW)

    assert refused.value.reason == "EndingOffsets"


def test_an_end_is_fixed_once_and_again_only_if_the_manifest_changes() -> None:
    wanted = source(to(50))
    state = state_of(10, 0)
    assert must_fix_end(state, wanted)
    state = fix_end(state, wanted, {"orders": Topic("id-1", (0, 1))}, {P0: 50, P1: 7}, NOW)

    assert not must_fix_end(state_from_json(state_to_json(state), "state"), wanted)
    for other in (source(to(51)), source(to(50, 1)), source(ToLatest()), source(to(50), ("orders", "payments"))):
        assert must_fix_end(state, other)
    assert not must_fix_end(state, source(None))


def test_ends_that_differ_by_a_millisecond_or_in_one_of_a_thousand_offsets_are_different() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    times = [ToTimestamp(timestamp=moment.replace(microsecond=n)) for n in (0, 1000)]
    lists = [
        ToOffsets(offsets=tuple(TopicOffset(topic="orders", partition=p, offset=p * n) for p in range(1000)))
        for n in (1, 2)
    ]
    texts = {end_wanted(source(end)) for end in (*times, *lists)}
    assert len(texts) == 4
    assert max(map(len, texts)) <= 200, "the state is written with every flush"


def test_after_a_truncated_log_the_run_goes_on_to_its_end_in_the_next_generation() -> None:
    draining = Draining(Retries(), lambda: NOW, ends=True)
    seen = {P0: Offsets(0, 100, 100), P1: Offsets(0, 5, 5)}
    state = bounded(state_of(10, 0, generation=2), 50, 7)

    draining.update(state, within_end(changes_of(state, seen)), ())

    assert draining.targets == {P0: (2, 50), P1: (2, 5)}, "the second log lost its end"


def test_a_reset_forgets_the_end() -> None:
    state = reset_topics(bounded(state_of(10), 50), "again", {"orders": Topic("id-1", (0,))}, {P0: 5}, NOW)

    assert state.end is None


def test_a_recreated_topic_and_later_partitions_have_no_end_and_no_lag() -> None:
    assert fixed_ends(bounded(state_of(10, 3), 50)) == {P0: 50}
    assert fixed_ends(bounded(state_of(10), 50, topic_id="another")) == {}
    assert fixed_ends(bounded(state_of(10), 50, topic_id="")) == {P0: 50}, "a broker without ids"

    seen = within_end(changes_of(bounded(state_of(10, 3), 50), SEEN)).seen
    assert (seen[P0].stable, seen[P0].end) == (50, 50)
    assert (seen[P1].stable, seen[P1].end) == (3, 3)


def test_problems_of_partitions_that_reached_the_end_do_not_matter() -> None:
    problem = Problem(UNAVAILABLE, "no leader")
    state = bounded(state_of(50, 3), 50, 7)

    found = within_end(changes_of(state, {}, problems={P0: problem, P1: problem})).problems

    assert found == {P1: problem}


def test_a_partition_that_is_past_its_end_is_named() -> None:
    assert already_past_end(bounded(state_of(50, 3), 50, 7)) == ""
    text = already_past_end(bounded(state_of(60, 3), 50, 7))
    assert "orders-0 is at offset 60 and its end is 50" in text
    assert "orders-1" not in text


def test_records_after_the_end_that_kafka_deleted_are_not_lost() -> None:
    topics = {"orders": Topic("id-1", (0,))}
    deleted = {P0: Offsets(500, 900, 900)}

    def detected(committed: int, *, skip: bool) -> TopicChanges:
        state = bounded(state_of(committed), 100)
        return detect_topic_changes(state, topics, deleted, {}, skip_lost=skip, now=NOW, ends=fixed_ends(state))

    assert detected(100, skip=False).problems == {}
    assert detected(100, skip=True).gaps == ()
    assert "offsets 40 to 99" in detected(40, skip=False).problems[P0].message
    (gap,) = detected(40, skip=True).gaps
    assert (gap.start, gap.end) == (40, 100)


offsets = st.integers(0, 1000)


@given(st.lists(st.tuples(offsets, offsets, offsets), min_size=1, max_size=4), st.booleans())
def test_whatever_kafka_lost_a_bounded_run_never_counts_beyond_its_end(
    partitions: list[tuple[int, int, int]], skip: bool
) -> None:
    """Committed offset, end and earliest offset of each partition."""
    state = bounded(state_of(*(committed for committed, _, _ in partitions)), *(end for _, end, _ in partitions))
    topics = {"orders": Topic("id-1", tuple(range(len(partitions))))}
    seen = {("orders", number): Offsets(first, 2000, 2000) for number, (_, _, first) in enumerate(partitions)}

    changes = detect_topic_changes(state, topics, seen, {}, skip_lost=skip, now=NOW, ends=fixed_ends(state))

    after = commit(changes.state, manifest(gaps=changes.gaps)) if changes.gaps else changes.state
    within = within_end(replace(changes, state=after))
    for at, (committed, end, first) in zip(seen, partitions, strict=True):
        lost = max(0, min(end, first) - committed)
        assert sum(g.end - g.start for g in changes.gaps if (g.topic, g.partition) == at) == (lost if skip else 0)
        assert (at in within.problems) == (bool(lost) and not skip)
        assert within.known[at].end <= max(end, committed)
    left = sum(max(0, end - committed) for committed, end, _ in partitions)
    assert (left_to_end(after) or 0) == left - sum(g.end - g.start for g in changes.gaps)
