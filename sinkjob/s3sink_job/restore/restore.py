"""`s3sink restore`: sends the records in a sink's objects to topics, once each, and proves it.

The order matters. The progress object pins what is sent. Then the consumer group of the restore gets its first
positions, and the object says so. Only then is anything sent, each chunk in a transaction that moves the position. So
whatever is killed, a position that is missing means that Kafka has dropped it, never that nothing was sent.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from s3sink_api.spec import S3Sink
from s3sink_job.base.errors import FinalError, TransientError
from s3sink_job.base.secrets import Secrets
from s3sink_job.base.spill import SpillPlace, spill_folder
from s3sink_job.commit.ledger import Ledger
from s3sink_job.flush.refresh import visible_state
from s3sink_job.flush.state import Owner, SinkState, same_topic
from s3sink_job.kafka.topic_settings import cluster_id
from s3sink_job.proof.kafka_records import KafkaAccess
from s3sink_job.restore.plan import RestorePlan, RestoreSlice, Selection, make_plan
from s3sink_job.restore.positions import Positions, total_rows
from s3sink_job.restore.progress import FOLDER, ProgressObject, RestoreProgress
from s3sink_job.restore.reading_task import ReadingTask, TakenTimes, chosen, stored_records
from s3sink_job.restore.report import RestoreReport
from s3sink_job.restore.sending import Sending
from s3sink_job.restore.source import Source, read_source
from s3sink_job.restore.target import Targets, TargetTopic, refuse_records
from s3sink_job.restore.topic_check import deleted_since, differences, read_checksums
from s3sink_job.stores.bucket import Bucket

SAMPLED = 16
"""Slices whose first object is read before anything is sent, to find records that are too old."""
STORED_EVERY = 10.0
"""Seconds between two updates of the progress object."""


ALL = Selection()


@dataclass(frozen=True)
class RestoreOptions:
    selection: Selection = ALL
    targets: Mapping[str, str] = field(default_factory=dict)
    by_key: bool = False
    append: bool = False
    accept_losses: bool = False
    replication: int | None = None
    rate: int | None = None
    run_id: str = ""
    """Empty: made of what is asked for, so that the same command resumes."""
    owner: Owner | None = None
    """The sink whose objects they are, where it is not the manifest's. An empty cluster stands for any."""

    def to_doc(self) -> dict[str, Any]:
        """What decides on the records that are sent, and where to."""
        doc = {"selection": asdict(self.selection), "targets": dict(self.targets), "by_key": self.by_key}
        found: dict[str, Any] = json.loads(json.dumps(doc))
        return found


