"""Uploads that somebody aborted between commit and publish: written again from Kafka, or recorded as gaps.

The state names the objects that were lost, so nothing else waits for them. They are written again some at a time,
each time committed and published like any flush. A partition that cannot be read waits by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from s3sink_job.engine.books import Books
from s3sink_job.engine.holds import Holds
from s3sink_job.engine.lost import Findings, Left, Lost, what_is_left
from s3sink_job.engine.routing import encodings_of
from s3sink_job.engine.topics import Topics
from s3sink_job.engine.write import Rewrite, SliceResult
from s3sink_job.engine.writing import Writing, abandon
from s3sink_job.errors import S3SinkError
from s3sink_job.flush.manifest import Manifest, ObjectEntry, Slice, manifest_name
from s3sink_job.flush.plan import TopicPartition
from s3sink_job.flush.problem import Problem
from s3sink_job.kafka.admin import Admin
from s3sink_job.report import logs

AT_A_TIME = 200
"""Objects that are committed together: those that came back stay, whatever becomes of the next ones."""


@dataclass
class Repairs:
    writing: Writing
    topics: Topics
    holds: Holds
    clock: Callable[[], float]
    skip_lost: bool
    _manifests: dict[str, Manifest] = field(default_factory=dict)

    def mend(self, books: Books, admin: Admin, connection: Mapping[str, str]) -> Manifest | None:
        """Writes some lost objects again and commits them; the caller publishes. None if nothing could be done."""
        if not books.state.lost:
            self._manifests.clear()
            self.holds.keep_only(())
        for flush in books.state.lost:
            due = [lost for lost in self._lost(books, flush) if not self.holds.held(lost.at)]
            if due and (again := self._mend(books, flush, due[:AT_A_TIME], admin, connection)):
                return again
        return None

    def stuck(self, books: Books) -> bool:
        """Whether everything that is left waits for a person, or was tried as often as it should be."""
        lost = [one for flush in books.state.lost for one in self._lost(books, flush)]
        return all(one.at in self.holds.problems and not self.holds.will_retry(one.at) for one in lost)

    def _lost(self, books: Books, flush: str) -> list[Lost]:
        if flush not in self._manifests:
            self._manifests[flush] = books.ledger.manifest(flush)
        objects = self._manifests[flush].objects
        return [Lost(place, objects[place]) for place in books.state.lost[flush]]

    def _mend(
        self, books: Books, flush: str, due: list[Lost], admin: Admin, connection: Mapping[str, str]
    ) -> Manifest | None:
        manifest, state, ledger = self._manifests[flush], books.state, books.ledger
        found = what_is_left(state, manifest, due, admin, self.topics, self.clock(), skip_lost=self.skip_lost)
        for at, (problem, retryable) in found.waiting.items():
            self._wait(at, problem, retryable=retryable)
        number = ledger.next_number(state)
        name = manifest_name(number, ledger.writer)
        results = self._write(books, name, manifest, found, admin, connection)
        written = _by_place(results, found.left)
        whole = [left for left in found.left if self._is_whole(left, results, written, admin)]
        places = tuple(sorted(left.lost.place for left in whole))
        short = [entry for place, entries in written.items() if place not in places for entry in entries]
        abandon(short, ledger.bucket)
        if not whole:
            return None
        # It moves no offsets, so it has no slices.
        again = replace(
            books.manifest(state, encodings_of(manifest), number=number, logs=found.logs),
            objects=tuple(entry for place in places for entry in written.get(place, ())),
            gaps=tuple(gap for left in whole for gap in left.gaps),
            replaces=tuple(left.lost.entry.key for left in whole),
            mends={flush: places},
        )
        books.commit(state, again)
        logs.warning("lost objects written again", flush=flush, objects=len(again.objects), records=again.rows)
        return again

    def _write(
        self,
        books: Books,
        name: str,
        manifest: Manifest,
        found: Findings,
        admin: Admin,
        connection: Mapping[str, str],
    ) -> list[SliceResult]:
        slices = _in_slices(manifest, found.left)
        if not slices:
            return []
        state, ledger = books.state, books.ledger
        schemas = books.schemas.known(state, {part.topic for part in slices})
        task = self.writing.task(tuple(slices), name, encodings_of(manifest), schemas, conditional=ledger.conditional)
        buckets = {left.lost.entry.topic: left.lost.entry.bucket for left in found.left}
        results = self.writing.rewrite(task, slices, buckets, state, connection)
        return self.writing.keep_current(results, state, admin, ledger.bucket, found.logs)

    def _is_whole(
        self, left: Left, results: list[SliceResult], written: Mapping[int, list[ObjectEntry]], admin: Admin
    ) -> bool:
        """Whether the object came back with all that is left of it. One that did not waits."""
        lost = left.lost
        if left.start < left.stop:
            result = next((r for r in results if _holds(r.slice, left)), None)
            if result is None:
                return False  # the log changed while it was read: the next look says how
            if (failure := result.failure) is not None:
                text = f"writing the lost object {lost.entry.key} again: {failure.message}"
                self._wait(lost.at, Problem(failure.reason, text), retryable=failure.retryable)
                return False
            rows = sum(entry.rows for entry in written.get(lost.place, ()))
            if rows < lost.entry.rows and not left.gaps and (short := _fell_short(lost.entry, rows, admin)):
                self._wait(lost.at, short, retryable=False)
                return False
        self.holds.drop(lost.at)
        return True

    def _wait(self, at: TopicPartition, problem: Problem, *, retryable: bool) -> None:
        if self.holds.problems.get(at) != problem:
            logs.warning("a lost object cannot be written again yet", reason=problem.reason, cause=problem.message)
        self.holds.hold(at, problem, retryable=retryable)


def _in_slices(manifest: Manifest, every: Iterable[Left]) -> dict[Slice, tuple[Rewrite, ...]]:
    """One slice for the lost objects of each slice that was committed: its records are read once for all of them."""
    starts: dict[tuple[str, int, int], list[int]] = {}
    for part in manifest.slices:
        starts.setdefault((part.topic, part.generation, part.partition), []).append(part.start)
    grouped: dict[tuple[str, int, int, int], list[Left]] = {}
    for left in every:
        entry = left.lost.entry
        place = (entry.topic, entry.generation, entry.partition)
        own = max((start for start in starts.get(place, ()) if start <= entry.first), default=0)
        if left.start < left.stop:
            grouped.setdefault((*place, own), []).append(left)
    slices = {}
    for (topic, generation, partition, _), own_left in grouped.items():
        start, stop = min(left.start for left in own_left), max(left.stop for left in own_left)
        rewrites = [Rewrite(left.lost.entry.key, left.lost.entry.group, left.start, left.stop - 1) for left in own_left]
        slices[Slice(topic, generation, partition, start, stop, "Repair")] = tuple(rewrites)
    return slices


def _holds(part: Slice, left: Left) -> bool:
    entry = left.lost.entry
    same = (part.topic, part.generation, part.partition) == (entry.topic, entry.generation, entry.partition)
    return same and part.start <= left.start and left.stop <= part.end


def _by_place(results: Iterable[SliceResult], every: Iterable[Left]) -> dict[int, list[ObjectEntry]]:
    """What was written, by the lost object that it replaces."""
    lost = [left.lost for left in every]
    found: dict[int, list[ObjectEntry]] = {}
    for entry in (entry for result in results for entry in result.objects):
        owner = next(one for one in lost if _replaces(entry, one.entry))
        found.setdefault(owner.place, []).append(entry)
    return found


def _replaces(new: ObjectEntry, old: ObjectEntry) -> bool:
    same = (new.topic, new.generation, new.partition, new.group) == (
        old.topic,
        old.generation,
        old.partition,
        old.group,
    )
    return same and old.first <= new.first and new.last <= old.last


def _fell_short(entry: ObjectEntry, rows: int, admin: Admin) -> Problem | None:
    """Unless Kafka may have dropped records by itself."""
    text = f"{entry.key} held {entry.rows} records when its upload vanished, and Kafka gives only {rows} of them"
    try:
        if admin.compacted([entry.topic]):
            return None
    except S3SinkError as error:
        return Problem("RepairFellShort", f"{text}; whether the topic is compacted cannot be told: {error}")
    return Problem("RepairFellShort", f"{text}: nothing of it was committed, and it is tried again")
