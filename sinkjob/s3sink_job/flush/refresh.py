"""`mode: FullRefresh`: a run writes everything again, and replaces what the sink wrote before.

The flushes of a run are those of the chain of manifests after `since`. They are committed at once and published only
when all of them are written. Until one swap makes the run current, the former objects are the sink's output: a run
that is broken off before leaves no trace. Only after that swap the former objects are removed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from s3sink_job.base.errors import ProtocolError
from s3sink_job.flush.kafka_metadata import Offsets, Topic, TopicPartition
from s3sink_job.flush.resets import restart_topics
from s3sink_job.flush.state import (
    FixedEnd,
    PartitionState,
    Refresh,
    RefreshPhase,
    SinkState,
    TopicEnd,
    TopicState,
    Totals,
)
from s3sink_job.flush.transitions import refuse_unpublished

PARTITIONS_SHOWN = 5


def must_begin(state: SinkState, run: str) -> bool:
    """Whether this run has neither begun nor ended."""
    return state.refresh is None or (state.refresh.phase is RefreshPhase.DONE and state.refresh.run != run)


def must_abandon(state: SinkState, run: str | None) -> bool:
    """Whether another run was broken off while it was writing. `run` is None in `mode: Append`."""
    refresh = state.refresh
    return refresh is not None and refresh.phase is RefreshPhase.WRITING and refresh.run != run


def is_publishing_run(state: SinkState) -> bool:
    return state.refresh is not None and state.refresh.phase is RefreshPhase.PUBLISHING


def is_removing(state: SinkState) -> bool:
    return state.refresh is not None and state.refresh.phase is RefreshPhase.REMOVING


def is_done(state: SinkState, run: str) -> bool:
    return state.refresh is not None and state.refresh.phase is RefreshPhase.DONE and state.refresh.run == run


def begin_run(
    state: SinkState,
    run: str,
    topics: Mapping[str, Topic],
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    now: float,
    epochs: Mapping[TopicPartition, int | None] | None = None,
) -> SinkState:
    """Gives every topic its next generation, and fixes where the run ends: a restart does not move it."""
    if not must_begin(state, run):
        raise ProtocolError(f"run {run} cannot begin: {state.refresh}")
    refuse_unpublished(state)
    before = state.refresh or Refresh("", 0, RefreshPhase.DONE, now, None)
    begun = restart_topics(state, topics, starts, now, epochs)
    by_topic = {
        name: TopicEnd(topic.id, {p: ends[name, p] for p in topic.partitions}) for name, topic in topics.items()
    }
    refresh = Refresh(
        run,
        before.number + 1,
        RefreshPhase.WRITING,
        now,
        since=state.last,
        replaced=before.replaced,
        former=state.topics,
        generations={name: begun.topics[name].generation for name in topics},
        totals=state.totals,
        totals_replaced=before.totals_replaced,
        replays=before.replays,
    )
    return replace(begun, end=FixedEnd(f"run {run}", now, by_topic), refresh=refresh)


def abandon_run(state: SinkState) -> SinkState:
    """Goes back to the former topics. The flushes of the run leave the chain, as if they had never been committed."""
    refresh = _in_phase(state, RefreshPhase.WRITING)
    topics = {name: _resumed(topic, refresh.former.get(name)) for name, topic in state.topics.items()}
    left = Refresh(
        "",
        refresh.number,
        RefreshPhase.DONE,
        refresh.began,
        since=refresh.replaced,
        replaced=refresh.replaced,
        totals_replaced=refresh.totals_replaced,
        replays=refresh.replays,
    )
    return replace(
        state,
        last=refresh.since,
        topics=topics,
        contacted=bool(refresh.former),
        totals=refresh.totals,
        recent_gaps=tuple(gap for gap in state.recent_gaps if gap.at < refresh.began),
        end=None,
        refresh=left,
    )


def _resumed(topic: TopicState, former: TopicState | None) -> TopicState:
    """In a generation of its own, so that neither generations nor offsets ever go back.

    A topic that the sink did not read before begins at its earliest offset.
    """
    if former is None:
        return TopicState(topic.id, topic.generation + 1, {}, topic.schema)
    partitions = {number: _from_offset(at) for number, at in former.partitions.items()}
    return TopicState(former.id, topic.generation + 1, partitions, topic.schema)


def _from_offset(at: PartitionState) -> PartitionState:
    return replace(at, start=at.offset)


def publish_run(state: SinkState) -> SinkState:
    """Everything is written: the flushes of the run are to be published now."""
    refresh = _in_phase(state, RefreshPhase.WRITING)
    return replace(state, refresh=replace(refresh, phase=RefreshPhase.PUBLISHING, cursor=refresh.since))


def published_of_run(state: SinkState, flush: str, lost: Sequence[int] = ()) -> SinkState:
    """The flush is published, except for objects whose uploads somebody aborted."""
    refresh = _in_phase(state, RefreshPhase.PUBLISHING)
    more = {flush: tuple(lost)} if lost else {}
    return replace(state, lost={**state.lost, **more}, refresh=replace(refresh, cursor=flush))


def make_current(state: SinkState, now: float, replays: str | None) -> SinkState:
    """The commit point of a run. From here on the former objects may be removed.

    `replays`: the last flush of a replay, which wrote dead letters of the former generation.
    """
    refresh = _in_phase(state, RefreshPhase.PUBLISHING)
    refuse_unpublished(state)
    current = replace(
        refresh, phase=RefreshPhase.REMOVING, cursor=refresh.since, former={}, current_at=now, replays_until=replays
    )
    return replace(state, end=None, refresh=current)


def removed_from(state: SinkState, cursor: str | None, unremoved: int) -> SinkState:
    """The objects of all flushes before the cursor are still there. `unremoved` could not be deleted."""
    refresh = _in_phase(state, RefreshPhase.REMOVING)
    return replace(state, refresh=replace(refresh, cursor=cursor, unremoved=refresh.unremoved + unremoved))


def finish_run(state: SinkState) -> SinkState:
    refresh = _in_phase(state, RefreshPhase.REMOVING)
    done = replace(
        refresh,
        phase=RefreshPhase.DONE,
        cursor=None,
        replaced=refresh.since,
        totals_replaced=refresh.totals,
        replays=refresh.replays_until,
    )
    return replace(state, refresh=done)


def as_if_finished(state: SinkState) -> SinkState:
    """What follows once a run that was publishing or removing is finished, which any driver does first."""
    if is_publishing_run(state):
        state = make_current(replace(state, lost={}), state.refresh.began if state.refresh else 0.0, None)
    return finish_run(state) if is_removing(state) else state


def _in_phase(state: SinkState, phase: RefreshPhase) -> Refresh:
    if state.refresh is None or state.refresh.phase is not phase:
        raise ProtocolError(f"no full refresh is {phase}: {state.refresh}")
    return state.refresh


def visible_state(state: SinkState) -> SinkState:
    """The sink without a run that is not current yet: what its readers may rely on."""
    refresh = state.refresh
    if refresh is None or refresh.phase not in {RefreshPhase.WRITING, RefreshPhase.PUBLISHING}:
        return state
    before = replace(refresh, run="", phase=RefreshPhase.DONE, since=refresh.replaced, former={}, cursor=None)
    return replace(
        state,
        last=refresh.since,
        topics=refresh.former,
        totals=refresh.totals,
        lost={},
        publishing=None,
        end=None,
        refresh=before,
    )


def unpublished_since(state: SinkState) -> tuple[str | None, str | None]:
    """The last flush of an unfinished run, and the flush before the first one of it that is not published.

    Both are the same if there is none.
    """
    refresh = state.refresh
    if refresh is None or refresh.phase not in {RefreshPhase.WRITING, RefreshPhase.PUBLISHING}:
        return state.last, state.last
    return state.last, refresh.since if refresh.phase is RefreshPhase.WRITING else refresh.cursor


def last_replaced(state: SinkState) -> str | None:
    """The last flush whose objects are no longer the sink's output; None if all are."""
    refresh = state.refresh
    if refresh is None:
        return None
    return refresh.since if refresh.phase is RefreshPhase.REMOVING else refresh.replaced


