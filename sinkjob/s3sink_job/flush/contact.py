"""Where a sink stands with Kafka: topics met for the first time, made anew, cut short or gone.

Pure: what Kafka said comes in, the next state and what is wrong come out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from s3sink_job.errors import FinalError
from s3sink_job.flush.manifest import Gap, GapReason
from s3sink_job.flush.plan import Offsets, TopicPartition
from s3sink_job.flush.state import State, meet, remake, reset_done
from s3sink_job.spec import FromEarliest, FromLatest, FromOffsets, FromTimestamp, Reset, StartingOffsets, TopicOffset
from s3sink_job.times import iso

GIVEN_UP_AFTER = 60.0
"""Seconds for which Kafka has to say that a topic does not exist until its unwritten records count as lost."""


@dataclass(frozen=True)
class Topic:
    """A topic as Kafka describes it."""

    id: str
    partitions: tuple[int, ...]


@dataclass(frozen=True)
class Problem:
    """What keeps a partition from going on, in a word for machines and a sentence for people."""

    reason: str
    message: str


@dataclass(frozen=True)
class Contact:
    """`known` is every partition Kafka told of; `seen` leaves out those that must not be read now, and
    `problems` says why."""

    state: State
    known: Mapping[TopicPartition, Offsets]
    seen: Mapping[TopicPartition, Offsets]
    gaps: tuple[Gap, ...]
    problems: Mapping[TopicPartition, Problem]
    notes: tuple[str, ...] = ()


def starting_offsets(
    wanted: StartingOffsets,
    seen: Mapping[TopicPartition, Offsets],
    at_time: Mapping[TopicPartition, int | None],
    field: str = "spec.source.startingOffsets",
) -> dict[TopicPartition, int]:
    """Where each partition known now begins. `at_time` holds the look-up for a timestamp."""
    match wanted:
        case FromEarliest():
            return {at: o.earliest for at, o in seen.items()}
        case FromLatest():
            return {at: o.end for at, o in seen.items()}
        case FromTimestamp():
            # It is looked up later: what came in meanwhile lies behind the end that was seen.
            found = {at: at_time.get(at) for at in seen}
            return {at: seen[at].end if o is None else min(o, seen[at].end) for at, o in found.items()}
        case FromOffsets(offsets=listed):
            starts = {at: o.earliest for at, o in seen.items()}
            for index, item in enumerate(listed):
                starts[item.topic, item.partition] = _within(f"{field}.offsets[{index}]", item, seen)
            return starts


def in_words(wanted: StartingOffsets) -> str:
    match wanted:
        case FromTimestamp(timestamp=moment):
            return f"{wanted.position} {iso(moment.timestamp())}"
        case FromOffsets(offsets=listed):
            return f"{wanted.position} ({len(listed)} listed, else Earliest)"
        case _:
            return wanted.position


def _within(where: str, item: TopicOffset, seen: Mapping[TopicPartition, Offsets]) -> int:
    known = seen.get((item.topic, item.partition))
    if known is None:
        raise FinalError(f"{where}: {item.topic} has no partition {item.partition}", reason="StartingOffsets")
    if not known.earliest <= item.offset <= known.end:
        name = f"{item.topic}-{item.partition}"
        raise FinalError(
            f"{where}: {name} has offsets {known.earliest} to {known.end}, got {item.offset}", reason="StartingOffsets"
        )
    return item.offset


def first_contact(state: State, topics: Mapping[str, Topic], starts: Mapping[TopicPartition, int], now: float) -> State:
    for name, topic in topics.items():
        state = meet(state, name, topic.id, {p: starts[name, p] for p in topic.partitions}, now)
    return replace(state, contacted=True)


def due_reset(wanted: Reset | None, state: State) -> Reset | None:
    """The manifest's reset, unless it was carried out already."""
    done = wanted is not None and any(reset.nonce == wanted.nonce for reset in state.resets)
    return None if done else wanted


def begin_anew(
    state: State, nonce: str, topics: Mapping[str, Topic], starts: Mapping[TopicPartition, int], now: float
) -> State:
    """A reset: every topic that the state knows gets its next generation.

    Those that Kafka has now begin at `starts`. Any other begins at its earliest offset once it is met again, as
    whatever is discovered later does.
    """
    for name, known in state.topics.items():
        topic = topics.get(name, Topic(known.id, ()))
        state = remake(state, name, topic.id, {p: starts[name, p] for p in topic.partitions}, now)
    return reset_done(first_contact(state, topics, starts, now), nonce, now)


