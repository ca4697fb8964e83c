"""Truncated logs: Kafka lost records that the sink had committed, by an unclean leader election or a lost disk.

A truncated log grows again, and offsets are used a second time. The end of the log does not show that: it may have
grown past the committed offset before the sink looked. Leader epochs do. The state keeps, with each committed offset,
the epoch of the leader whose log had everything below it. When the leader has changed, the sink asks Kafka whether the
log of that epoch still reaches the committed offset (offset validation, KIP-320).

Pure: Kafka's answers come in, the next state and the problems come out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from s3sink_job.flush.kafka_metadata import Offsets, TopicPartition
from s3sink_job.flush.manifest import Gap, GapReason
from s3sink_job.flush.problem import UNAVAILABLE, Problem
from s3sink_job.flush.state import PartitionState, SinkState, TruncatedLog, Truncation, partition_of, same_topic
from s3sink_job.flush.transitions import next_generation, record_truncations, with_topic


@dataclass(frozen=True)
class OffsetValidation:
    """Kafka's answers about committed offsets after a change of leader. Confirmed offsets are in neither field."""

    truncated: Mapping[TopicPartition, int | None] = field(default_factory=dict)
    """The first offset at which the log differs from the one that was read; None where the broker cannot tell."""
    unanswered: Mapping[TopicPartition, str] = field(default_factory=dict)
    """Kafka did not answer, and why."""


@dataclass
class TruncationChanges:
    state: SinkState
    gaps: list[Gap] = field(default_factory=list)
    problems: dict[TopicPartition, Problem] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class OffsetToValidate:
    """Everything below `offset` was read from leaders up to `epoch`. `now` is the epoch of the present leader."""

    offset: int
    epoch: int
    now: int


def offsets_to_validate(
    state: SinkState, ids: Mapping[str, str], seen: Mapping[TopicPartition, Offsets]
) -> dict[TopicPartition, OffsetToValidate]:
    """Of the partitions whose leader has changed since the last commit. `ids` are the topics' ids."""
    found = {}
    for at, offsets in seen.items():
        topic = state.topics.get(at[0])
        known = topic.partitions.get(at[1]) if topic and same_topic(topic.id, ids[at[0]]) else None
        if known is None or known.leader_epoch is None or offsets.leader_epoch is None:
            continue
        if known.leader_epoch != offsets.leader_epoch:
            found[at] = OffsetToValidate(known.offset, known.leader_epoch, offsets.leader_epoch)
    return found


def detect_truncations(
    state: SinkState,
    seen: Mapping[TopicPartition, Offsets],
    known_ends: Mapping[TopicPartition, int],
    validated: OffsetValidation,
    *,
    skip_lost: bool,
    now: float,
) -> TruncationChanges:
    """Stops partitions with truncated logs. With `skip_lost`, begins a new generation where the logs differ instead."""
    changes = TruncationChanges(_with_missing_epochs(state, seen))
    if stored := sum(partition_of(changes.state, at) != partition_of(state, at) for at in seen):
        changes.notes.append(
            f"the state had no leader epochs for {stored} partitions; the current ones are stored now. A log that was "
            "truncated before now cannot be detected"
        )
    found: dict[str, dict[int, TruncatedLog]] = {}
    for at, offsets in seen.items():
        log = _truncated_log(state, at, offsets, validated, now)
        if log is not None:
            found.setdefault(at[0], {})[at[1]] = log
        elif at in validated.unanswered:
            changes.problems[at] = _unconfirmed(at, validated.unanswered[at])
    for topic, logs in found.items():
        if skip_lost:
            _resume(changes, topic, logs, seen, known_ends, now)
        else:
            _stop(changes, topic, logs)
    return changes


def _with_missing_epochs(state: SinkState, seen: Mapping[TopicPartition, Offsets]) -> SinkState:
    """Stores the current leader epochs where an older release, or a sink with older brokers, stored none."""
    found: dict[str, dict[int, PartitionState]] = {}
    for at, offsets in seen.items():
        known = partition_of(state, at)
        if known.leader_epoch is None and offsets.leader_epoch is not None:
            found.setdefault(at[0], {})[at[1]] = replace(known, leader_epoch=offsets.leader_epoch)
    for name, partitions in found.items():
        state = _with_partitions(state, name, partitions)
    return state


