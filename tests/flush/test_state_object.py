"""The state object: it is read as it was written, and anything else is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_job.base.errors import ProtocolError
from s3sink_job.flush.manifest import (
    Gap,
    GapReason,
    LastLetter,
    Manifest,
    ObjectEntry,
    SliceEntry,
    SourceLog,
    manifest_from_json,
)
from s3sink_job.flush.rollback import TYPED_SCHEMA
from s3sink_job.flush.state import (
    FixedEnd,
    LetterTotals,
    Owner,
    PartitionState,
    ResetDone,
    Resource,
    SinkState,
    TopicEnd,
    TopicState,
    Totals,
    TruncatedLog,
    Truncation,
)
from s3sink_job.flush.statefile import FORMAT_VERSION, state_from_json, state_to_json
from s3sink_job.flush.transitions import RECENT_GAPS, add_partitions, commit, next_generation, published, raise_epoch
from tests.flush.examples import NOW, gap, manifest, object_entry, slice_entry, state_of

WHERE = "s3://lake/.s3sink/default/sink/state.json"

texts = st.text(max_size=20)
counts = st.integers(0, 2**63 - 1)
times = st.floats(0, 1e11, allow_nan=False)
gaps = st.builds(Gap, texts, counts, counts, counts, counts, texts, times)
sizes = st.none() | st.floats(0, 1e9, allow_nan=False)
truncated_logs = st.none() | st.builds(TruncatedLog, st.none() | counts, times)
partition_states = st.builds(
    PartitionState, counts, counts, times, st.none() | times, sizes, sizes, st.none() | counts, truncated_logs
)
last_letters = st.none() | st.builds(LastLetter, texts, counts, counts, texts, texts)
places = st.dictionaries(texts, st.lists(counts, min_size=1, max_size=3).map(tuple), max_size=3)
partitions = st.dictionaries(st.integers(0, 99), partition_states, max_size=3)
topic_ends = st.builds(TopicEnd, texts, st.dictionaries(st.integers(0, 99), counts, max_size=3))
states = st.builds(
    SinkState,
    owner=st.builds(Owner, texts, texts, texts, texts),
    epoch=counts,
    revision=counts,
    writer=texts,
    flush=counts,
    last=st.none() | texts,
    publishing=st.none() | texts,
    contacted=st.booleans(),
    topics=st.dictionaries(texts, st.builds(TopicState, texts, counts, partitions), max_size=3),
    totals=st.builds(Totals, counts, counts, counts, counts, counts, counts),
    recent_gaps=st.lists(gaps, max_size=3).map(tuple),
    resets=st.lists(st.builds(ResetDone, texts, times), max_size=3).map(tuple),
    resource=st.none() | st.builds(Resource, texts, texts, counts),
    lost=places,
    truncations=st.lists(st.builds(Truncation, texts, *[counts] * 4, times), max_size=3).map(tuple),
    end=st.none() | st.builds(FixedEnd, texts, times, st.dictionaries(texts, topic_ends, max_size=3)),
    letters=st.builds(LetterTotals, counts, last_letters, times),
)
objects = st.builds(
    ObjectEntry,
    *(texts, texts, st.lists(texts, max_size=3).map(tuple), texts, counts, counts, counts, counts, counts, counts),
    letters=st.sampled_from(["", "Parquet", "Json"]),
)
slices = st.builds(
    SliceEntry,
    *(texts, counts, counts, counts, counts, texts, counts, st.lists(counts, max_size=3).map(tuple)),
    *(counts, counts, st.booleans(), st.lists(counts, max_size=3).map(tuple)),
)
manifests = st.builds(
    Manifest,
    *(counts, texts, counts, times, st.dictionaries(texts, st.none() | texts, max_size=3), st.none() | texts),
    *(st.lists(kind, max_size=3).map(tuple) for kind in (slices, objects, gaps, texts)),
    logs=st.dictionaries(texts, st.builds(SourceLog, texts, st.dictionaries(counts, counts, max_size=3)), max_size=3),
    mends=places,
    last_letter=last_letters,
)


@given(states)
def test_a_state_is_read_as_it_was_written(state: SinkState) -> None:
    assert state_from_json(state_to_json(state), WHERE) == state


@given(manifests)
def test_a_manifest_is_read_as_it_was_written(flush: Manifest) -> None:
    assert manifest_from_json(flush.to_json(), WHERE) == flush


def test_the_state_of_a_newer_s3sink_is_refused_and_says_so() -> None:
    doc = json.loads(state_to_json(state_of(5))) | {"formatVersion": FORMAT_VERSION + 1, "something": "new"}

    with pytest.raises(ProtocolError, match="run a newer s3sink") as refused:
        state_from_json(json.dumps(doc).encode(), WHERE)

    assert refused.value.reason == "NewerFormat"
    assert WHERE in str(refused.value)


def test_the_manifest_of_a_newer_s3sink_is_refused_and_says_so() -> None:
    doc = json.loads(manifest().to_json()) | {"formatVersion": 3}

    with pytest.raises(ProtocolError, match="upgrade s3sink") as refused:
        manifest_from_json(json.dumps(doc).encode(), WHERE)

    assert refused.value.reason == "NewerFormat"


CORRUPT = [b"", b"{", b"null", b"5", b'"text"', b"[]", b"{}", b'{"formatVersion":1}', b"\xff\xfe", b"\x00" * 100]


@pytest.mark.parametrize("body", CORRUPT)
def test_a_corrupt_state_is_refused_and_never_replaced(body: bytes) -> None:
    with pytest.raises(ProtocolError) as refused:
        state_from_json(body, WHERE)

    assert refused.value.reason == "CorruptState"
    assert WHERE in str(refused.value)


@pytest.mark.parametrize("body", CORRUPT)
def test_a_corrupt_manifest_is_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError) as refused:
        manifest_from_json(body, WHERE)

    assert refused.value.reason == "CorruptState"


LATER_FIELDS = {"stamp", "resets", "resource", "lost", "truncations", "leader_epochs", "cuts"}
STATE_FIELDS = sorted(set(json.loads(state_to_json(state_of(5)))) - LATER_FIELDS)
"""Without those that states of older releases do not have."""


@pytest.mark.parametrize("field", STATE_FIELDS)
def test_a_state_that_lacks_a_field_is_refused(field: str) -> None:
    doc = json.loads(state_to_json(state_of(5)))
    del doc[field]

    with pytest.raises(ProtocolError) as refused:
        state_from_json(json.dumps(doc).encode(), WHERE)

    assert refused.value.reason == "CorruptState"


def test_a_partition_that_lacks_its_offset_is_refused() -> None:
    doc = json.loads(state_to_json(state_of(5)))
    del doc["topics"]["orders"]["partitions"]["0"]["offset"]

    with pytest.raises(ProtocolError, match="offset"):
        state_from_json(json.dumps(doc).encode(), WHERE)


@given(st.data())
def test_an_incomplete_state_is_always_refused(data: st.DataObject) -> None:
    body = state_to_json(state_of(5, 7))

    with pytest.raises(ProtocolError):
        state_from_json(body[: data.draw(st.integers(0, len(body) - 1))], WHERE)


def test_a_commit_moves_offsets_counts_and_names_what_is_being_published() -> None:
    flush = manifest(
        slices=(replace(slice_entry(5, 9), skipped=(6, 7)),), objects=(object_entry(5, 8),), gaps=(gap(9, 12),)
    )

    after = commit(state_of(5), flush)

    assert after.offset("orders", 0) == 12
    assert after.topics["orders"].partitions[0].flushed_at == flush.committed_at
    assert (after.flush, after.last, after.publishing) == (1, flush.name, flush.name)
    assert after.totals == Totals(records=4, bytes=40, objects=1, skipped=2, gaps=1, gap_offsets=3)
    assert published(after).publishing is None


def test_a_flush_without_objects_leaves_nothing_to_publish() -> None:
    assert commit(state_of(5), manifest(slices=(slice_entry(5, 9),))).publishing is None


def test_a_gap_below_the_committed_offset_is_recorded_and_moves_nothing() -> None:
    after = commit(state_of(20), manifest(gaps=(gap(5, 9, GapReason.UPLOAD_LOST),)))

    assert after.offset("orders", 0) == 20
    assert after.recent_gaps == (gap(5, 9, GapReason.UPLOAD_LOST),)


def test_the_state_stays_small_however_much_is_lost() -> None:
    state = state_of(0)
    for n in range(50):
        state = commit(state, manifest(n + 1, after=state, gaps=(gap(n, n + 1),)))

    assert len(state.recent_gaps) == RECENT_GAPS
    assert state.recent_gaps[-1] == gap(49, 50)
    assert state.totals.gaps == state.totals.gap_offsets == 50


def test_a_flush_measures_its_partition_and_a_short_one_changes_little() -> None:
    def flushed(state: SinkState, start: int, end: int, written: int, read: int) -> SinkState:
        entry = replace(slice_entry(start, end), bytes=written, read=read)
        return commit(state, manifest(state.flush + 1, after=state, slices=(entry,)))

    first = flushed(state_of(0), 0, 10, 500, 1_000)
    at = first.topics["orders"].partitions[0]
    assert (at.written_per_offset, at.read_per_offset) == (50.0, 100.0)

    one = flushed(first, 10, 11, 5_000, 10_000).topics["orders"].partitions[0]
    assert one.written_per_offset == pytest.approx(55, abs=0.1)

    many = flushed(first, 10, 1_000_010, 7_000_000, 9_000_000).topics["orders"].partitions[0]
    assert many.written_per_offset == pytest.approx(7, abs=0.1)
    assert many.read_per_offset == pytest.approx(9, abs=0.1)


def test_a_flush_without_records_measures_nothing() -> None:
    known = PartitionState(0, 5, NOW, None, 3.0, 4.0)

    at = commit(state_of(known), manifest(slices=(slice_entry(5, 9),))).topics["orders"].partitions[0]

    assert (at.written_per_offset, at.read_per_offset) == (3.0, 4.0)


def test_the_rest_that_a_flush_leaves_has_waited_as_long_as_before() -> None:
    unfinished = replace(slice_entry(5, 9), more=True)

    state = commit(state_of(5), manifest(slices=(unfinished,)))
    at = state.topics["orders"].partitions[0]
    assert (at.flushed_at, at.waiting_since) == (NOW + 5, NOW)

    again = commit(state, manifest(2, after=state, slices=(replace(unfinished, start=9, end=12),)))
    assert again.topics["orders"].partitions[0].waiting_since == NOW

    level = commit(again, manifest(3, after=again, slices=(slice_entry(12, 13),)))
    assert level.topics["orders"].partitions[0].waiting_since is None


def test_several_slices_of_a_partition_wait_only_if_the_last_one_does() -> None:
    both = (replace(slice_entry(5, 9), more=True), slice_entry(9, 12))

    at = commit(state_of(5), manifest(slices=both)).topics["orders"].partitions[0]

    assert (at.offset, at.waiting_since) == (12, None)


def test_a_state_and_a_manifest_from_before_sizes_were_measured_are_read() -> None:
    doc = json.loads(state_to_json(state_of(5)))
    for name in ("waiting_since", "written_per_offset", "read_per_offset"):
        del doc["topics"]["orders"]["partitions"]["0"][name]
    assert state_from_json(json.dumps(doc).encode(), WHERE) == state_of(5)

    flush = manifest(slices=(slice_entry(5, 9),))
    doc = json.loads(flush.to_json())
    for name in ("bytes", "read", "more"):
        del doc["slices"][0][name]
    assert manifest_from_json(json.dumps(doc).encode(), WHERE) == flush


REFUSED = {
    "hole": manifest(slices=(slice_entry(6, 9),)),
    "overlap": manifest(slices=(slice_entry(4, 9),)),
    "backwards": manifest(slices=(slice_entry(5, 4),)),
    "twice": manifest(slices=(slice_entry(5, 9), slice_entry(5, 9))),
    "hole between slices": manifest(slices=(slice_entry(5, 7), slice_entry(8, 9))),
    "overlap of gap and slice": manifest(slices=(slice_entry(5, 9),), gaps=(gap(5, 7),)),
    "another generation": manifest(slices=(slice_entry(5, 9, generation=2),)),
    "gap of another generation": manifest(gaps=(gap(5, 9, generation=2),)),
    "old number": manifest(0, slices=(slice_entry(5, 9),)),
}


@pytest.mark.parametrize("flush", REFUSED.values(), ids=REFUSED.keys())
def test_a_flush_that_would_lose_or_repeat_records_is_refused(flush: Manifest) -> None:
    with pytest.raises(ProtocolError):
        commit(state_of(5), flush)


def test_no_flush_is_committed_over_one_that_is_not_published() -> None:
    pending = commit(state_of(5), manifest(slices=(slice_entry(5, 9),), objects=(object_entry(5, 8),)))

    with pytest.raises(ProtocolError, match="still being published"):
        commit(pending, manifest(2, after=pending, slices=(slice_entry(9, 12),)))


def test_a_flush_that_does_not_follow_the_last_one_is_refused() -> None:
    """Otherwise it would not be in the chain of manifests, and verify could not prove what was written."""
    state = commit(state_of(5), manifest(slices=(slice_entry(5, 9),)))

    with pytest.raises(ProtocolError, match="follows None"):
        commit(state, manifest(2, slices=(slice_entry(9, 12),)))


def test_a_known_partition_keeps_its_offset() -> None:
    state = add_partitions(state_of(5), "orders", "id-1", {0: 99, 1: 7}, NOW + 1)

    assert state.offset("orders", 0) == 5
    assert state.topics["orders"].partitions[1] == PartitionState(7, 7, NOW + 1)


def test_a_topic_with_another_id_is_refused() -> None:
    with pytest.raises(ProtocolError, match="id-2"):
        add_partitions(state_of(5), "orders", "id-2", {0: 0}, NOW)


def test_a_new_generation_forgets_old_offsets_and_partitions() -> None:
    state = next_generation(state_of(5, 6), "orders", "id-2", {0: 0}, NOW + 1)

    assert state.topics["orders"] == TopicState("id-2", 2, {0: PartitionState(0, 0, NOW + 1)})


def test_a_takeover_raises_the_epoch_and_changes_nothing_else() -> None:
    assert raise_epoch(state_of(5)) == replace(state_of(5), epoch=1)


def test_a_sink_applied_again_owns_its_state_and_another_cluster_does_not() -> None:
    owner = Owner("c", "ns", "sink", "uid-1")

    assert owner.same_sink(Owner("c", "ns", "sink", "uid-2"))
    for other in (Owner("x", "ns", "sink"), Owner("c", "x", "sink"), Owner("c", "ns", "x")):
        assert not owner.same_sink(other)


@given(st.lists(st.tuples(st.sampled_from(["slice", "gap"]), st.integers(1, 5)), max_size=8))
def test_slices_and_gaps_that_join_are_committed_to_their_end(parts: list[tuple[str, int]]) -> None:
    at, made_slices, made_gaps = 5, [], []
    for kind, length in parts:
        if kind == "slice":
            made_slices.append(slice_entry(at, at + length))
        else:
            made_gaps.append(gap(at, at + length))
        at += length

    state = commit(state_of(5), manifest(slices=tuple(made_slices), gaps=tuple(made_gaps)))

    assert state.offset("orders", 0) == at


def test_fields_that_an_older_release_must_not_ignore_raise_the_version() -> None:
    """0.1.0 continues from a state with leader epochs, and refuses one with a stopped partition or lost objects."""
    known = replace(state_of(5).topics["orders"].partitions[0], leader_epoch=3)
    versions = [
        json.loads(state_to_json(state))["formatVersion"]
        for state in (
            state_of(known),
            state_of(replace(known, truncated_log=TruncatedLog(2, NOW))),
            replace(state_of(known), lost={"000000000001-writer": (0,)}),
        )
    ]

    assert versions == [1, 3, 3]


def test_lost_objects_stay_in_the_state_until_each_is_written_again() -> None:
    flush = manifest(slices=(slice_entry(5, 8),), objects=tuple(object_entry(o, o) for o in (5, 6, 7)))
    lost = published(commit(state_of(5), flush), [0, 2])

    mending = replace(manifest(2, after=lost, objects=(object_entry(5, 5),)), mends={flush.name: (0,)})
    after = commit(lost, mending)

    assert lost.lost == {flush.name: (0, 2)}
    assert after.lost == {flush.name: (2,)}
    assert after.offset("orders", 0) == lost.offset("orders", 0)


def test_a_flush_without_uploads_has_nothing_to_publish() -> None:
    whole = replace(object_entry(5, 5), upload_id="")

    after = commit(state_of(5), manifest(slices=(slice_entry(5, 6),), objects=(whole,)))

    assert after.publishing is None


def test_an_unknown_topic_id_is_stored_as_older_releases_store_it() -> None:
    """0.1.0 compares texts: with another one it would see a recreated topic, and copy all of it again."""
    state = state_of(5)
    unknown = replace(state, topics={"orders": replace(state.topics["orders"], id="")})

    doc = json.loads(state_to_json(unknown))

    assert doc["topics"]["orders"]["id"] == "A" * 22
    assert state_from_json(state_to_json(unknown), WHERE) == unknown


def test_columns_of_typed_records_raise_the_version() -> None:
    """0.1.0 fails without words on types that it does not have."""
    state = state_of(5)
    (name, topic), *_ = state.topics.items()
    typed = replace(state, topics={**state.topics, name: replace(topic, schema=f"{TYPED_SCHEMA}0123")})
    assert json.loads(state_to_json(typed))["formatVersion"] == 3
    assert json.loads(state_to_json(state))["formatVersion"] == 1
    assert state_from_json(state_to_json(typed), "here") == typed


def test_filtered_records_are_in_manifest_and_state_only_where_there_are_any() -> None:
    part = replace(slice_entry(0, 5), rows=2, filtered=3, inputs=((("a", "b"), '"int64"'),))
    flush = manifest(after=state_of(0), slices=(part,))
    assert manifest_from_json(flush.to_json(), WHERE) == flush
    assert json.loads(flush.to_json())["formatVersion"] == 2
    state = commit(commit(state_of(0), flush), replace(manifest(2, slices=(slice_entry(5, 6),)), previous=flush.name))
    assert state_from_json(state_to_json(state), WHERE).filtered == 3
    plain = json.loads(manifest(slices=(slice_entry(0, 5),)).to_json())
    assert not {"filtered", "inputs"} & set(plain["slices"][0])
    assert "filtered" not in json.loads(state_to_json(state_of(0)))
