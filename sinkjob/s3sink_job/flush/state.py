"""The state object: the one source of truth of a sink, and the transitions it may make.

Only the swap of this object commits anything. Transitions are total functions from a state to a state;
the ledger stamps `revision` and `writer` on what it writes, so that a read-back tells ours from another's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from s3sink_job.errors import ProtocolError
from s3sink_job.flush.manifest import Gap, Manifest, SliceEntry

RECENT_GAPS = 20
RECENT_TRUNCATIONS = 20
RESETS_KEPT = 1_000
SAMPLE = 1_000
"""Offsets: a flush of so many counts as much as all that was measured before it."""


@dataclass(frozen=True)
class Owner:
    cluster: str
    namespace: str
    name: str
    uid: str = ""

    def same_sink(self, other: Owner) -> bool:
        """The uid is left out: a resource deleted and applied again goes on from its state."""
        return (self.cluster, self.namespace, self.name) == (other.cluster, other.namespace, other.name)

    def __str__(self) -> str:
        return f"{self.cluster}/{self.namespace}/{self.name}"


@dataclass(frozen=True)
class Resource:
    """The resource that the driver was started for. Kubernetes counts its generations; a new one is created later."""

    uid: str
    created: str
    """As Kubernetes writes it: RFC 3339 in UTC, so that texts compare as times do."""
    generation: int

    def older_than(self, other: Resource) -> bool:
        return (self.created, self.generation) < (other.created, other.generation)

    def __str__(self) -> str:
        return f"generation {self.generation} (created {self.created}, uid {self.uid})"


@dataclass(frozen=True)
class Cut:
    """A log that lost committed records: `at` is the first offset that differs, None where the broker cannot tell."""

    at: int | None
    seen: float


@dataclass(frozen=True)
class Truncation:
    """A cut log that the sink went on from, in the generation after this one, because onDataLoss is Skip."""

    topic: str
    partition: int
    generation: int
    committed: int
    resumed: int
    at: float


@dataclass(frozen=True)
class PartitionState:
    """`start` is where this generation began, `offset` the next one to write, `flushed_at` its last commit."""

    start: int
    offset: int
    flushed_at: float
    waiting_since: float | None = None
    """Since when what the last flush left over has been behind; None if it took all that was due."""
    written_per_offset: float | None = None
    read_per_offset: float | None = None
    """Bytes, as measured by past flushes; None until there was one."""
    leader_epoch: int | None = None
    """Of the leader whose log had everything below `offset`; None where the broker does not tell."""
    cut: Cut | None = None
    """Set while the partition is stopped because its log lost what was committed."""


@dataclass(frozen=True)
class TopicState:
    id: str
    """Empty where the broker has none."""
    generation: int = 1
    partitions: Mapping[int, PartitionState] = field(default_factory=dict)
    schema: str = ""
    """The name of the schema known so far, where one is inferred. It only ever widens."""


@dataclass(frozen=True)
class Totals:
    records: int = 0
    bytes: int = 0
    objects: int = 0
    skipped: int = 0
    gaps: int = 0
    gap_offsets: int = 0


@dataclass(frozen=True)
class ResetDone:
    nonce: str
    at: float


@dataclass(frozen=True)
class State:
    owner: Owner
    epoch: int = 0
    revision: int = 0
    writer: str = ""
    flush: int = 0
    last: str | None = None
    """The manifest of the last committed flush."""
    publishing: str | None = None
    contacted: bool = False
    """Whether first contact was made: what is met from then on begins at its earliest offset."""
    topics: Mapping[str, TopicState] = field(default_factory=dict)
    totals: Totals = Totals()
    recent_gaps: tuple[Gap, ...] = ()
    stamp: int = 0
    """Milliseconds: the time that the last flush went by. The next one's is later, whatever the clock says."""
    resets: tuple[ResetDone, ...] = ()
    """Those that were carried out, the last one last."""
    resource: Resource | None = None
    """The newest resource that a driver ran for; None if all were started by hand."""
    lost: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """By flush: which of its objects are to be written again, since somebody aborted their uploads."""
    truncations: tuple[Truncation, ...] = ()

    def offset(self, topic: str, partition: int) -> int:
        return self.topics[topic].partitions[partition].offset


def raise_epoch(state: State) -> State:
    """What a starting driver does first: from its swap on, the swaps of every earlier driver fail."""
    return replace(state, epoch=state.epoch + 1)


def same_topic(one: str, other: str) -> bool:
    """Whether two topic ids may be of one topic. An id that is not known says nothing."""
    return not one or not other or one == other


def meet(
    state: State,
    topic: str,
    topic_id: str,
    starts: Mapping[int, int],
    now: float,
    epochs: Mapping[int, int | None] | None = None,
) -> State:
    """Stores where partitions begin. Those already known keep their offsets, whatever `starts` says."""
    known = state.topics.get(topic, TopicState(id=topic_id))
    if not same_topic(known.id, topic_id):
        raise ProtocolError(f"topic {topic} has id {topic_id}, the state knows {known.id}")
    partitions = {**_beginning(starts, now, epochs), **known.partitions}
    return with_topic(state, topic, replace(known, id=topic_id or known.id, partitions=partitions))