@dataclass
class Restore:
    sink: S3Sink
    secrets: Secrets
    bucket: Bucket
    ledger: Ledger
    """Of the sink whose objects are restored."""
    kafka: KafkaAccess
    """Of the cluster that gets the records."""
    options: RestoreOptions
    on_progress: Callable[[int, int], None] = lambda sent, rows: None
    """Called with the rows sent so far, and all rows."""
    say: Callable[[str], None] = lambda text: None
    """Called with what has to be known before anything is sent."""
    clock: Callable[[], float] = time.time

    def run(self, *, dry_run: bool = False) -> RestoreReport:
        state = self._state()
        self._run = self.options.run_id or self._default_run_id(state)
        self._object = ProgressObject(self.bucket, f"{self.ledger.folder}/{FOLDER}/{self._run}/progress.json")
        resumed = self._resumed(self._object.load())
        source = read_source(self.ledger, state, resumed)
        plan = self._plan(source)
        report = RestoreReport(
            sink=str(state.owner),
            run=self._run,
            rows=plan.rows,
            objects=plan.objects,
            topics=sorted(plan.topics),
            losses=list(plan.losses),
            absent=list(plan.absent),
            dry_run=dry_run,
        )
        if resumed is not None and resumed.finished_at is not None:
            report.finished_before, report.records = resumed.finished_at, resumed.records or 0
        if report.finished_before is not None or not plan.slices:
            return report
        targets = Targets(self.kafka.admin, plan, self._sizes(state))
        found = targets.find(create=False, replication=None)
        if resumed is None and not self.options.append:
            refuse_records(targets.ends(found))
        self._refuse_losses(plan, dry_run=dry_run)
        self._check_first_objects(plan, found)
        report.created = targets.missing
        report.sent_before = resumed.sent if resumed is not None else 0
        if dry_run:
            return report
        found = targets.find(create=True, replication=self.options.replication)
        progress = resumed or self._begin(source, plan, targets, found)
        return self._send(plan, targets, found, progress, report)

    def _state(self) -> SinkState:
        state = self.ledger.load()
        if state is None:
            raise self.ledger.never_ran()
        wanted = self.options.owner or self.ledger.owner
        if not state.owner.same_sink(replace(wanted, cluster=wanted.cluster or state.owner.cluster)):
            raise FinalError(
                f"{self.ledger.state_object.url} belongs to the sink {state.owner}, not to {wanted}: its objects are "
                f"restored only with --from {state.owner}",
                reason="ForeignState",
            )
        return state

    def _default_run_id(self, state: SinkState) -> str:
        doc = {**self.options.to_doc(), "sink": str(state.owner), "kafka": cluster_id(self.kafka.admin)}
        return hashlib.sha256(json.dumps(doc, sort_keys=True).encode()).hexdigest()[:12]

    def _plan(self, source: Source) -> RestorePlan:
        plan = make_plan(
            *(source.history, self.options.selection, self.options.targets, source.logs), by_key=self.options.by_key
        )
        return replace(plan, losses=(*plan.losses, *source.unpublished))

    def _resumed(self, progress: RestoreProgress | None) -> RestoreProgress | None:
        """The former try, if its topics are still the same. In recreated ones it begins anew."""
        if progress is None:
            return None
        if progress.options != self.options.to_doc():
            raise FinalError(
                f"restore {self._run} was begun with other options: {json.dumps(progress.options)}. "
                "Give the same ones, or another --run-id",
                reason="RunDiffers",
            )
        found = self.kafka.admin.describe(sorted(progress.topics))
        same = all((topic := found[name]) and same_topic(topic.id, old) for name, old in progress.topics.items())
        return progress if same else None

    def _refuse_losses(self, plan: RestorePlan, *, dry_run: bool) -> None:
        if not plan.losses:
            return
        if not (self.options.accept_losses or dry_run):
            listed = "".join(f"\n  - {loss}" for loss in plan.losses)
            raise FinalError(
                f"records would not come back as they were:{listed}\nNothing was sent. If that is good enough, use "
                "--accept-losses",
                reason="RestoreLosses",
            )
        for loss in plan.losses:
            self.say(f"lost: {loss}")

    def _check_first_objects(self, plan: RestorePlan, found: Mapping[str, TargetTopic]) -> None:
        """The oldest records mostly come first."""
        for part in plan.slices[:SAMPLED]:
            records = stored_records(self.bucket, part.objects[0], part)
            if part.topic in found:
                wanted = chosen(records, self.options.selection, round(self.clock() * 1000))
                self._times(found)[part.topic].check(wanted.column("timestamp"), str(part))

    def _sizes(self, state: SinkState) -> dict[str, int]:
        """By target: how many partitions the topic had. The last ones may be empty."""
        targets = self.options.targets
        return {targets.get(name, name): len(topic.partitions) for name, topic in visible_state(state).topics.items()}

    def _times(self, found: Mapping[str, TargetTopic]) -> dict[str, TakenTimes]:
        now = round(self.clock() * 1000)
        return {name: target.taken_times(now) for name, target in found.items()}

    def _begin(
        self, source: Source, plan: RestorePlan, targets: Targets, found: Mapping[str, TargetTopic]
    ) -> RestoreProgress:
        base: dict[str, dict[str, int]] = {name: {} for name in found}
        for (topic, partition), offsets in targets.ends(found).items():
            base[topic][str(partition)] = offsets.end
        return self._object.put(
            RestoreProgress(
                run=self._run,
                options=self.options.to_doc(),
                flush=source.flush,
                replayed=source.replayed,
                after=source.after,
                replayed_after=source.replayed_after,
                left_out=source.left_out,
                topics={name: target.topic.id for name, target in found.items()},
                base=base,
                rows=plan.rows,
                started_at=self.clock(),
            )
        )

    def _send(
        self,
        plan: RestorePlan,
        targets: Targets,
        found: Mapping[str, TargetTopic],
        progress: RestoreProgress,
        report: RestoreReport,
    ) -> RestoreReport:
        partitions = {name: len(target.topic.partitions) for name, target in found.items()}
        positions = Positions(self.kafka.admin, f"s3sink.restore.{self._run}", plan.slices, partitions)
        if not progress.begun:
            positions.begin()
            progress = self._object.update(begun=True)
        # As committed: the transaction of a former try may be open until its task begins a session, which ends it.
        before = positions.read(stable=False)
        report.sent_before = total_rows(before)
        sending = Sending(
            self.kafka.spark,
            self.kafka.connection,
            positions,
            self._task(plan.slices, [one.row for one in before], self._times(found), progress),
            parallel=self.sink.spec.spark.driver.cores,
            rate=self.options.rate,
        )
        stored_at = self.clock()

        def see() -> None:
            nonlocal stored_at
            try:
                sent = total_rows(positions.read(stable=False))
                if self.clock() - stored_at >= STORED_EVERY:
                    self._object.update(sent=sent)
                    stored_at = self.clock()
            except TransientError:
                return  # tasks have retries of their own, and need none of this
            self.on_progress(sent, plan.rows)

        sending.run(see)
        after = positions.read()
        self.on_progress(plan.rows, plan.rows)
        report.records = sum(one.checksum.records for one in after)
        self._check(plan, targets, found, progress, [one.checksum for one in after], report)
        if report.ok:
            self._object.update(sent=plan.rows, finished_at=self.clock(), records=report.records)
            positions.delete()
        return report

    def _task(
        self,
        slices: tuple[RestoreSlice, ...],
        positions: list[int],
        times: Mapping[str, TakenTimes],
        progress: RestoreProgress,
    ) -> ReadingTask:
        driver = self.sink.spec.spark.driver
        return ReadingTask(
            *(slices, positions, ()),
            selection=self.options.selection,
            times=times,
            untimed=round(progress.started_at * 1000),
            destination=self.sink.spec.destination,
            secrets=self.secrets,
            retrying=self.bucket.retry,
            spill=SpillPlace(spill_folder(), driver.spill // driver.cores),
        )

    def _check(
        self,
        plan: RestorePlan,
        targets: Targets,
        found: Mapping[str, TargetTopic],
        progress: RestoreProgress,
        sent: list[Any],
        report: RestoreReport,
    ) -> None:
        """Reads the topics."""
        self.say("sent; reading the topics to compare counts and checksums")
        ends = targets.settled_ends(found)
        base = {at: progress.base_of(at) for at in ends}
        report.findings += deleted_since(base, ends)
        ranges = {at: (max(base[at], offsets.earliest), offsets.stable) for at, offsets in ends.items()}
        there = read_checksums(self.kafka.spark, self.kafka.connection, f"s3sink.restore.{self._run}.check", ranges)
        compacted = frozenset(name for name, target in found.items() if target.compacted)
        report.compacted = sorted(compacted)
        report.findings += differences(plan.slices, sent, there, compacted)
        report.found = sum(one.records for one in there.values())
