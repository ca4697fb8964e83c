"""What changed in Kafka since the sink last looked: new, recreated, truncated or deleted topics, and lost records.

Pure: Kafka's answers come in, the next state and the problems come out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from s3sink_job.flush.kafka_metadata import Offsets, Topic, TopicPartition
from s3sink_job.flush.manifest import Gap, GapReason
from s3sink_job.flush.problem import UNAVAILABLE, Problem
from s3sink_job.flush.state import SinkState, same_topic
from s3sink_job.flush.transitions import add_partitions, next_generation
from s3sink_job.flush.truncation import OffsetValidation, detect_truncations

GIVEN_UP_AFTER = 60.0
"""Seconds: if Kafka says for so long that a topic does not exist, its unwritten records count as lost."""


@dataclass(frozen=True)
class TopicChanges:
    state: SinkState
    known: Mapping[TopicPartition, Offsets]
    """Every partition that Kafka reported."""
    seen: Mapping[TopicPartition, Offsets]
    """Those of them that may be read now. `problems` says why the others may not."""
    gaps: tuple[Gap, ...]
    problems: Mapping[TopicPartition, Problem]
    notes: tuple[str, ...] = ()


@dataclass
class _Found:
    """What was found so far."""

    state: SinkState
    gaps: list[Gap] = field(default_factory=list)
    problems: dict[TopicPartition, Problem] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def detect_topic_changes(
    state: SinkState,
    topics: Mapping[str, Topic | None],
    seen: Mapping[TopicPartition, Offsets],
    known_ends: Mapping[TopicPartition, int],
    *,
    skip_lost: bool,
    now: float,
    gone: Mapping[str, float] | None = None,
    validated: OffsetValidation = OffsetValidation(),  # noqa: B008 - frozen
    ends: Mapping[TopicPartition, int] | None = None,
) -> TopicChanges:
    """Compares the sink's state with what Kafka reports. `known_ends` are the ends of the logs when last seen.

    `gone` are topics of a pattern that Kafka no longer has, and since when: only these are ever given up.
    `validated` is Kafka's answer about committed offsets after a change of leader.
    `ends`: where a bounded run ends. Records after it that Kafka deleted are not lost to it.
    """
    found = _Found(state)
    for name, topic in topics.items():
        if topic is None:
            since = (gone or {}).get(name)
            _follow_deleted(found, name, known_ends, since if skip_lost else None, now)
        else:
            _follow_existing(found, name, topic, seen, known_ends, now)
    # Truncated logs first: they begin a new generation, which the gaps of the topic's other partitions must have.
    changes = detect_truncations(found.state, seen, known_ends, validated, skip_lost=skip_lost, now=now)
    found.state = changes.state
    found.gaps += changes.gaps
    found.problems |= changes.problems
    found.notes += changes.notes
    readable = _follow_retention(found, seen, ends or {}, skip_lost=skip_lost, now=now)
    return TopicChanges(found.state, seen, readable, tuple(found.gaps), found.problems, tuple(found.notes))


def _follow_deleted(
    found: _Found, name: str, known_ends: Mapping[TopicPartition, int], gone_since: float | None, now: float
) -> None:
    """Gives up a topic that is surely gone. Without `gone_since` the topic is kept."""
    unwritten = _unwritten(found.state, name, known_ends, GapReason.TOPIC_DELETED, now)
    if gone_since is not None and (not unwritten or now - gone_since >= GIVEN_UP_AFTER):
        found.gaps += unwritten
    else:
        found.problems |= _missing(found.state, name)


def _follow_existing(
    found: _Found,
    name: str,
    topic: Topic,
    seen: Mapping[TopicPartition, Offsets],
    known_ends: Mapping[TopicPartition, int],
    now: float,
) -> None:
    """Adds new partitions, and begins a new generation if the topic was recreated."""
    begin = {p: seen[name, p] for p in topic.partitions if (name, p) in seen}
    earliest, epochs = {p: o.earliest for p, o in begin.items()}, {p: o.leader_epoch for p, o in begin.items()}
    found.problems |= {(name, p): _unavailable(name, p, topic) for p in topic.partitions if (name, p) not in seen}
    known = found.state.topics.get(name)
    if known is not None and not same_topic(known.id, topic.id):
        found.gaps += _unwritten(found.state, name, known_ends, GapReason.TOPIC_REMADE, now)
        found.state = next_generation(found.state, name, topic.id, earliest, now, epochs)
        generation = found.state.topics[name].generation
        found.notes.append(f"topic {name} was recreated: new objects have -g{generation} in their names")
    found.state = add_partitions(found.state, name, topic.id, earliest, now, epochs)


def _follow_retention(
    found: _Found,
    seen: Mapping[TopicPartition, Offsets],
    ends: Mapping[TopicPartition, int],
    *,
    skip_lost: bool,
    now: float,
) -> dict[TopicPartition, Offsets]:
    """Stops or skips where Kafka deleted records before they were written. Returns the readable partitions."""
    readable: dict[TopicPartition, Offsets] = {}
    for at, offsets in seen.items():
        committed = found.state.offset(*at)
        if at in found.problems:
            continue
        lost_to = min(offsets.earliest, ends.get(at, offsets.earliest))
        if lost_to <= committed:
            readable[at] = offsets
        elif skip_lost:
            generation = found.state.topics[at[0]].generation
            found.gaps.append(Gap(at[0], generation, at[1], committed, lost_to, GapReason.RETENTION, now))
            readable[at] = offsets
        else:
            found.problems[at] = _lost(at, committed, lost_to)
    return readable


def _unwritten(
    state: SinkState, name: str, known_ends: Mapping[TopicPartition, int], reason: str, now: float
) -> list[Gap]:
    """Records of a deleted topic that were in Kafka when last seen, and are not written."""
    known = state.topics.get(name)
    if known is None:
        return []
    ends = {p: known_ends.get((name, p), at.offset) for p, at in known.partitions.items()}
    return [
        Gap(name, known.generation, p, at.offset, ends[p], reason, now)
        for p, at in sorted(known.partitions.items())
        if ends[p] > at.offset
    ]


def _unavailable(name: str, partition: int, topic: Topic) -> Problem:
    why = "the partition has no leader" if partition in topic.leaderless else "Kafka did not answer in time"
    return Problem(UNAVAILABLE, f"{name}-{partition}: offsets unknown: {why}; retrying, the other partitions continue")


def _missing(state: SinkState, name: str) -> dict[TopicPartition, Problem]:
    text = f"topic {name} does not exist, or the user may not see it. The sink reads it again when it is back"
    problem = Problem("TopicMissing", f"{text}; to give it up, remove it from spec.source.topics or topicPattern")
    known = state.topics.get(name)
    return {(name, p): problem for p in ((known and known.partitions) or [0])}


def _lost(at: TopicPartition, committed: int, lost_to: int) -> Problem:
    text = f"{at[0]}-{at[1]}: Kafka deleted offsets {committed} to {lost_to - 1} before they were written (retention)"
    return Problem("DataLoss", f"{text}; the partition is stopped. Set spec.source.onDataLoss to Skip to continue")
