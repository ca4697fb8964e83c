"""Logs that lost records which the sink had committed: an unclean leader election, a lost disk, an old snapshot.

A log that was cut grows again, and offsets are used a second time. The end of the log alone does not show that:
it may have grown past the committed offset before anybody looked. Leader epochs do. The state keeps, with each
committed offset, the epoch of the leader whose log had everything below it. When the leader has changed, Kafka is
asked whether the log of that epoch still reaches the committed offset (KIP-320).

Pure: what Kafka said comes in, the next state and what is wrong come out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from s3sink_job.flush.manifest import Gap, GapReason
from s3sink_job.flush.plan import Offsets, TopicPartition, partition_of
from s3sink_job.flush.problem import UNAVAILABLE, Problem
from s3sink_job.flush.state import Cut, PartitionState, State, Truncation, remake, same_topic, truncated, with_topic


@dataclass(frozen=True)
class Validated:
    """What Kafka said of offsets after a change of leader. Those it confirmed are in neither."""

    cut: Mapping[TopicPartition, int | None] = field(default_factory=dict)
    """The first offset at which the log differs from the one that was read; None where the broker cannot tell."""
    unknown: Mapping[TopicPartition, str] = field(default_factory=dict)
    """Kafka did not answer, and why."""


@dataclass
class Cuts:
    state: State
    gaps: list[Gap] = field(default_factory=list)
    problems: dict[TopicPartition, Problem] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Asked:
    """What was read: everything below `offset`, from leaders up to that epoch. `now` is the present leader's."""

    offset: int
    epoch: int
    now: int


def moved_leaders(
    state: State, ids: Mapping[str, str], seen: Mapping[TopicPartition, Offsets]
) -> dict[TopicPartition, Asked]:
    """The partitions that have another leader than when their offset was committed. `ids` are the topics'."""
    found = {}
    for at, offsets in seen.items():
        topic = state.topics.get(at[0])
        known = topic.partitions.get(at[1]) if topic and same_topic(topic.id, ids[at[0]]) else None
        if known is None or known.leader_epoch is None or offsets.leader_epoch is None:
            continue
        if known.leader_epoch != offsets.leader_epoch:
            found[at] = Asked(known.offset, known.leader_epoch, offsets.leader_epoch)
    return found


def follow_cuts(
    state: State,
    seen: Mapping[TopicPartition, Offsets],
    known_ends: Mapping[TopicPartition, int],
    validated: Validated,
    *,
    skip_lost: bool,
    now: float,
) -> Cuts:
    """Stops a partition whose log was cut, or, with `skip_lost`, begins a new generation where the logs differ."""
    cuts = Cuts(_adopted(state, seen))
    if adopted := sum(_epochs(cuts.state, at) != _epochs(state, at) for at in seen):
        cuts.notes.append(
            f"the state had no leader epochs for {adopted} partitions, the present ones are taken over: "
            "a log that was cut before now is not noticed"
        )
    found: dict[str, dict[int, Cut]] = {}
    for at, offsets in seen.items():
        cut = _cut_of(state, at, offsets, validated, now)
        if cut is not None:
            found.setdefault(at[0], {})[at[1]] = cut
        elif at in validated.unknown:
            cuts.problems[at] = _unconfirmed(at, validated.unknown[at])
    for name, own in found.items():
        if skip_lost:
            _go_on(cuts, name, own, seen, known_ends, now)
        else:
            _stop(cuts, name, own)
    return cuts


def _epochs(state: State, at: TopicPartition) -> int | None:
    return partition_of(state, at).leader_epoch


def _adopted(state: State, seen: Mapping[TopicPartition, Offsets]) -> State:
    """With the present leader epochs where the state has none: written by an older release, or by older brokers."""
    found: dict[str, dict[int, PartitionState]] = {}
    for at, offsets in seen.items():
        known = partition_of(state, at)
        if known.leader_epoch is None and offsets.leader_epoch is not None:
            found.setdefault(at[0], {})[at[1]] = replace(known, leader_epoch=offsets.leader_epoch)
    for name, partitions in found.items():
        topic = state.topics[name]
        state = with_topic(state, name, replace(topic, partitions={**topic.partitions, **partitions}))
    return state


