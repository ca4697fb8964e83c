"""Repairs lost objects, whose uploads were aborted between commit and publish: written again, or recorded as gaps.

The state lists the lost objects, so nothing else waits for them. They are written again some at a time, and each time
committed and published like a flush. A partition that cannot be read waits by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from s3sink_job.base.errors import S3SinkError
from s3sink_job.commit.committer import Committer
from s3sink_job.commit.lost_objects import LostObject, Remainder, RepairPlan, plan_repair
from s3sink_job.flush.kafka_metadata import TopicPartition
from s3sink_job.flush.manifest import Manifest, ObjectEntry, Slice, SliceEntry, manifest_name
from s3sink_job.flush.partition_backoff import PartitionBackoff
from s3sink_job.flush.problem import Problem
from s3sink_job.kafka.admin import Admin
from s3sink_job.kafka.topics import Topics
from s3sink_job.report import logs
from s3sink_job.task.bad_records import LeftOut
from s3sink_job.task.committable import CommitCheck, abort_uploads
from s3sink_job.task.flush_job import FlushJob
from s3sink_job.task.routing import encodings_of
from s3sink_job.task.slice_result import SliceResult
from s3sink_job.task.task_settings import Rewrite

OBJECTS_PER_REPAIR = 200
"""Objects that are committed together. They stay, whatever happens to the next ones."""


@dataclass
class Repairs:
    flush_job: FlushJob
    topics: Topics
    backoff: PartitionBackoff
    clock: Callable[[], float]
    skip_lost: bool
    _manifests: dict[str, Manifest] = field(default_factory=dict)

    def repair_some(self, committer: Committer, admin: Admin, connection: Mapping[str, str]) -> Manifest | None:
        """Writes some lost objects again and commits them; the caller publishes. None if nothing could be done."""
        if not committer.state.lost:
            self._manifests.clear()
            self.backoff.keep_only(())
        for flush in committer.state.lost:
            due = [lost for lost in self._lost(committer, flush) if not self.backoff.held(lost.at)]
            if due and (again := self._repair(committer, flush, due[:OBJECTS_PER_REPAIR], admin, connection)):
                return again
        return None

    def all_given_up(self, committer: Committer) -> bool:
        """Whether every lost object that is left waits for a person, or was retried often enough."""
        lost = [one for flush in committer.state.lost for one in self._lost(committer, flush)]
        return all(one.at in self.backoff.problems and not self.backoff.will_retry(one.at) for one in lost)

    def _lost(self, committer: Committer, flush: str) -> list[LostObject]:
        if flush not in self._manifests:
            self._manifests[flush] = committer.ledger.manifest(flush)
        objects = self._manifests[flush].objects
        return [LostObject(index, objects[index]) for index in committer.state.lost[flush]]

    def _repair(
        self, committer: Committer, flush: str, due: list[LostObject], admin: Admin, connection: Mapping[str, str]
    ) -> Manifest | None:
        manifest, state, ledger = self._manifests[flush], committer.state, committer.ledger
        plan = plan_repair(state, manifest, due, admin, self.topics, self.clock(), skip_lost=self.skip_lost)
        for at, (problem, retryable) in plan.blocked.items():
            self._wait(at, problem, retryable=retryable)
        number = ledger.next_number(state)
        name = manifest_name(number, ledger.writer)
        results = self._write(committer, name, manifest, plan, admin, connection)
        written = _by_lost_object(results, plan.remainders)
        complete = [one for one in plan.remainders if self._is_complete(one, results, written, admin)]
        indexes = tuple(sorted(one.lost.index for one in complete))
        abort_uploads((e for index, entries in written.items() if index not in indexes for e in entries), ledger.bucket)
        if not complete:
            return None
        # It moves no offsets, so it has no slices.
        again = replace(
            committer.manifest(state, encodings_of(manifest), number=number, logs=plan.source_logs),
            letter_topic=manifest.letter_topic,
            objects=tuple(entry for index in indexes for entry in written.get(index, ())),
            gaps=tuple(gap for one in complete for gap in one.gaps),
            replaces=tuple(one.lost.entry.key for one in complete),
            mends={flush: indexes},
        )
        committer.commit(state, again)
        logs.warning("lost objects were written again", flush=flush, objects=len(again.objects), records=again.rows)
        return again

    def _write(
        self,
        committer: Committer,
        name: str,
        manifest: Manifest,
        plan: RepairPlan,
        admin: Admin,
        connection: Mapping[str, str],
    ) -> list[SliceResult]:
        committed = self._committed_slices(committer, manifest)
        slices = _slices(committed, plan.remainders)
        if not slices:
            return []
        state, ledger = committer.state, committer.ledger
        schemas = committer.schemas.known(state, {part.topic for part in slices})
        encodings = encodings_of(manifest)
        task = self.flush_job.task(tuple(slices), name, encodings, schemas, conditional=ledger.conditional)
        entries = [one.lost.entry for one in plan.remainders]
        buckets = {entry.topic: entry.bucket for entry in entries if not entry.letters}
        letters = next((entry.letters for entry in entries if entry.letters), "")
        left_out = {part: _left_out(committed, part) for part in slices}
        results = self.flush_job.rewrite(task, slices, left_out, letters, buckets, state, connection)
        return CommitCheck(state, plan.source_logs, admin, ledger.bucket).of_unchanged_logs(results)

    def _committed_slices(self, committer: Committer, manifest: Manifest) -> list[SliceEntry]:
        """Of the flush, or of the flushes that it wrote objects of again."""
        earlier = [committer.ledger.manifest(name) for name in manifest.mends]
        return [*manifest.slices, *(part for one in earlier for part in self._committed_slices(committer, one))]

    def _is_complete(
        self, remainder: Remainder, results: list[SliceResult], written: Mapping[int, list[ObjectEntry]], admin: Admin
    ) -> bool:
        """Whether everything that Kafka still has of the object was written. If not, its partition waits."""
        lost = remainder.lost
        if not remainder.empty:
            result = next((r for r in results if _contains(r.slice, remainder)), None)
            if result is None:
                return False  # the log changed while it was read: the next repair sees how
            if (failure := result.failure) is not None:
                text = f"writing the lost object {lost.entry.key} again failed: {failure.message}"
                self._wait(lost.at, Problem(failure.reason, text), retryable=failure.retryable)
                return False
            rows = sum(entry.rows for entry in written.get(lost.index, ()))
            if rows < lost.entry.rows and not remainder.gaps and (short := _too_short(lost.entry, rows, admin)):
                self._wait(lost.at, short, retryable=False)
                return False
        self.backoff.drop(lost.at)
        return True

    def _wait(self, at: TopicPartition, problem: Problem, *, retryable: bool) -> None:
        if self.backoff.problems.get(at) != problem:
            logs.warning("a lost object cannot be written again yet", reason=problem.reason, cause=problem.message)
        self.backoff.hold(at, problem, retryable=retryable)


def _slices(committed: Iterable[SliceEntry], remainders: Iterable[Remainder]) -> dict[Slice, tuple[Rewrite, ...]]:
    """One slice for the lost objects of each committed slice: its records are read once for all of them."""
    starts: dict[tuple[str, int, int], list[int]] = {}
    for part in committed:
        starts.setdefault((part.topic, part.generation, part.partition), []).append(part.start)
    grouped: dict[tuple[str, int, int, int], list[Remainder]] = {}
    for one in remainders:
        entry = one.lost.entry
        place = (entry.topic, entry.generation, entry.partition)
        began = max((start for start in starts.get(place, ()) if start <= entry.first), default=0)
        if not one.empty:
            grouped.setdefault((*place, began), []).append(one)
    slices = {}
    for (topic, generation, partition, _), own in grouped.items():
        start, stop = min(one.start for one in own), max(one.stop for one in own)
        slices[Slice(topic, generation, partition, start, stop, "Repair")] = tuple(_rewrite(one) for one in own)
    return slices


def _rewrite(one: Remainder) -> Rewrite:
    entry = one.lost.entry
    return Rewrite(entry.key, entry.group, one.start, one.stop - 1, letters=bool(entry.letters))


def _left_out(committed: Iterable[SliceEntry], part: Slice) -> LeftOut:
    """What became of the bad records of the range when it was committed."""
    place = (part.topic, part.generation, part.partition)
    own = [entry for entry in committed if (entry.topic, entry.generation, entry.partition) == place]
    skipped = frozenset(offset for entry in own for offset in entry.skipped)
    letters = frozenset(offset for entry in own for offset in entry.letters)
    inputs = next((entry.inputs for entry in own if entry.start <= part.start < entry.end), ())
    return LeftOut(skipped, letters, inputs)


def _contains(part: Slice, remainder: Remainder) -> bool:
    entry = remainder.lost.entry
    same = (part.topic, part.generation, part.partition) == (entry.topic, entry.generation, entry.partition)
    return same and part.start <= remainder.start and remainder.stop <= part.end


def _by_lost_object(results: Iterable[SliceResult], remainders: Iterable[Remainder]) -> dict[int, list[ObjectEntry]]:
    """The written objects, by the index of the lost object that they replace."""
    lost = [one.lost for one in remainders]
    found: dict[int, list[ObjectEntry]] = {}
    for entry in (entry for result in results for entry in result.objects):
        owner = next(one for one in lost if _replaces(entry, one.entry))
        found.setdefault(owner.index, []).append(entry)
    return found


def _replaces(new: ObjectEntry, old: ObjectEntry) -> bool:
    same = (new.topic, new.generation, new.partition, new.group, new.letters) == (
        old.topic,
        old.generation,
        old.partition,
        old.group,
        old.letters,
    )
    return same and old.first <= new.first and new.last <= old.last


def _too_short(entry: ObjectEntry, rows: int, admin: Admin) -> Problem | None:
    """None if Kafka may have removed records by compaction."""
    text = f"{entry.key} held {entry.rows} records when its upload was lost, but Kafka returned only {rows} of them"
    try:
        if admin.compacted([entry.topic]):
            return None
    except S3SinkError as error:
        return Problem("RepairFellShort", f"{text}. Whether the topic is compacted is not known: {error}")
    return Problem("RepairFellShort", f"{text}. Nothing of it was committed; retrying")