def _truncated_log(
    state: SinkState, at: TopicPartition, offsets: Offsets, validated: OffsetValidation, now: float
) -> TruncatedLog | None:
    """Found now or before. It stays truncated even if the log grows past the committed offset."""
    known = partition_of(state, at)
    before = known.truncated_log
    if at in validated.truncated:
        point = validated.truncated[at]
        if before is None:
            return TruncatedLog(point, now)
        points = (before.first_difference, point)
        return TruncatedLog(None if None in points else min(p for p in points if p is not None), before.found_at)
    if before is None and known.offset > offsets.end:
        return TruncatedLog(None, now)
    return before


def _resume(
    changes: TruncationChanges,
    name: str,
    logs: Mapping[int, TruncatedLog],
    seen: Mapping[TopicPartition, Offsets],
    known_ends: Mapping[TopicPartition, int],
    now: float,
) -> None:
    """Begins the topic's next generation: truncated logs where they differ, the other partitions where they are.

    Where the broker does not report the first difference, a log is read again from its earliest offset: records are
    written twice rather than skipped.
    """
    topic = changes.state.topics[name]
    starts = {p: known.offset for p, known in topic.partitions.items()}
    epochs = {p: known.leader_epoch for p, known in topic.partitions.items()}
    events = []
    for partition, log in logs.items():
        offsets, committed = seen[name, partition], topic.partitions[partition].offset
        point = log.first_difference
        starts[partition] = offsets.earliest if point is None else min(point, offsets.end)
        epochs[partition] = offsets.leader_epoch
        events.append(Truncation(name, partition, topic.generation, committed, starts[partition], now))
        if (end := known_ends.get((name, partition), committed)) > committed:
            gap = (name, topic.generation, partition, committed, end, GapReason.LOG_TRUNCATED, now)
            changes.gaps.append(Gap(*gap))
        changes.notes.append(
            f"the log of {name}-{partition} was truncated below the committed offset {committed}. onDataLoss is Skip, "
            f"so it is read again from offset {starts[partition]}; new objects of {name} have -g{topic.generation + 1} "
            "in their names"
        )
    state = next_generation(changes.state, name, topic.id, starts, now, epochs)
    # A stopped partition that did not answer now stays stopped.
    others = {p: known.truncated_log for p, known in topic.partitions.items() if known.truncated_log and p not in logs}
    changes.state = record_truncations(_with_truncated_logs(state, name, others), events)


def _stop(changes: TruncationChanges, name: str, logs: Mapping[int, TruncatedLog]) -> None:
    known = changes.state.topics[name].partitions
    new = {partition: log for partition, log in logs.items() if known[partition].truncated_log != log}
    changes.state = _with_truncated_logs(changes.state, name, new)
    for partition, log in logs.items():
        changes.problems[name, partition] = _stopped((name, partition), known[partition].offset, log)


def _stopped(at: TopicPartition, committed: int, log: TruncatedLog) -> Problem:
    point = log.first_difference
    where = "an offset that the broker does not report" if point is None else f"offset {point}"
    cause = f"the log was truncated below the committed offset {committed} (unclean leader election or lost disk)"
    todo = "Set spec.source.onDataLoss to Skip to write the new log with a new generation in object names"
    return Problem(
        "LogTruncated", f"{at[0]}-{at[1]}: {cause} and differs from {where} on; the partition is stopped. {todo}"
    )


def _unconfirmed(at: TopicPartition, cause: str) -> Problem:
    text = "the leader changed, and Kafka has not confirmed yet that the new leader has all committed records"
    return Problem(UNAVAILABLE, f"{at[0]}-{at[1]}: {text}: {cause}; retrying")


def _with_truncated_logs(state: SinkState, name: str, logs: Mapping[int, TruncatedLog]) -> SinkState:
    if not logs:
        return state
    known = state.topics[name].partitions
    return _with_partitions(state, name, {p: replace(known[p], truncated_log=log) for p, log in logs.items()})


def _with_partitions(state: SinkState, name: str, partitions: Mapping[int, PartitionState]) -> SinkState:
    topic = state.topics[name]
    return with_topic(state, name, replace(topic, partitions={**topic.partitions, **partitions}))
