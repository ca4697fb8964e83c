"""Where a bounded run ends: `spec.source.endingOffsets`.

The end is fixed once, as an offset for each partition, and stored in the state. So a restart does not move it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC

from s3sink_api.spec import EndingOffsets, Source, ToLatest, ToOffsets, TopicOffset, ToTimestamp
from s3sink_job.base.errors import FinalError
from s3sink_job.base.times import iso
from s3sink_job.flush.kafka_metadata import Offsets, Topic, TopicPartition
from s3sink_job.flush.starting_offsets import listed_partition
from s3sink_job.flush.state import FixedEnd, SinkState, TopicEnd, same_topic
from s3sink_job.flush.topic_changes import TopicChanges

FIELD = "spec.source.endingOffsets"
PARTITIONS_SHOWN = 5
LONGEST_TEXT = 200
"""Characters of what the state keeps of the manifest. A longer text is kept as its hash."""


def ending_offsets(
    wanted: EndingOffsets,
    seen: Mapping[TopicPartition, Offsets],
    at_time: Mapping[TopicPartition, int | None],
    now: float,
) -> dict[TopicPartition, int]:
    """The first offset of each partition that the run does not write. `at_time`: what Kafka found for a timestamp."""
    match wanted:
        case ToLatest():
            return {at: o.stable for at, o in seen.items()}
        case ToTimestamp(timestamp=moment):
            if moment.timestamp() > now:
                text = f"{FIELD}.timestamp: {iso(moment.timestamp())} is in the future: not all records are there"
                raise FinalError(f"{text}. Run it later, or use position: Latest", reason="EndingOffsets")
            # Kafka looked it up after the ends: it may have found a record that is newer than the end.
            return {at: o.end if (found := at_time[at]) is None else min(found, o.end) for at, o in seen.items()}
        case ToOffsets(offsets=listed):
            ends = {at: o.stable for at, o in seen.items()}
            for index, item in enumerate(listed):
                ends[item.topic, item.partition] = _listed_offset(f"{FIELD}.offsets[{index}]", item, seen)
            return ends


def _listed_offset(where: str, item: TopicOffset, seen: Mapping[TopicPartition, Offsets]) -> int:
    known = listed_partition(where, item, seen, reason="EndingOffsets")
    if item.offset > known.end:
        text = f"{where}: {item.topic}-{item.partition} ends at offset {known.end}, got {item.offset}"
        raise FinalError(f"{text}. Run it once Kafka has these records, or lower the offset", reason="EndingOffsets")
    return item.offset


def describe_end(wanted: EndingOffsets) -> str:
    match wanted:
        case ToTimestamp(timestamp=moment):
            return f"{wanted.position} {iso(moment.timestamp())}"
        case ToOffsets(offsets=listed):
            return f"{wanted.position} ({len(listed)} listed, else Latest)"
        case _:
            return wanted.position


def end_wanted(source: Source) -> str:
    """What the manifest says about the end. The end is fixed again if this changes."""
    end = source.ending_offsets
    if end is None:
        return ""
    match end:
        case ToTimestamp(timestamp=moment):
            text = f"{end.position} {moment.astimezone(UTC).isoformat()}"
        case ToOffsets(offsets=listed):
            text = ", ".join(f"{o.topic}-{o.partition}:{o.offset}" for o in sorted(listed, key=str))
        case _:
            text = end.position
    text = f"{text} of {source.topic_pattern or ', '.join(sorted(source.topics))}"
    if len(text) > LONGEST_TEXT:
        return f"{describe_end(end)}, {hashlib.sha256(text.encode()).hexdigest()[:32]}"
    return text


def must_fix_end(state: SinkState, source: Source) -> bool:
    return source.ending_offsets is not None and (state.end is None or state.end.wanted != end_wanted(source))


def fix_end(
    state: SinkState, source: Source, topics: Mapping[str, Topic], ends: Mapping[TopicPartition, int], now: float
) -> SinkState:
    by_topic = {
        name: TopicEnd(topic.id, {p: ends[name, p] for p in topic.partitions if (name, p) in ends})
        for name, topic in topics.items()
    }
    return replace(state, end=FixedEnd(end_wanted(source), now, by_topic))


def already_past_end(state: SinkState) -> str:
    """A note about partitions of which the run reads nothing; empty if there are none."""
    ends = fixed_ends(state) or {}
    past = [
        f"{at[0]}-{at[1]} is at offset {state.offset(*at)} and its end is {end}"
        for at, end in sorted(ends.items())
        if state.offset(*at) > end
    ]
    if not past:
        return ""
    more = f" (and {len(past) - PARTITIONS_SHOWN} more partitions)" if len(past) > PARTITIONS_SHOWN else ""
    return f"{FIELD} is before where the sink is, so nothing is read: {', '.join(past[:PARTITIONS_SHOWN])}{more}"


def fixed_ends(state: SinkState) -> dict[TopicPartition, int] | None:
    """None in a run without endingOffsets. A topic that was recreated since then is left out."""
    if state.end is None:
        return None
    same = {
        name: end
        for name, end in state.end.topics.items()
        if name in state.topics and same_topic(end.id, state.topics[name].id)
    }
    return {
        (name, p): offset
        for name, end in same.items()
        for p, offset in end.offsets.items()
        if p in state.topics[name].partitions
    }


def left_to_end(state: SinkState) -> int | None:
    """Offsets below the end that are not committed; None in a run without endingOffsets."""
    ends = fixed_ends(state)
    return None if ends is None else sum(max(0, end - state.offset(*at)) for at, end in ends.items())


def within_end(changes: TopicChanges) -> TopicChanges:
    """What matters to a bounded run: offsets below the end, and problems of partitions that have not reached it."""
    ends = fixed_ends(changes.state)
    if ends is None:
        return changes
    state = changes.state

    def cut(found: Mapping[TopicPartition, Offsets]) -> dict[TopicPartition, Offsets]:
        limits = {at: ends.get(at, state.offset(*at)) for at in found}
        return {at: replace(o, stable=min(o.stable, limits[at]), end=min(o.end, limits[at])) for at, o in found.items()}

    problems = {at: p for at, p in changes.problems.items() if at in ends and state.offset(*at) < ends[at]}
    return replace(changes, known=cut(changes.known), seen=cut(changes.seen), problems=problems)
