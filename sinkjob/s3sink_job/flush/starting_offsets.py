"""Where the partitions of a sink begin: `spec.source.startingOffsets`, or `spec.reset.to`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from s3sink_api.spec import FromEarliest, FromLatest, FromOffsets, FromTimestamp, StartingOffsets, TopicOffset
from s3sink_job.base.errors import FinalError
from s3sink_job.base.times import iso
from s3sink_job.flush.kafka_metadata import Offsets, Topic, TopicPartition
from s3sink_job.flush.state import SinkState
from s3sink_job.flush.transitions import add_partitions


def starting_offsets(
    wanted: StartingOffsets,
    seen: Mapping[TopicPartition, Offsets],
    at_time: Mapping[TopicPartition, int | None],
    field: str = "spec.source.startingOffsets",
) -> dict[TopicPartition, int]:
    """For each partition that Kafka has now. `at_time` holds the offsets that Kafka found for a timestamp."""
    match wanted:
        case FromEarliest():
            return {at: o.earliest for at, o in seen.items()}
        case FromLatest():
            return {at: o.end for at, o in seen.items()}
        case FromTimestamp():
            # Kafka looked it up after the ends: it may have found a record that is newer than the end.
            found = {at: at_time.get(at) for at in seen}
            return {at: seen[at].end if o is None else min(o, seen[at].end) for at, o in found.items()}
        case FromOffsets(offsets=listed):
            starts = {at: o.earliest for at, o in seen.items()}
            for index, item in enumerate(listed):
                starts[item.topic, item.partition] = _listed_offset(f"{field}.offsets[{index}]", item, seen)
            return starts


def listed_partition(where: str, item: TopicOffset, seen: Mapping[TopicPartition, Offsets], *, reason: str) -> Offsets:
    """The offsets that Kafka has of a partition in the manifest."""
    known = seen.get((item.topic, item.partition))
    if known is None:
        raise FinalError(f"{where}: {item.topic} has no partition {item.partition}", reason=reason)
    return known


def _listed_offset(where: str, item: TopicOffset, seen: Mapping[TopicPartition, Offsets]) -> int:
    known = listed_partition(where, item, seen, reason="StartingOffsets")
    if not known.earliest <= item.offset <= known.end:
        name = f"{item.topic}-{item.partition}"
        raise FinalError(
            f"{where}: {name} has offsets {known.earliest} to {known.end}, got {item.offset}", reason="StartingOffsets"
        )
    return item.offset


def describe_start(wanted: StartingOffsets) -> str:
    match wanted:
        case FromTimestamp(timestamp=moment):
            return f"{wanted.position} {iso(moment.timestamp())}"
        case FromOffsets(offsets=listed):
            return f"{wanted.position} ({len(listed)} listed, else Earliest)"
        case _:
            return wanted.position


def start_topics(
    state: SinkState,
    topics: Mapping[str, Topic],
    starts: Mapping[TopicPartition, int],
    now: float,
    epochs: Mapping[TopicPartition, int | None] | None = None,
) -> SinkState:
    """Stores where every partition begins. Topics and partitions found later begin at their earliest offsets."""
    for name, topic in topics.items():
        begin = {p: starts[name, p] for p in topic.partitions}
        state = add_partitions(state, name, topic.id, begin, now, {p: (epochs or {}).get((name, p)) for p in begin})
    return replace(state, contacted=True)
