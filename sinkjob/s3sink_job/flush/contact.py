"""Where a sink stands with Kafka: topics met for the first time, made anew, cut short or gone.

Pure: what Kafka said comes in, the next state and what is wrong come out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from s3sink_job.errors import FinalError
from s3sink_job.flush.manifest import Gap, GapReason
from s3sink_job.flush.plan import Offsets, TopicPartition
from s3sink_job.flush.problem import UNAVAILABLE, Problem
from s3sink_job.flush.state import State, meet, remake, reset_done, same_topic
from s3sink_job.flush.truncation import Validated, follow_cuts
from s3sink_job.spec import FromEarliest, FromLatest, FromOffsets, FromTimestamp, Reset, StartingOffsets, TopicOffset
from s3sink_job.times import iso

GIVEN_UP_AFTER = 60.0
"""Seconds for which Kafka has to say that a topic does not exist until its unwritten records count as lost."""


@dataclass(frozen=True)
class Topic:
    """A topic as Kafka describes it."""

    id: str
    """Empty where the broker has none, as before Kafka 2.8."""
    partitions: tuple[int, ...]
    leaderless: frozenset[int] = field(default=frozenset(), compare=False)
    """Partitions without a leader at this moment."""


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


def first_contact(
    state: State,
    topics: Mapping[str, Topic],
    starts: Mapping[TopicPartition, int],
    now: float,
    epochs: Mapping[TopicPartition, int | None] | None = None,
) -> State:
    for name, topic in topics.items():
        begin = {p: starts[name, p] for p in topic.partitions}
        state = meet(state, name, topic.id, begin, now, {p: (epochs or {}).get((name, p)) for p in begin})
    return replace(state, contacted=True)


def due_reset(wanted: Reset | None, state: State) -> Reset | None:
    """The manifest's reset, unless it was carried out already."""
    done = wanted is not None and any(reset.nonce == wanted.nonce for reset in state.resets)
    return None if done else wanted


def begin_anew(
    state: State,
    nonce: str,
    topics: Mapping[str, Topic],
    starts: Mapping[TopicPartition, int],
    now: float,
    epochs: Mapping[TopicPartition, int | None] | None = None,
) -> State:
    """A reset: every topic that the state knows gets its next generation.

    Those that Kafka has now begin at `starts`. Any other begins at its earliest offset once it is met again, as
    whatever is discovered later does.
    """
    for name, known in state.topics.items():
        topic = topics.get(name, Topic(known.id, ()))
        begin = {p: starts[name, p] for p in topic.partitions}
        state = remake(state, name, topic.id, begin, now, {p: (epochs or {}).get((name, p)) for p in begin})
    return reset_done(first_contact(state, topics, starts, now, epochs), nonce, now)


def follow(
    state: State,
    topics: Mapping[str, Topic | None],
    seen: Mapping[TopicPartition, Offsets],
    known_ends: Mapping[TopicPartition, int],
    *,
    skip_lost: bool,
    now: float,
    gone: Mapping[str, float] | None = None,
    validated: Validated = Validated(),  # noqa: B008 - frozen
) -> Contact:
    """The sink's state beside Kafka's. `known_ends` is how far each log reached when last looked at.

    `gone` are topics of a pattern that Kafka no longer has, and since when; only these can be given up.
    `validated` is what Kafka said of committed offsets after a change of leader.
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
        begin = {p: seen[name, p] for p in topic.partitions if (name, p) in seen}
        earliest, epochs = {p: o.earliest for p, o in begin.items()}, {p: o.leader_epoch for p, o in begin.items()}
        problems |= {(name, p): _unavailable(name, p, topic) for p in topic.partitions if (name, p) not in seen}
        known = state.topics.get(name)
        if known is not None and not same_topic(known.id, topic.id):
            gaps += _unwritten(state, name, known_ends, GapReason.TOPIC_REMADE, now)
            state = remake(state, name, topic.id, earliest, now, epochs)
            generation = state.topics[name].generation
            notes.append(f"topic {name} was recreated: its objects are named -g{generation} from now on")
        state = meet(state, name, topic.id, earliest, now, epochs)
    # Cut logs first: they raise the topic's generation, which the gaps of its other partitions must name.
    cuts = follow_cuts(state, seen, known_ends, validated, skip_lost=skip_lost, now=now)
    state, gaps, problems, notes = cuts.state, gaps + cuts.gaps, problems | cuts.problems, notes + cuts.notes
    readable: dict[TopicPartition, Offsets] = {}
    for at, offsets in seen.items():
        committed = state.offset(*at)
        if at in problems:
            continue
        if offsets.earliest <= committed:
            readable[at] = offsets
        elif skip_lost:
            generation = state.topics[at[0]].generation
            gaps.append(Gap(at[0], generation, at[1], committed, offsets.earliest, GapReason.RETENTION, now))
            readable[at] = offsets
        else:
            problems[at] = _lost(at, committed, offsets.earliest)
    return Contact(state, seen, readable, tuple(gaps), problems, tuple(notes))


def _unavailable(name: str, partition: int, topic: Topic) -> Problem:
    why = "it has no leader" if partition in topic.leaderless else "Kafka did not answer for it in time"
    return Problem(UNAVAILABLE, f"{name}-{partition}: offsets unknown, {why}; the other partitions go on")


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


def _lost(at: TopicPartition, committed: int, earliest: int) -> Problem:
    text = f"{at[0]}-{at[1]}: offsets {committed} to {earliest - 1} are gone from Kafka, unwritten"
    return Problem("DataLoss", f"{text}: set spec.source.onDataLoss to Skip to go on behind them")