def follow(
    state: State,
    topics: Mapping[str, Topic | None],
    seen: Mapping[TopicPartition, Offsets],
    known_ends: Mapping[TopicPartition, int],
    *,
    skip_lost: bool,
    now: float,
    gone: Mapping[str, float] | None = None,
) -> Contact:
    """The sink's state beside Kafka's. `known_ends` is how far each log reached when last looked at.

    `gone` are topics of a pattern that Kafka no longer has, and since when; only these can be given up.
    """
    gaps: list[Gap] = []
    problems: dict[TopicPartition, Problem] = {}
    notes: list[str] = []
    for name, topic in topics.items():
        if topic is None:
            unwritten = _unwritten(state, name, known_ends, GapReason.TOPIC_DELETED, now)
            since = (gone or {}).get(name)
            if skip_lost and since is not None and (not unwritten or now - since >= GIVEN_UP_AFTER):
                gaps += unwritten
            else:
                problems |= _missing(state, name)
            continue
        earliest = {p: seen[name, p].earliest for p in topic.partitions if (name, p) in seen}
        for p in topic.partitions:
            if (name, p) not in seen:
                text = f"{name}-{p}: Kafka did not tell its offsets; does the partition have a leader?"
                problems[name, p] = Problem("PartitionUnavailable", text)
        known = state.topics.get(name)
        if known is not None and known.id != topic.id:
            gaps += _unwritten(state, name, known_ends, GapReason.TOPIC_REMADE, now)
            state = remake(state, name, topic.id, earliest, now)
            generation = state.topics[name].generation
            notes.append(f"topic {name} was deleted and made anew: its objects are named -g{generation} now")
        state = meet(state, name, topic.id, earliest, now)
    # Cut logs first: they raise the topic's generation, which the gaps of its other partitions must name.
    for at, offsets in seen.items():
        if skip_lost and state.offset(*at) > offsets.end:
            state = _cut_back(state, at, offsets, now)
            notes.append(f"the log of {at[0]}-{at[1]} was cut back to {offsets.end}: going on from there")
    readable: dict[TopicPartition, Offsets] = {}
    for at, offsets in seen.items():
        lost = _lost(state, at, offsets)
        if lost is None:
            readable[at] = offsets
        elif skip_lost and offsets.earliest > state.offset(*at):
            generation, committed = state.topics[at[0]].generation, state.offset(*at)
            gaps.append(Gap(at[0], generation, at[1], committed, offsets.earliest, GapReason.RETENTION, now))
            readable[at] = offsets
        else:
            problems[at] = lost
    return Contact(state, seen, readable, tuple(gaps), problems, tuple(notes))


def _missing(state: State, name: str) -> dict[TopicPartition, Problem]:
    text = f"topic {name} does not exist (any more), or may not be seen; it is read again once it can be"
    problem = Problem("TopicMissing", f"{text}. To give it up, leave it out of spec.source.topics or topicPattern")
    known = state.topics.get(name)
    return {(name, p): problem for p in ((known and known.partitions) or [0])}


def _unwritten(state: State, name: str, known_ends: Mapping[TopicPartition, int], reason: str, now: float) -> list[Gap]:
    """Records of the deleted topic that were there when we last looked, and are not written."""
    known = state.topics.get(name)
    if known is None:
        return []
    ends = {p: known_ends.get((name, p), at.offset) for p, at in known.partitions.items()}
    return [
        Gap(name, known.generation, p, at.offset, ends[p], reason, now)
        for p, at in sorted(known.partitions.items())
        if ends[p] > at.offset
    ]


def _lost(state: State, at: TopicPartition, offsets: Offsets) -> Problem | None:
    """What Kafka no longer has of what the sink still wanted, or of what it had already."""
    name, committed = f"{at[0]}-{at[1]}", state.offset(*at)
    if offsets.earliest > committed:
        text = f"{name}: offsets {committed} to {offsets.earliest - 1} are gone from Kafka, unwritten"
        return Problem("DataLoss", f"{text}: set spec.source.onDataLoss to Skip to go on behind them")
    if committed > offsets.end:
        text = f"{name}: the log ends at {offsets.end}, before the committed offset {committed}"
        return Problem("LogTruncated", f"{text}: set spec.source.onDataLoss to Skip to go on from its end")
    return None


def _cut_back(state: State, at: TopicPartition, offsets: Offsets, now: float) -> State:
    """A log that lost its end goes on from there under new names: offsets will be used a second time."""
    known = state.topics[at[0]]
    starts = {p: s.offset for p, s in known.partitions.items()} | {at[1]: offsets.end}
    return remake(state, at[0], known.id, starts, now)
