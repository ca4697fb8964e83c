"""Whether the committed flushes of a partition cover all offsets, each once."""

from __future__ import annotations

from typing import NamedTuple

from s3sink_job.flush.manifest import Gap, SliceEntry
from s3sink_job.flush.state import SinkState
from s3sink_job.proof.flush_history import FlushHistory, PartitionGeneration
from s3sink_job.proof.verify_report import RecordCounts


class CommittedRange(NamedTuple):
    """Offsets `[start, end)` that the state calls committed."""

    start: int
    end: int


def committed_ranges(state: SinkState) -> dict[PartitionGeneration, CommittedRange]:
    """Of the present generations."""
    return {
        PartitionGeneration(name, topic.generation, number): CommittedRange(partition.start, partition.offset)
        for name, topic in state.topics.items()
        for number, partition in topic.partitions.items()
    }


def check_ranges(state: SinkState, history: FlushHistory, counts: RecordCounts) -> None:
    """Slices and gaps of a partition must follow one another, from where it began to the committed offset."""
    committed = committed_ranges(state)
    for place in sorted({*history.partitions, *committed}):
        known, current = history.of(place), committed.get(place)
        moves: list[SliceEntry | Gap] = [*known.slices, *(gap for gap in known.gaps if gap.moves)]
        moves.sort(key=lambda move: (move.start, move.end))
        reached = current.start if current else moves[0].start if moves else 0
        for move in moves:
            _check_joint(counts, place, reached, move.start)
            reached = max(reached, move.end)
        if current:
            _check_joint(counts, place, reached, current.end)


def _check_joint(counts: RecordCounts, place: PartitionGeneration, reached: int, start: int) -> None:
    if start > reached:
        counts.missing += start - reached
        counts.add_finding(f"{place}: no flush covers offsets {reached} to {start - 1}")
    elif start < reached:
        counts.duplicates += reached - start
        counts.add_finding(f"{place}: offsets {start} to {reached - 1} are in two flushes")
