"""`s3sink replay`: writes dead letters into the sink's output, once.

A replay has a state, an epoch and flush manifests of its own, in a folder beside the state of the sink. So it may run
beside a driver, a replay that was broken off goes on, and of two replays at once the later one fences the other. Its
flushes are written, committed and published like those of a driver. Their manifests list the offsets of the dead
letters in each object: these are replayed, all others are not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from s3sink_api.spec import S3Sink
from s3sink_job.base.errors import FinalError
from s3sink_job.base.secrets import Secrets
from s3sink_job.commit.committer import Committer
from s3sink_job.commit.ledger import Ledger
from s3sink_job.commit.ownership import check_owner
from s3sink_job.commit.schemas import Schemas
from s3sink_job.driver.preview import DryRunCommitter
from s3sink_job.driver.takeover import adopt_from, check_store
from s3sink_job.flush.state import SinkState
from s3sink_job.proof.flush_history import PartitionGeneration, WrittenObject
from s3sink_job.proof.kafka_records import KafkaAccess
from s3sink_job.replay.letters import EVERY_LETTER, LetterGroup, Selection, StoredLetter, grouped
from s3sink_job.replay.outstanding import Outstanding, outstanding
from s3sink_job.replay.report import ReplayReport
from s3sink_job.replay.stored_letters import letters_in, split_missing
from s3sink_job.replay.topic_letters import LetterTopicReader, Others
from s3sink_job.replay.writer import LetterWriter
from s3sink_job.report.status import Reporter
from s3sink_job.stores.bucket import Bucket
from s3sink_job.task.routing import Routing
from s3sink_job.task.slice_tasks import SliceTasks

GROUPS_AT_ONCE = 50
BYTES_AT_ONCE = 64 * 2**20
"""Of keys and values that are committed together."""


@dataclass(frozen=True)
class Replay:
    sink: S3Sink
    secrets: Secrets
    bucket: Bucket
    ledger: Ledger
    """Of the sink. A replay only reads it, and adds schemas, which are named by their content."""
    kafka: Callable[[], KafkaAccess]
    """Used for dead letters in topics, and for routes with a pattern."""
    selection: Selection = EVERY_LETTER
    ignore_others: bool = False
    on_progress: Callable[[ReplayReport], None] = lambda report: None
    clock: Callable[[], float] = time.time

    def preview(self) -> ReplayReport:
        """What a replay would do. Writes nothing."""
        state, replays = self._sink_state(), self.ledger.replays()
        stored = replays.load_checked(adopt_from(self.sink.metadata)) or SinkState(owner=replays.owner)
        committer = DryRunCommitter(replays, stored, self.clock)
        writer = self._writer(committer, state, ReplayReport(self.sink.id, dry_run=True))
        return self._run(state, writer, writer.preview)

    def run(self) -> ReplayReport:
        state, report = self._sink_state(), ReplayReport(self.sink.id, dry_run=False)
        probed = check_store(self.sink, Routing(self.sink.spec), self.bucket, Reporter())
        replays = self.ledger.replays(conditional=probed.fault is None)
        committer = Committer(replays, replays.take_over(adopt_from(self.sink.metadata)), self.clock)
        if committer.state.publishing is not None:
            manifest = replays.manifest(committer.state.publishing)
            report.finished = manifest.rows - sum(entry.rows for entry in committer.publish(manifest))
        writer = self._writer(committer, state, report)
        writer.tasks.longest_segment = probed.longest_segment
        return self._run(state, writer, writer.write)

    def _sink_state(self) -> SinkState:
        state = self.ledger.load()
        if state is None:
            raise self.ledger.never_ran()
        check_owner(self.ledger.state_object.url, state.owner, self.ledger.owner, adopt_from(self.sink.metadata))
        return state

    def _writer(self, committer: Committer, state: SinkState, report: ReplayReport) -> LetterWriter:
        routing = Routing(self.sink.spec)
        routing.check()
        # Patterns are Java's. Java starts only if a route has one.
        routing.find_routes(lambda pattern, topic: self.kafka().admin.matches(pattern, topic), state.topics)  # noqa: PLW0108
        tasks = SliceTasks(self.sink, self.secrets, routing)
        return LetterWriter(tasks, committer, state, Schemas(self.ledger), report, self.clock)

    def _run(self, state: SinkState, writer: LetterWriter, work: Callable[[list[LetterGroup]], None]) -> ReplayReport:
        found, report = outstanding(self.ledger, state, self.sink.id), writer.report
        report.outstanding, report.without_headers = found.readable + found.without_headers, found.without_headers
        there, missing = split_missing(self.bucket, self.sink.id, found.objects)
        report.missing = [self.bucket.url(written.entry.key) for written in missing]
        topics = [LetterTopicReader(self.kafka(), self.sink, name, found) for name in found.topics]
        self._refuse_others(topics, report)
        for groups in _batches(self._wanted(found, self._letters(there, topics), report)):
            work(groups)
            self.on_progress(report)
        report.gone = found.readable - report.read
        return report

    def _refuse_others(self, topics: list[LetterTopicReader], report: ReplayReport) -> None:
        others = sum((topic.others() for topic in topics), Others())
        if others.count and not self.ignore_others:
            more = f" ({others.count - 1:,} more records are not this sink's)" if others.count > 1 else ""
            raise FinalError(
                f"{others.first}{more}. Nothing was replayed. To pass over such records, use --ignore-others",
                reason="ForeignLetters",
            )
        report.others = others.count

    def _letters(self, objects: list[WrittenObject], topics: list[LetterTopicReader]) -> Iterator[list[StoredLetter]]:
        for written in objects:
            yield letters_in(self.bucket, self.sink.id, written)
        for topic in topics:
            yield from topic.parts()

    def _wanted(
        self, found: Outstanding, parts: Iterable[list[StoredLetter]], report: ReplayReport
    ) -> Iterator[LetterGroup]:
        seen: set[tuple[PartitionGeneration, int]] = set()
        for letters in parts:
            own = [one for one in letters if found.has(one.place, one.offset) and (one.place, one.offset) not in seen]
            # The same dead letter can be in a topic twice: see docs/bad-records.md.
            seen.update((one.place, one.offset) for one in own)
            report.read = len(seen)
            selected = [one for one in own if self.selection.takes(one)]
            report.filtered += len(own) - len(selected)
            yield from grouped(selected)


def _batches(groups: Iterable[LetterGroup]) -> Iterator[list[LetterGroup]]:
    """Groups that are committed together."""
    batch: list[LetterGroup] = []
    size = 0
    for letters in groups:
        batch.append(letters)
        size += letters.size
        if len(batch) >= GROUPS_AT_ONCE or size >= BYTES_AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