def remake(
    state: State,
    topic: str,
    topic_id: str,
    starts: Mapping[int, int],
    now: float,
    epochs: Mapping[int, int | None] | None = None,
) -> State:
    """A recreated topic (or a log that was cut) gets the next generation, which shows in object names."""
    known = state.topics[topic]
    fresh = _beginning(starts, now, epochs)
    return with_topic(state, topic, TopicState(topic_id or known.id, known.generation + 1, fresh, known.schema))


def _beginning(
    starts: Mapping[int, int], now: float, epochs: Mapping[int, int | None] | None
) -> dict[int, PartitionState]:
    known = epochs or {}
    return {p: PartitionState(start=o, offset=o, flushed_at=now, leader_epoch=known.get(p)) for p, o in starts.items()}


def reset_done(state: State, nonce: str, now: float) -> State:
    """A nonce counts once, however often a manifest comes back to it."""
    if any(done.nonce == nonce for done in state.resets):
        raise ProtocolError(f"the reset {nonce!r} was carried out already")
    if state.publishing is not None:
        raise ProtocolError(f"flush {state.publishing} is still being published")
    if state.lost:
        raise ProtocolError(f"objects of the flushes {', '.join(state.lost)} are still to be written again")
    return replace(state, resets=(*state.resets, ResetDone(nonce, now))[-RESETS_KEPT:])


def commit(state: State, manifest: Manifest) -> State:
    """Moves the offsets over everything the manifest covers, and names it as being published."""
    if state.publishing is not None:
        raise ProtocolError(f"flush {state.publishing} is still being published")
    if manifest.number <= state.flush:
        raise ProtocolError(f"flush {manifest.number} is not after flush {state.flush}")
    if manifest.previous != state.last:
        raise ProtocolError(f"flush {manifest.name} follows {manifest.previous}, the state is at {state.last}")
    moves: list[SliceEntry | Gap] = [*manifest.slices, *(g for g in manifest.gaps if g.moves)]
    topics = dict(state.topics)
    for move in sorted(moves, key=lambda m: (m.topic, m.partition, m.start)):
        known = topics[move.topic]
        at = known.partitions[move.partition]
        if move.generation != known.generation:
            raise ProtocolError(f"{move.topic} is at generation {known.generation}, the flush at {move.generation}")
        if move.start != at.offset or move.end < move.start:
            raise ProtocolError(
                f"{move.topic}-{move.partition} is at {at.offset}, the flush covers [{move.start},{move.end})"
            )
        log = manifest.logs.get(move.topic)
        # An epoch that is not of this very move would make a whole log look cut.
        leader_epoch = log.epochs.get(move.partition) if log else None
        moved = replace(at, offset=move.end, flushed_at=manifest.committed_at, leader_epoch=leader_epoch)
        if isinstance(move, SliceEntry):
            moved = _measured(_waiting(moved, at, more=move.more), move)
        topics[move.topic] = replace(known, partitions={**known.partitions, move.partition: moved})
    for name, schema in manifest.schemas.items():
        topics[name] = replace(topics[name], schema=schema)
    return replace(
        state,
        flush=manifest.number,
        last=manifest.name,
        publishing=manifest.name if any(entry.upload_id for entry in manifest.objects) else None,
        topics=topics,
        totals=_add(state.totals, manifest),
        recent_gaps=(*state.recent_gaps, *manifest.gaps)[-RECENT_GAPS:],
        stamp=max(state.stamp, manifest.stamp),
        lost=_without(state.lost, manifest.mends),
    )


def _without(lost: Mapping[str, tuple[int, ...]], mended: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    left = {flush: tuple(p for p in places if p not in mended.get(flush, ())) for flush, places in lost.items()}
    return {flush: places for flush, places in left.items() if places}


def _waiting(moved: PartitionState, before: PartitionState, *, more: bool) -> PartitionState:
    """What a flush leaves of what was due is no younger for it."""
    since = before.flushed_at if before.waiting_since is None else before.waiting_since
    return replace(moved, waiting_since=since if more else None)


def _measured(at: PartitionState, entry: SliceEntry) -> PartitionState:
    """A long slice is believed, a short one moves the measure a little; one without records teaches nothing."""
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


def published(state: State, lost: Sequence[int] = ()) -> State:
    """The flush is published, but for the objects whose uploads somebody aborted."""
    if lost and state.publishing is None:
        raise ProtocolError("nothing is being published")
    more = {state.publishing: tuple(lost)} if lost and state.publishing else {}
    return replace(state, publishing=None, lost={**state.lost, **more})


def truncated(state: State, events: Sequence[Truncation]) -> State:
    return replace(state, truncations=(*state.truncations, *events)[-RECENT_TRUNCATIONS:])


def _add(totals: Totals, manifest: Manifest) -> Totals:
    # What is written again was counted when it was committed first.
    again = bool(manifest.replaces)
    return Totals(
        records=totals.records + (0 if again else manifest.rows),
        bytes=totals.bytes + (0 if again else manifest.size),
        objects=totals.objects + (0 if again else len(manifest.objects)),
        skipped=totals.skipped + sum(len(s.skipped) for s in manifest.slices),
        gaps=totals.gaps + len(manifest.gaps),
        gap_offsets=totals.gap_offsets + sum(g.end - g.start for g in manifest.gaps),
    )


def with_topic(state: State, name: str, topic: TopicState) -> State:
    return replace(state, topics={**state.topics, name: topic})
