"""The transitions of a sink's state: each is a function from a state to the next one. Only the ledger stores them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from s3sink_job.base.errors import ProtocolError
from s3sink_job.flush.manifest import STAGED, Gap, Manifest, ObjectEntry, SliceEntry
from s3sink_job.flush.state import (
    LetterTotals,
    PartitionState,
    RefreshPhase,
    ResetDone,
    SinkState,
    TopicState,
    Totals,
    Truncation,
    same_topic,
)

RECENT_GAPS = 20
RECENT_TRUNCATIONS = 20
RESETS_KEPT = 1_000
SAMPLE = 1_000
"""Offsets: a slice of this length counts as much as everything measured before it."""


def raise_epoch(state: SinkState) -> SinkState:
    """A starting driver does this first. After its swap the swaps of every earlier driver fail."""
    return replace(state, epoch=state.epoch + 1)


def add_partitions(
    state: SinkState,
    topic: str,
    topic_id: str,
    starts: Mapping[int, int],
    now: float,
    epochs: Mapping[int, int | None] | None = None,
) -> SinkState:
    """Stores where new partitions begin. Known ones keep their offsets, whatever `starts` says."""
    known = state.topics.get(topic, TopicState(id=topic_id))
    if not same_topic(known.id, topic_id):
        raise ProtocolError(f"topic {topic} has id {topic_id}, but the state has id {known.id}")
    partitions = {**_new_partitions(starts, now, epochs), **known.partitions}
    return with_topic(state, topic, replace(known, id=topic_id or known.id, partitions=partitions))


def next_generation(
    state: SinkState,
    topic: str,
    topic_id: str,
    starts: Mapping[int, int],
    now: float,
    epochs: Mapping[int, int | None] | None = None,
) -> SinkState:
    """After a topic was recreated, truncated or reset. The generation is part of object names."""
    known = state.topics[topic]
    fresh = _new_partitions(starts, now, epochs)
    return with_topic(state, topic, TopicState(topic_id or known.id, known.generation + 1, fresh, known.schema))


def _new_partitions(
    starts: Mapping[int, int], now: float, epochs: Mapping[int, int | None] | None
) -> dict[int, PartitionState]:
    known = epochs or {}
    return {p: PartitionState(start=o, offset=o, flushed_at=now, leader_epoch=known.get(p)) for p, o in starts.items()}


def record_reset(state: SinkState, nonce: str, now: float) -> SinkState:
    """Each nonce counts once, even if a manifest uses it again later."""
    if any(done.nonce == nonce for done in state.resets):
        raise ProtocolError(f"reset {nonce!r} was already done")
    refuse_unpublished(state)
    return replace(state, resets=(*state.resets, ResetDone(nonce, now))[-RESETS_KEPT:])


def refuse_unpublished(state: SinkState) -> None:
    """Before a new generation begins, everything of the one before has to be visible."""
    if state.publishing is not None:
        raise ProtocolError(f"flush {state.publishing} is still being published")
    if state.lost:
        raise ProtocolError(f"lost objects of the flushes {', '.join(state.lost)} are not written again yet")


def commit(state: SinkState, manifest: Manifest) -> SinkState:
    """Moves the offsets over everything that the manifest covers. The manifest is to be published next.

    In a full refresh it is published at the end of the run.
    """
    if state.publishing is not None:
        raise ProtocolError(f"flush {state.publishing} is still being published")
    if manifest.number <= state.flush:
        raise ProtocolError(f"flush {manifest.number} is not after flush {state.flush}")
    if manifest.previous != state.last:
        raise ProtocolError(f"flush {manifest.name} follows {manifest.previous}, but the last flush is {state.last}")
    moves: list[SliceEntry | Gap] = [*manifest.slices, *(g for g in manifest.gaps if g.moves)]
    topics = dict(state.topics)
    for move in sorted(moves, key=lambda m: (m.topic, m.partition, m.start)):
        topics[move.topic] = _move_offset(topics[move.topic], move, manifest)
    for name, schema in manifest.schemas.items():
        topics[name] = replace(topics[name], schema=schema)
    publish_now = not is_writing_run(state) and any(_to_publish(entry) for entry in manifest.objects)
    return replace(
        state,
        flush=manifest.number,
        last=manifest.name,
        publishing=manifest.name if publish_now else None,
        topics=topics,
        totals=_add(state.totals, manifest),
        recent_gaps=(*state.recent_gaps, *manifest.gaps)[-RECENT_GAPS:],
        stamp=max(state.stamp, manifest.stamp),
        lost=_still_lost(state.lost, manifest.mends),
        letters=_add_letters(state.letters, manifest),
        filtered=state.filtered + manifest.filtered,
    )


def is_writing_run(state: SinkState) -> bool:
    """Whether a full refresh writes, so that nothing of its flushes may be visible."""
    return state.refresh is not None and state.refresh.phase is RefreshPhase.WRITING


def _to_publish(entry: ObjectEntry) -> bool:
    """Not an object of a single record: it is visible already."""
    return bool(entry.upload_id) or entry.letters == STAGED


def _move_offset(topic: TopicState, move: SliceEntry | Gap, manifest: Manifest) -> TopicState:
    """Moves the committed offset of one partition over a slice or a gap."""
    if move.generation != topic.generation:
        raise ProtocolError(f"{move.topic} is at generation {topic.generation}, the flush has {move.generation}")
    before = topic.partitions[move.partition]
    if move.start != before.offset or move.end < move.start:
        raise ProtocolError(
            f"{move.topic}-{move.partition} is at offset {before.offset}, the flush covers [{move.start},{move.end})"
        )
    log = manifest.logs.get(move.topic)
    # The epoch of an earlier commit would make an intact log look truncated.
    leader_epoch = log.epochs.get(move.partition) if log else None
    moved = replace(before, offset=move.end, flushed_at=manifest.committed_at, leader_epoch=leader_epoch)
    if isinstance(move, SliceEntry):
        moved = _with_sizes(_with_waiting_since(moved, before, more=move.more), move)
    return replace(topic, partitions={**topic.partitions, move.partition: moved})


def _still_lost(
    lost: Mapping[str, tuple[int, ...]], mended: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    left = {flush: tuple(p for p in places if p not in mended.get(flush, ())) for flush, places in lost.items()}
    return {flush: places for flush, places in left.items() if places}


def _with_waiting_since(moved: PartitionState, before: PartitionState, *, more: bool) -> PartitionState:
    """The rest that a flush leaves has waited since before the flush."""
    since = before.flushed_at if before.waiting_since is None else before.waiting_since
    return replace(moved, waiting_since=since if more else None)


def _with_sizes(at: PartitionState, entry: SliceEntry) -> PartitionState:
    """An average in which a slice counts by its length. A slice without records is ignored."""
    span = entry.end - entry.start
    if not entry.read or not span:
        return at

    def blend(before: float | None, measured: float) -> float:
        return measured if before is None else before + (measured - before) * span / (span + SAMPLE)

    return replace(
        at,
        written_per_offset=blend(at.written_per_offset, entry.bytes / span),
        read_per_offset=blend(at.read_per_offset, entry.read / span),
    )


def published(state: SinkState, lost: Sequence[int] = ()) -> SinkState:
    """The flush is published, except for objects whose uploads somebody aborted."""
    if lost and state.publishing is None:
        raise ProtocolError("nothing is being published")
    more = {state.publishing: tuple(lost)} if lost and state.publishing else {}
    return replace(state, publishing=None, lost={**state.lost, **more})


def record_truncations(state: SinkState, events: Sequence[Truncation]) -> SinkState:
    return replace(state, truncations=(*state.truncations, *events)[-RECENT_TRUNCATIONS:])


def _add(totals: Totals, manifest: Manifest) -> Totals:
    # Objects that are written again were counted with their first commit.
    again = bool(manifest.replaces)
    return Totals(
        records=totals.records + (0 if again else manifest.rows),
        bytes=totals.bytes + (0 if again else manifest.size),
        objects=totals.objects + (0 if again else len(manifest.data)),
        skipped=totals.skipped + sum(len(s.skipped) for s in manifest.slices),
        gaps=totals.gaps + len(manifest.gaps),
        gap_offsets=totals.gap_offsets + sum(g.end - g.start for g in manifest.gaps),
    )


def _add_letters(letters: LetterTotals, manifest: Manifest) -> LetterTotals:
    if not manifest.dead_lettered:
        return letters
    return LetterTotals(letters.count + manifest.dead_lettered, manifest.last_letter, manifest.committed_at)


def with_topic(state: SinkState, name: str, topic: TopicState) -> SinkState:
    return replace(state, topics={**state.topics, name: topic})