def _cut_of(state: State, at: TopicPartition, offsets: Offsets, validated: Validated, now: float) -> Cut | None:
    """Found now or before. Once it is known a cut stays: the log may have grown past the committed offset since."""
    known = partition_of(state, at)
    if at in validated.cut:
        found = Cut(validated.cut[at], now)
        if known.cut is None:
            return found
        points = (known.cut.at, found.at)
        return Cut(None if None in points else min(p for p in points if p is not None), known.cut.seen)
    if known.cut is None and known.offset > offsets.end:
        return Cut(None, now)
    return known.cut


def _go_on(
    cuts: Cuts,
    name: str,
    own: Mapping[int, Cut],
    seen: Mapping[TopicPartition, Offsets],
    known_ends: Mapping[TopicPartition, int],
    now: float,
) -> None:
    """Begins the topic's next generation: cut partitions where the logs differ, the others where they are.

    Where the broker cannot name that point it is the earliest offset: rather written again than stepped over.
    """
    topic = cuts.state.topics[name]
    starts = {p: known.offset for p, known in topic.partitions.items()}
    epochs = {p: known.leader_epoch for p, known in topic.partitions.items()}
    events = []
    for partition, cut in own.items():
        offsets, committed = seen[name, partition], topic.partitions[partition].offset
        starts[partition] = offsets.earliest if cut.at is None else min(cut.at, offsets.end)
        epochs[partition] = offsets.leader_epoch
        events.append(Truncation(name, partition, topic.generation, committed, starts[partition], now))
        if (end := known_ends.get((name, partition), committed)) > committed:
            gap = (name, topic.generation, partition, committed, end, GapReason.LOG_TRUNCATED, now)
            cuts.gaps.append(Gap(*gap))
        cuts.notes.append(
            f"the log of {name}-{partition} was truncated below the committed offset {committed}: onDataLoss is Skip, "
            f"so it is read again from offset {starts[partition]}; objects of {name} are named "
            f"-g{topic.generation + 1} from now on"
        )
    state = remake(cuts.state, name, topic.id, starts, now, epochs)
    # Those that are stopped and did not answer just now stay so.
    still = {p: known.cut for p, known in topic.partitions.items() if known.cut and p not in own}
    cuts.state = truncated(_marked(state, name, still), events)


def _stop(cuts: Cuts, name: str, own: Mapping[int, Cut]) -> None:
    known = cuts.state.topics[name].partitions
    new = {partition: cut for partition, cut in own.items() if known[partition].cut != cut}
    cuts.state = _marked(cuts.state, name, new)
    for partition, cut in own.items():
        cuts.problems[name, partition] = _stopped((name, partition), known[partition].offset, cut)


def _stopped(at: TopicPartition, committed: int, cut: Cut) -> Problem:
    where = "an offset that the broker cannot name" if cut.at is None else f"offset {cut.at}"
    text = f"{at[0]}-{at[1]}: the log was truncated below the committed offset {committed} and differs from {where} on"
    todo = "set spec.source.onDataLoss to Skip to write the new log under names of a new generation"
    return Problem(
        "LogTruncated", f"{text} (unclean leader election, or a lost disk); the partition is stopped: {todo}"
    )


def _unconfirmed(at: TopicPartition, cause: str) -> Problem:
    text = f"{at[0]}-{at[1]}: the leader changed, and Kafka has not confirmed yet that it has the committed records"
    return Problem(UNAVAILABLE, f"{text}: {cause}; trying again")


def _marked(state: State, name: str, marks: Mapping[int, Cut]) -> State:
    if not marks:
        return state
    topic = state.topics[name]
    stopped = {partition: replace(topic.partitions[partition], cut=cut) for partition, cut in marks.items()}
    return with_topic(state, name, replace(topic, partitions={**topic.partitions, **stopped}))
