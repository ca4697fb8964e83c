"""What became of an offset, by state and manifests alone: every offset has one outcome."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_api.spec import Source, ToLatest, parse
from s3sink_job.flush.ending_offsets import fix_end
from s3sink_job.flush.kafka_metadata import Topic
from s3sink_job.flush.manifest import Gap, GapReason, Manifest, ObjectEntry, SliceEntry
from s3sink_job.flush.state import PartitionState, SinkState
from s3sink_job.proof.flush_history import PartitionGeneration
from s3sink_job.proof.record_location import Location, Outcome, locate
from s3sink_job.task.encoding import encoding_of
from s3sink_job.task.encoding_documents import encoding_to_doc
from tests.api.documents import minimal
from tests.flush.examples import NOW, gap, object_entry, slice_entry, state_of

ORDERS = PartitionGeneration("orders", 1, 0)
ENCODING = encoding_to_doc(encoding_of(parse(minimal()).spec))


def flush(
    number: int,
    *,
    slices: tuple[SliceEntry, ...] = (),
    objects: tuple[ObjectEntry, ...] = (),
    gaps: tuple[Gap, ...] = (),
    replaces: tuple[str, ...] = (),
) -> Manifest:
    return Manifest(number, "w", 1, NOW, ENCODING, None, slices, objects, gaps, replaces)


def found(state: SinkState, offset: int, *flushes: Manifest, place: PartitionGeneration = ORDERS) -> Location:
    """Flushes from the oldest to the newest."""
    return locate(state, reversed(flushes), place, offset)


FIRST = flush(1, slices=(slice_entry(5, 20),), objects=(object_entry(5, 19),))
STATE = state_of(PartitionState(5, 20, NOW))


@pytest.mark.parametrize(
    ("offset", "outcome", "words"),
    [
        (4, Outcome.BEFORE_START, "began at offset 5"),
        (5, Outcome.IN_OBJECT, "committed at"),
        (19, Outcome.IN_OBJECT, "committed at"),
        (20, Outcome.NOT_WRITTEN, "the sink is at offset 20, which is 0 before it"),
        (23, Outcome.NOT_WRITTEN, "which is 3 before it"),
    ],
)
def test_an_offset_is_before_in_or_after_what_was_written(offset: int, outcome: Outcome, words: str) -> None:
    location = found(STATE, offset, FIRST)
    assert location.outcome is outcome
    assert words in location.text


def test_what_the_sink_does_not_read_is_named() -> None:
    for place, words in [
        (PartitionGeneration("other", 1, 0), "topic other"),
        (PartitionGeneration("orders", 1, 7), "partition 7 of orders"),
        (PartitionGeneration("orders", 2, 0), "at generation 1"),
    ]:
        location = found(STATE, 7, FIRST, place=place)
        assert (location.outcome, words in location.text) == (Outcome.NOT_READ, True)


def test_an_offset_behind_the_end_of_a_bounded_run_is_not_going_to_be_written() -> None:
    source = Source(bootstrap_servers="kafka:9092", topics=("orders",), ending_offsets=ToLatest())
    state = fix_end(STATE, source, {"orders": Topic("id-1", (0,))}, {("orders", 0): 30}, NOW)
    assert "ends" not in found(state, 29, FIRST).text
    assert "The run ends at offset 30" in found(state, 30, FIRST).text


def test_gaps_skipped_records_and_offsets_without_records_are_told_apart() -> None:
    part = replace(slice_entry(40, 60), skipped=(45,))
    second = flush(2, slices=(part,), objects=(object_entry(40, 44), object_entry(50, 59)), gaps=(gap(20, 40),))
    state = state_of(PartitionState(5, 60, NOW))
    outcomes = {n: found(state, n, FIRST, second).outcome for n in (30, 42, 45, 46, 55)}
    assert outcomes == {
        30: Outcome.GAP,
        42: Outcome.IN_OBJECT,
        45: Outcome.SKIPPED,
        46: Outcome.NO_RECORD,
        55: Outcome.IN_OBJECT,
    }
    assert "the offsets 20 to 39, Retention" in found(state, 30, FIRST, second).text


def test_a_dead_letter_is_in_its_own_object_and_not_in_the_data_around_it() -> None:
    part = replace(slice_entry(20, 30), letters=(22, 25))
    letters = replace(object_entry(22, 25), key="letters", letters="Parquet")
    second = flush(2, slices=(part,), objects=(object_entry(20, 29), letters))
    state = state_of(PartitionState(5, 30, NOW))
    found_at = {n: found(state, n, FIRST, second) for n in (21, 22, 23, 25)}
    assert {n: location.outcome for n, location in found_at.items()} == {
        21: Outcome.IN_OBJECT,
        22: Outcome.DEAD_LETTER,
        23: Outcome.IN_OBJECT,
        25: Outcome.DEAD_LETTER,
    }
    assert [[o.entry.letters for o in location.objects] for location in found_at.values()] == [
        [""],
        ["Parquet"],
        [""],
        ["Parquet"],
    ]


def test_an_object_that_was_written_again_counts_and_the_lost_one_does_not() -> None:
    lost = FIRST.objects[0]
    again = replace(lost, key=f"{lost.key}-again")
    state = state_of(PartitionState(5, 20, NOW))
    location = found(state, 7, FIRST, flush(2, objects=(again,), replaces=(lost.key,)))
    assert [written.entry.key for written in location.objects] == [again.key]
    given_up = flush(2, gaps=(gap(5, 20, GapReason.UPLOAD_LOST),), replaces=(lost.key,))
    assert found(state, 7, FIRST, given_up).outcome is Outcome.GAP


def test_an_object_that_is_not_visible_yet_says_why() -> None:
    assert "being published" in found(replace(STATE, publishing=FIRST.name), 7, FIRST).text
    assert "an upload was lost" in found(replace(STATE, lost={FIRST.name: (0,)}), 7, FIRST).text


def test_earlier_generations_are_found_by_their_number() -> None:
    state = state_of(0, generation=2)
    assert found(state, 7, FIRST).outcome is Outcome.IN_OBJECT
    assert found(state, 20, FIRST).outcome is Outcome.NOT_READ


@given(st.lists(st.tuples(st.integers(1, 9), st.sampled_from(["slice", "gap", "empty"])), min_size=1, max_size=8))
def test_every_committed_offset_has_the_outcome_of_the_flush_that_covers_it(moves: list[tuple[int, str]]) -> None:
    flushes, wanted, at = [], {}, 0
    for number, (length, kind) in enumerate(moves, 1):
        end = at + length
        outcome = {"slice": Outcome.IN_OBJECT, "gap": Outcome.GAP, "empty": Outcome.NO_RECORD}[kind]
        wanted |= dict.fromkeys(range(at, end), (outcome, number))
        if kind == "gap":
            flushes.append(flush(number, gaps=(gap(at, end),)))
        else:
            objects = (object_entry(at, end - 1),) if kind == "slice" else ()
            flushes.append(flush(number, slices=(slice_entry(at, end),), objects=objects))
        at = end
    state = state_of(at)
    for offset, (outcome, number) in wanted.items():
        location = found(state, offset, *flushes)
        assert location.flush is not None
        assert (location.outcome, location.flush.number) == (outcome, number)
    assert found(state, at, *flushes).outcome is Outcome.NOT_WRITTEN
