"""Observes Kafka and commits what changed there: first contact, resets, recreated topics, truncated logs, gaps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from s3sink_api.spec import (
    EndingOffsets,
    FromEarliest,
    FromTimestamp,
    Reset,
    Spec,
    StartingOffsets,
    ToLatest,
    ToTimestamp,
)
from s3sink_job.base.errors import FinalError, TransientError
from s3sink_job.commit.committer import Committer
from s3sink_job.flush.ending_offsets import (
    already_past_end,
    ending_offsets,
    fix_end,
    fixed_ends,
    must_fix_end,
    within_end,
)
from s3sink_job.flush.kafka_metadata import Offsets, Topic, TopicPartition
from s3sink_job.flush.refresh import begin_run, describe_totals, emptied_topics, must_begin, replaced_totals
from s3sink_job.flush.resets import pending_reset, reset_topics
from s3sink_job.flush.starting_offsets import describe_start, start_topics, starting_offsets
from s3sink_job.flush.state import SinkState, Totals, Truncation
from s3sink_job.flush.topic_changes import TopicChanges, detect_topic_changes
from s3sink_job.flush.transitions import is_writing_run, record_reset
from s3sink_job.kafka.admin import Admin, KafkaUnavailable
from s3sink_job.kafka.connection import KafkaConnection
from s3sink_job.kafka.leaders import Leaders, source_logs
from s3sink_job.kafka.topics import Topics
from s3sink_job.report import logs
from s3sink_job.report.status import Reporter
from s3sink_job.task.routing import Routing


@dataclass(frozen=True)
class Observation:
    changes: TopicChanges
    truncations: tuple[Truncation, ...]
    """Logs that were found truncated just now, and that the sink resumed from."""


class Observer:
    def __init__(
        self,
        spec: Spec,
        kafka: KafkaConnection,
        routing: Routing,
        leaders: Leaders,
        reporter: Reporter,
        clock: Callable[[], float],
        run: str | None = None,
    ) -> None:
        """`run`: the id of the full refresh that this driver carries out; None in `mode: Append`."""
        self._run = run
        self._spec, self._kafka, self._routing, self._leaders = spec, kafka, routing, leaders
        self._reporter, self._clock = reporter, clock
        self.topics = Topics(spec.source, clock)
        self._log_ends: dict[TopicPartition, int] = {}
        """How far each log reached when it was last observed."""
        self._warned_without_id: set[str] = set()

    def observe(self, committer: Committer) -> Observation:
        """What is in Kafka. Whatever changed there is committed before anything is planned."""
        changes = self._routing.without_refused_topics(self._changes(committer))
        before = committer.state.truncations
        self._commit(committer, changes)
        # Only after the commit: until then the ends of a new log must not replace those of the old one.
        self._log_ends |= {at: o.end for at, o in changes.known.items() if at not in changes.problems}
        return Observation(within_end(changes), tuple(t for t in committer.state.truncations if t not in before))

    def _changes(self, committer: Committer) -> TopicChanges:
        admin = self._kafka.admin()
        topics = self.topics.find(admin, committer.state.topics)
        known = {name: topic for name, topic in topics.items() if topic is not None}
        self._routing.find_routes(admin.matches, {*known, *committer.state.topics})
        state = committer.state
        begins = self._run is not None and must_begin(state, self._run)
        # The manifest of a run does not change: what it says now is for the next one.
        reset = None if is_writing_run(state) else pending_reset(self._spec.reset, state)
        self._check_topics(topics, known, state, reset)
        seen = self._offsets(admin, known)
        notes = self._topics_without_id(known)
        if (reset or begins) and state.lost:
            count = sum(map(len, state.lost.values()))
            what = f"reset {reset.nonce!r}" if reset else f"the full refresh {self._run}"
            raise TransientError(
                f"{what} waits until {count} lost objects are written again or given up", reason="RepairUnderWay"
            )
        ended: tuple[str, ...] = ()
        if begins:
            state, started = self._begin_run(state, topics, known, seen, reset)
            notes += started
        elif reset or not state.contacted:
            state, started = self._start(state, known, seen, reset)
            notes += started
        if not is_writing_run(state):
            state, ended = self._fix_end(state, known, seen)
        if state != committer.state:
            committer.swap(state)
        ids = {name: topic.id for name, topic in known.items()}
        changes = detect_topic_changes(
            *(committer.state, topics, seen, self._log_ends),
            skip_lost=self._spec.source.on_data_loss == "Skip",
            now=self._clock(),
            gone=self.topics.gone,
            validated=self._leaders.validate(admin, committer.state, ids, seen),
            ends=fixed_ends(committer.state),
        )
        return replace(changes, notes=(*notes, *ended, *changes.notes))

    def _check_topics(
        self, topics: Mapping[str, Topic | None], known: Mapping[str, Topic], state: SinkState, reset: Reset | None
    ) -> None:
        if not topics and self._spec.ends:
            raise FinalError(self.topics.none_matches, reason="NoTopicMatches")
        begins = self._run is not None and must_begin(state, self._run)
        # A topic of a pattern that surely does not exist any more is an empty one.
        wanted = set(topics) - set(self.topics.gone) if begins else set(topics)
        if not wanted <= set(known) and (begins or not state.contacted or self._needs_all_topics(reset)):
            missing = ", ".join(sorted(wanted - set(known)))
            waits = f". The reset to {describe_start(reset.to)} waits for it" if reset else ""
            raise FinalError(
                f"spec.source.topics: no such topic on {self._spec.source.bootstrap_servers}: {missing}{waits}",
                reason="TopicMissing",
            )

    def _needs_all_topics(self, reset: Reset | None) -> bool:
        """A listed topic that is created after the reset starts at its earliest offset, whatever the reset says."""
        return reset is not None and bool(self._spec.source.topics) and not isinstance(reset.to, FromEarliest)

    def _offsets(self, admin: Admin, topics: Mapping[str, Topic]) -> dict[TopicPartition, Offsets]:
        committed = self._spec.source.isolation == "ReadCommitted"
        # Partitions without a leader are left out: a request for them would delay all the others.
        with_leader = [(n, p) for n, topic in topics.items() for p in topic.partitions if p not in topic.leaderless]
        seen = admin.offsets(with_leader, committed=committed)
        if admin.describe(topics) != topics:
            raise KafkaUnavailable("a topic was changed while its offsets were read; reading them again")
        return seen

    def _topics_without_id(self, topics: Mapping[str, Topic]) -> tuple[str, ...]:
        """A warning, once for each of them."""
        new = sorted({name for name, topic in topics.items() if not topic.id} - self._warned_without_id)
        self._warned_without_id.update(new)
        return tuple(
            f"the brokers have no id for topic {name} (Kafka before 2.8): if it is deleted and recreated, the sink may "
            "not notice, and skip records of the new topic"
            for name in new
        )

    def _start(
        self,
        state: SinkState,
        topics: Mapping[str, Topic],
        seen: Mapping[TopicPartition, Offsets],
        reset: Reset | None,
    ) -> tuple[SinkState, tuple[str, ...]]:
        """First contact, or a reset. The offsets are stored before anything is read, so that `Latest` means now."""
        _need_every_partition("a reset" if reset else "the first start", topics, seen)
        wanted = reset.to if reset else self._spec.source.starting_offsets
        at_time = self._offsets_at(wanted, seen)
        epochs = {at: offsets.leader_epoch for at, offsets in seen.items()}
        if reset is None:
            starts = starting_offsets(wanted, seen, at_time)
            return start_topics(state, topics, starts, self._clock(), epochs), ()
        starts = starting_offsets(wanted, seen, at_time, "spec.reset.to")
        names = ". New objects have the next generation in their names" if state.topics else ""
        note = f"reset {reset.nonce!r}: every topic begins at {describe_start(wanted)}{names}"
        return reset_topics(state, reset.nonce, topics, starts, self._clock(), epochs), (note,)

    def _begin_run(
        self,
        state: SinkState,
        topics: Mapping[str, Topic | None],
        known: Mapping[str, Topic],
        seen: Mapping[TopicPartition, Offsets],
        reset: Reset | None,
    ) -> tuple[SinkState, tuple[str, ...]]:
        """Begins a full refresh. It has to see every topic, since it replaces the objects of all of them."""
        assert self._run is not None
        _need_every_partition("a full refresh", known, seen)
        source, now = self._spec.source, self._clock()
        wanted = reset.to if reset else source.starting_offsets
        field = "spec.reset.to" if reset else "spec.source.startingOffsets"
        starts = starting_offsets(wanted, seen, self._offsets_at(wanted, seen), field)
        until = source.ending_offsets or ToLatest(position="Latest")
        ends = ending_offsets(until, seen, self._offsets_at(until, seen), now)
        former = replaced_totals(state)
        if former.records and not self._spec.allow_empty:
            self._refuse_empty(state, topics, known, starts, ends, former)
        epochs = {at: offsets.leader_epoch for at, offsets in seen.items()}
        state = begin_run(state, self._run, known, starts, ends, now, epochs)
        if reset:
            state = record_reset(state, reset.nonce, now)
        replaces = f"replaces {describe_totals(former)}" if former.objects else "replaces nothing: there is nothing yet"
        return state, (f"full refresh {self._run} begins at {describe_start(wanted)}. At its end it {replaces}",)

    def _refuse_empty(
        self,
        state: SinkState,
        topics: Mapping[str, Topic | None],
        known: Mapping[str, Topic],
        starts: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
        former: Totals,
    ) -> None:
        empty = [*emptied_topics(state, known, starts, ends), *sorted(set(topics) - set(known))]
        if empty:
            raise FinalError(
                f"Kafka has no records for the full refresh of {', '.join(empty)}. It would replace "
                f"{describe_totals(former)} without them. Nothing was changed. Set spec.allowEmpty to true if that is "
                "what you want",
                reason="RefreshEmpty",
            )

    def _fix_end(
        self, state: SinkState, topics: Mapping[str, Topic], seen: Mapping[TopicPartition, Offsets]
    ) -> tuple[SinkState, tuple[str, ...]]:
        """Once for a bounded run. An end that was fixed before stays, whatever Kafka has now."""
        source = self._spec.source
        if source.ending_offsets is None:
            return replace(state, end=None), ()
        if not must_fix_end(state, source):
            return state, ()
        _need_every_partition("fixing endingOffsets", topics, seen)
        now = self._clock()
        ends = ending_offsets(source.ending_offsets, seen, self._offsets_at(source.ending_offsets, seen), now)
        fixed = fix_end(state, source, topics, ends, now)
        note = already_past_end(fixed)
        return fixed, (note,) if note else ()

    def _offsets_at(
        self, wanted: StartingOffsets | EndingOffsets, seen: Mapping[TopicPartition, Offsets]
    ) -> dict[TopicPartition, int | None]:
        if not isinstance(wanted, FromTimestamp | ToTimestamp):
            return {}
        return self._kafka.admin().offsets_at(seen, int(wanted.timestamp.timestamp() * 1000))

    def _commit(self, committer: Committer, changes: TopicChanges) -> None:
        """New partitions, new generations, gaps."""
        for note in changes.notes:
            logs.warning(note)
        if changes.gaps:
            for gap in changes.gaps:
                logs.warning(
                    "Kafka lost offsets before they were written; recorded as a gap",
                    topic=gap.topic,
                    partition=gap.partition,
                    start=gap.start,
                    end=gap.end,
                    reason=gap.reason,
                )
            encodings = self._routing.encodings({gap.topic for gap in changes.gaps})
            moved = [(gap.topic, gap.partition) for gap in changes.gaps if gap.moves]
            read = source_logs(changes.state, (at for at in moved if at in changes.known), changes.known)
            manifest = committer.manifest(changes.state, encodings, gaps=changes.gaps, logs=read)
            committer.commit(changes.state, manifest)
            self._reporter.lost(changes.gaps)
        elif changes.state != committer.state:
            committer.swap(changes.state)


def _need_every_partition(what: str, topics: Mapping[str, Topic], seen: Mapping[TopicPartition, Offsets]) -> None:
    silent = [f"{n}-{p}" for n, topic in topics.items() for p in topic.partitions if (n, p) not in seen]
    if silent:
        raise KafkaUnavailable(f"{what} needs every partition, but Kafka has no offsets of {', '.join(silent)}")