def last_replaced_replay(state: SinkState) -> str | None:
    """The same for flushes of replays."""
    refresh = state.refresh
    if refresh is None:
        return None
    return refresh.replays_until if refresh.phase is RefreshPhase.REMOVING else refresh.replays


def replaced_totals(state: SinkState) -> Totals:
    """What a run replaces, or what one that begins now would replace."""
    refresh = state.refresh
    until = refresh.totals if refresh and refresh.unfinished else state.totals
    return until.since(refresh.totals_replaced if refresh else Totals())


def written_totals(state: SinkState) -> Totals:
    """What the run has written so far."""
    return state.totals.since(state.refresh.totals if state.refresh else Totals())


def describe_totals(totals: Totals) -> str:
    return f"{totals.objects:,} objects with {totals.records:,} records, {totals.bytes:,} bytes"


def emptied_topics(
    state: SinkState,
    topics: Mapping[str, Topic],
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> list[str]:
    """Topics that the sink has read before, and of which a run would read nothing."""
    found = []
    for name, topic in topics.items():
        known = state.topics.get(name)
        read = known is not None and any(at.offset > 0 for at in known.partitions.values())
        if read and all(starts[name, p] >= ends[name, p] for p in topic.partitions):
            found.append(name)
    return sorted(found)


def incomplete(state: SinkState, known: Mapping[TopicPartition, Offsets]) -> str:
    """Why the run must not become current; empty if everything up to its end is written."""
    refresh = _in_phase(state, RefreshPhase.WRITING)
    found = []
    for name, end in sorted((state.end.topics if state.end else {}).items()):
        if state.topics[name].generation != refresh.generations[name]:
            found.append(f"topic {name} was recreated or its log truncated during the run")
            continue
        for partition, offset in sorted(end.offsets.items()):
            at = state.topics[name].partitions[partition].offset
            if (name, partition) not in known:
                found.append(f"{name}-{partition} is not in Kafka any more")
            elif at < offset:
                found.append(f"{name}-{partition} is at offset {at} and its end is {offset}")
    more = f" (and {len(found) - PARTITIONS_SHOWN} more)" if len(found) > PARTITIONS_SHOWN else ""
    return ", ".join(found[:PARTITIONS_SHOWN]) + more
