"""Step 3 from the driver's side: which job writes which slices, and what of its results may be committed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from s3sink_job.engine.batches import can_be_small
from s3sink_job.engine.job import JobFailed, run_job
from s3sink_job.engine.leaders import Leaders, cut_meanwhile
from s3sink_job.engine.routing import Encodings, Routing
from s3sink_job.engine.write import LARGE_RECORD, Failure, Rewrite, SliceResult, Target, WriteTask
from s3sink_job.errors import FinalError, S3SinkError
from s3sink_job.flush.cut import MOST_OBJECTS, joined, task_slots
from s3sink_job.flush.manifest import ObjectEntry, Slice, SourceLog
from s3sink_job.flush.state import State, same_topic
from s3sink_job.kafka.admin import Admin
from s3sink_job.report import logs as report
from s3sink_job.secrets import Secrets
from s3sink_job.spec import S3Sink
from s3sink_job.spill import SpillPlace, spill_folder
from s3sink_job.stores.bucket import Bucket, Retrying
from s3sink_job.stores.share import Share

EVERY_BAD_RECORD = 2**63
RUNS_FOR_KEYS = 3
"""One finds all keys of a slice that the store refuses, but for those behind a record that stopped it."""
JOBS_A_COLLECTION = 40
"""What Spark remembers of a job outlives it until the whole heap is collected, which it seldom is: a third of a MB each
that would fill the heap. A collection takes 0.2 s."""


@dataclass
class Writing:
    sink: S3Sink
    secrets: Secrets
    spark: SparkSession
    stop: threading.Event
    routing: Routing
    on_request_retries: Callable[[int], None]
    on_throttled: Callable[[int, int], None] = lambda answers, share: None
    share: Share = field(default_factory=Share)
    """Of the driver, and what its tasks begin with."""
    longest_segment: int | None = None
    leaders: Leaders = field(default_factory=Leaders)
    _jobs: int = 0
    _large: set[tuple[str, int]] = field(default_factory=set)
    """Partitions that were seen to hold large records."""

    def task(
        self,
        slices: tuple[Slice, ...],
        flush: str,
        encodings: Encodings,
        schemas: Mapping[str, str],
        *,
        conditional: bool,
    ) -> WriteTask:
        spec = self.sink.spec
        retries = spec.errors.request_retries
        return WriteTask(
            slices=slices,
            sink=self.sink.id,
            flush=flush,
            planned=slices,
            encoding=encodings.default,
            routed={topic: self.routing.target(topic, encodings) for topic in encodings.routed},
            destination=spec.destination,
            secrets=self.secrets,
            retrying=Retrying(retries.max, retries.backoff),
            records_per_object=spec.flush.records,
            bytes_per_object=spec.flush.bytes,
            bytes_per_second=self._share_of_rate(len(slices)),
            most_objects=MOST_OBJECTS // max(1, len(slices)),
            skip_bad=spec.errors.records == "Skip",
            max_bad=spec.errors.max_per_flush,
            mark="" if conditional else flush,
            conditional=conditional,
            spill=self._spill_place(),
            schemas=schemas,
            requests=self.share.now,
            longest_segment=self.longest_segment,
        )

    def _spill_place(self) -> SpillPlace:
        """The tasks that run at once share what their pod has."""
        spark = self.sink.spec.spark
        pod = spark.driver if spark.mode == "Local" else spark.executor
        return SpillPlace(spill_folder(), pod.spill // pod.cores)

    def _share_of_rate(self, tasks: int) -> float | None:
        """So that those that run at the same time keep to `source.maxBytesPerSecond` together."""
        rate = self.sink.spec.source.max_bytes_per_second
        return None if rate is None else rate / max(1, min(tasks, task_slots(self.sink.spec.spark)))

    def write(self, task: WriteTask, state: State, connection: Mapping[str, str]) -> list[SliceResult]:
        """All slices in one job; if that fails, each in a job of its own, so that one cannot hold up all."""
        try:
            return self.run(task, state, connection)
        except JobFailed as error:
            if self.stop.is_set():
                raise
            if len(task.slices) == 1:
                return [_failed(task.slices[0], error)]
            report.warning("the job failed; running its slices one by one", error=str(error))
        results: list[SliceResult] = []
        for part in task.slices:
            # Behind a slice that failed nothing of its partition can be committed.
            if not any(r.failure and r.slice.at == part.at for r in results):
                results.append(self._alone(replace(task, slices=(part,)), state, connection))
        return results

    def _alone(self, task: WriteTask, state: State, connection: Mapping[str, str]) -> SliceResult:
        try:
            return self.run(task, state, connection)[0]
        except JobFailed as error:
            if self.stop.is_set():
                raise
            return _failed(task.slices[0], error)

    def rewrite(
        self,
        task: WriteTask,
        again: Mapping[Slice, tuple[Rewrite, ...]],
        buckets: Mapping[str, str],
        state: State,
        connection: Mapping[str, str],
    ) -> list[SliceResult]:
        """Lost objects again, each whole, by topic in the bucket that it was lost from.

        A bad record in a committed range was skipped when it was committed, whatever the policy is now.
        """
        targets = {}
        for topic, bucket in buckets.items():
            target = task.of(topic)
            destination = replace(target.destination, bucket=bucket or task.destination.bucket)
            targets[topic] = Target(target.encoding, destination, records=None, bytes=None)
        task = replace(
            task,
            again=again,
            routed=targets,
            most_objects=None,
            longest_segment=None,
            skip_bad=True,
            max_bad=EVERY_BAD_RECORD,
        )
        return self.write(task, state, connection)

    def run(self, task: WriteTask, state: State, connection: Mapping[str, str]) -> list[SliceResult]:
        metadata = self.sink.metadata
        group = f"s3sink.{metadata.namespace}.{metadata.name}"
        # A recreated topic or a new leader needs consumers of its own: cached ones may hold records of the old log.
        remade = sum(topic.generation - 1 for topic in state.topics.values())
        group += f".{remade}" if remade else ""
        group += f".l{self.leaders.changes}" if self.leaders.changes else ""
        results = self._run(task, connection, group)
        self.on_request_retries(sum(r.request_retries for r in results))
        self._follow(results)
        self._jobs += 1
        if self._jobs % JOBS_A_COLLECTION == 0:
            self.spark.sparkContext._jvm.System.gc()  # type: ignore[union-attr]
        return results

    def _follow(self, results: list[SliceResult]) -> None:
        """If the store throttled, the next tasks begin with fewer requests at a time; if not, with one more."""
        answers = sum(r.throttled for r in results)
        self.share.follow(min((r.share for r in results if r.throttled), default=None))
        self.on_throttled(answers + self.share.take_count(), self.share.now)
        if answers:
            report.warning("the store throttles", answers=answers, requests_at_a_time=self.share.now)

    def _run(self, task: WriteTask, connection: Mapping[str, str], group: str) -> list[SliceResult]:
        """Slices with keys that the store refuses again, with the records of those keys as bad records."""
        results = self._run_by_size(task, connection, group)
        for _ in range(RUNS_FOR_KEYS):
            found = {r.slice: dict(r.refused) for r in results if r.refused}
            if not found or task.again:
                break
            known = {part: {**task.refused.get(part, {}), **groups} for part, groups in found.items()}
            task = replace(task, slices=tuple(found), refused={**task.refused, **known})
            again = {r.slice: r for r in self._run_by_size(task, connection, group)}
            results = [again.get(r.slice, r) for r in results]
        return results

    def _run_by_size(self, task: WriteTask, connection: Mapping[str, str], group: str) -> list[SliceResult]:
        """As small records, where that is not known to be wrong; slices with others again, as what they are."""
        small = can_be_small(task.columns) and not any(s.at in self._large for s in task.slices)
        isolation = self.sink.spec.source.isolation
        results = run_job(self.spark, task, connection, group=group, isolation=isolation, small=small)
        large = tuple(r.slice for r in results if r.failure and r.failure.reason == LARGE_RECORD)
        if not large:
            return results
        self._large |= {part.at for part in large}
        again = run_job(self.spark, replace(task, slices=large), connection, group=group, isolation=isolation)
        mended = {r.slice: r for r in again}
        return [mended.get(r.slice, r) for r in results]

    def keep_committable(
        self,
        results: list[SliceResult],
        state: State,
        admin: Admin,
        bucket: Bucket,
        logs: Mapping[str, SourceLog],
    ) -> list[SliceResult]:
        kept = keep_joined(self.keep_current(results, state, admin, bucket, logs), bucket)
        skipped, most = sum(len(r.skipped) for r in kept), self.sink.spec.errors.max_per_flush
        if skipped > most:
            abandon(objects_of(kept), bucket)
            raise FinalError(
                f"{skipped} bad records in one flush are more than errors.maxPerFlush = {most}: "
                "nothing of it was committed",
                reason="TooManyBadRecords",
            )
        return kept

    def keep_current(
        self,
        results: list[SliceResult],
        state: State,
        admin: Admin,
        bucket: Bucket,
        logs: Mapping[str, SourceLog],
    ) -> list[SliceResult]:
        """Leaves out logs that changed while they were read: old and new records may be mixed there.

        The topic was recreated, or the log was cut by a change of leader.
        """
        if not results:
            return []
        topics = admin.describe(sorted({r.slice.topic for r in results}))
        cut = cut_meanwhile(admin, results, logs)
        kept = []
        for result in results:
            name, topic = result.slice.topic, topics[result.slice.topic]
            topic_id = logs[name].id if name in logs else state.topics[name].id
            if topic is not None and same_topic(topic.id, topic_id) and result.slice.at not in cut:
                kept.append(result)
            else:
                report.warning("the log changed while it was read; it is read again", slice=str(result.slice))
                abandon(result.objects, bucket)
        return kept


def keep_joined(results: list[SliceResult], bucket: Bucket) -> list[SliceResult]:
    """Leaves out what lies behind a slice that stopped short: it is read again, and nothing is stepped over."""
    join = joined((r.slice, r.end) for r in results)
    abandon(objects_of(r for r in results if r.slice not in join), bucket)
    return [r for r in results if r.slice in join]


def objects_of(results: Iterable[SliceResult]) -> list[ObjectEntry]:
    return [entry for result in results for entry in result.objects]


def abandon(objects: Iterable[ObjectEntry], bucket: Bucket) -> None:
    """What stays behind is invisible; it only costs storage."""
    for entry in objects:
        if not entry.upload_id:
            continue
        try:
            bucket.named(entry.bucket).abort_upload(entry.key, entry.upload_id)
        except S3SinkError as error:
            report.warning("an upload could not be aborted; s3sink gc will", key=entry.key, error=str(error))


def _failed(part: Slice, error: JobFailed) -> SliceResult:
    return SliceResult(part, part.start, failure=Failure(error.reason, str(error), retryable=True))
