"""Runs the Spark job of a flush, and runs parts of it again where that helps."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from s3sink_job.base.errors import ProtocolError
from s3sink_job.flush.manifest import Slice
from s3sink_job.flush.state import SinkState
from s3sink_job.kafka.batch_size import limit_of, without_large
from s3sink_job.kafka.leaders import Leaders
from s3sink_job.kafka.slice_reader import JobFailed, collect, read_slices
from s3sink_job.report import logs
from s3sink_job.task.bad_records import BadRecordPolicy, LeftOut
from s3sink_job.task.reading import READ_AGAIN, KnownNeeds, Reading
from s3sink_job.task.slice_result import (
    RESULT_SCHEMA,
    UNCOUNTED,
    Failure,
    SliceResult,
    result_from_json,
)
from s3sink_job.task.slice_task import SliceTask
from s3sink_job.task.slice_tasks import SliceTasks
from s3sink_job.task.task_settings import LetterTarget, Rewrite, TopicTarget

RUNS_FOR_REFUSED_KEYS = 3
"""One run finds all refused keys of a slice, except those behind a bad record that stopped it."""
JOBS_PER_GC = 40
"""Spark keeps about 0.3 MB of every job until a full garbage collection, which seldom happens by itself. One takes
0.2 s."""


@dataclass(kw_only=True)
class FlushJob(SliceTasks):
    spark: SparkSession
    stop: threading.Event
    on_request_retries: Callable[[int], None]
    on_throttled: Callable[[int, int], None] = lambda answers, limit: None
    leaders: Leaders = field(default_factory=Leaders)
    _jobs: int = 0
    _needs: KnownNeeds = field(default_factory=KnownNeeds)

    def write(self, task: SliceTask, state: SinkState, connection: Mapping[str, str]) -> list[SliceResult]:
        """All slices in one job. If that fails, each slice in its own job, so that one cannot block the others."""
        try:
            return self.run(task, state, connection)
        except JobFailed as error:
            if self.stop.is_set():
                raise
            if len(task.slices) == 1:
                return [_failed(task.slices[0], error)]
            logs.warning("Spark job failed; running its slices one by one", error=str(error))
        results: list[SliceResult] = []
        for part in task.slices:
            # Behind a failed slice nothing of its partition can be committed.
            if not any(r.failure and r.slice.at == part.at for r in results):
                results.append(self._write_one(replace(task, slices=(part,)), state, connection))
        return results

    def _write_one(self, task: SliceTask, state: SinkState, connection: Mapping[str, str]) -> SliceResult:
        try:
            return self.run(task, state, connection)[0]
        except JobFailed as error:
            if self.stop.is_set():
                raise
            return _failed(task.slices[0], error)

    def rewrite(
        self,
        task: SliceTask,
        rewrites: Mapping[Slice, tuple[Rewrite, ...]],
        committed: Mapping[Slice, LeftOut],
        letters: str,
        buckets: Mapping[str, str],
        state: SinkState,
        connection: Mapping[str, str],
    ) -> list[SliceResult]:
        """Writes lost objects again, each one whole. `buckets`: by topic the bucket that it was lost from.

        `committed`: what became of the bad records of each slice, whatever the policy is now. `letters`: the format of
        lost dead letters, if there are any.
        """
        targets = {}
        for topic, bucket in buckets.items():
            target = task.target(topic)
            destination = replace(target.destination, bucket=bucket or task.settings.bucket)
            targets[topic] = TopicTarget(target.encoding, destination)
        settings = replace(
            task.settings,
            bad_records=BadRecordPolicy(),
            object_limit=None,
            longest_segment=None,
            letters=LetterTarget(self.sink.spec.destination, letters, self.staging(letters)) if letters else None,
        )
        task = replace(task, settings=settings, targets=targets, rewrites=rewrites, committed=committed)
        return self.write(replace(task, reading=Reading(whole=bool(letters))), state, connection)

    def run(self, task: SliceTask, state: SinkState, connection: Mapping[str, str]) -> list[SliceResult]:
        metadata = self.sink.metadata
        group = f"s3sink.{metadata.namespace}.{metadata.name}"
        # A recreated topic or a new leader needs new consumers: Spark's cached ones may hold records of the old log.
        recreated = sum(topic.generation - 1 for topic in state.topics.values())
        group += f".{recreated}" if recreated else ""
        group += f".l{self.leaders.changes}" if self.leaders.changes else ""
        results = self._without_refused_keys(task, connection, group)
        self.on_request_retries(sum(r.request_retries for r in results))
        self._adjust_request_limit(results)
        self.handout.learn(results)
        self._jobs += 1
        if self._jobs % JOBS_PER_GC == 0:
            self.spark.sparkContext._jvm.System.gc()  # type: ignore[union-attr]
        return results

    def _adjust_request_limit(self, results: list[SliceResult]) -> None:
        """If the store throttled, the next tasks start with fewer parallel requests; if not, with one more."""
        answers = sum(r.throttled for r in results)
        self.request_limit.adjust(min((r.request_limit for r in results if r.throttled), default=None))
        self.on_throttled(answers + self.request_limit.take_throttled(), self.request_limit.now)
        if answers:
            logs.warning("store is throttling", answers=answers, parallel_requests=self.request_limit.now)

    def _without_refused_keys(self, task: SliceTask, connection: Mapping[str, str], group: str) -> list[SliceResult]:
        """Runs slices with refused keys again, with the records of those keys as bad records."""
        results = self._run_as_needed(task, connection, group)
        for _ in range(RUNS_FOR_REFUSED_KEYS):
            found = {r.slice: dict(r.refused_keys) for r in results if r.refused_keys}
            if not found or task.rewrites:
                break
            known = {part: {**task.refused_keys.get(part, {}), **groups} for part, groups in found.items()}
            task = replace(task, slices=tuple(found), refused_keys={**task.refused_keys, **known})
            results = _replaced(results, self._run_as_needed(task, connection, group))
        return results

    def _run_as_needed(self, task: SliceTask, connection: Mapping[str, str], group: str) -> list[SliceResult]:
        """Reads slices again whose tasks need more than was read."""
        reading = self._needs.reading(task.slices)
        # Which dead letters are lost is known: whether whole records are read was decided with that.
        task = replace(task, reading=replace(reading, whole=task.reading.whole) if task.rewrites else reading)
        results = self._run_job(task, connection, group)
        while again := [r for r in results if r.failure and r.failure.reason in READ_AGAIN]:
            self._needs.learn(again)
            more = task.reading.with_more(r.failure.reason for r in again if r.failure)
            if more == task.reading:
                raise ProtocolError(
                    f"{again[0].slice} was read with all that it needs, and needs more: {again[0].failure}"
                )
            task = replace(task, slices=tuple(r.slice for r in again), reading=more)
            results = _replaced(results, self._run_job(task, connection, group))
        self._needs.learn_letters(results)
        return results

    def _run_job(self, task: SliceTask, connection: Mapping[str, str], group: str) -> list[SliceResult]:
        return run_job(self.spark, task, connection, group=group, isolation=self.sink.spec.source.isolation)


def run_job(
    spark: SparkSession, task: SliceTask, connection: Mapping[str, str], *, group: str, isolation: str
) -> list[SliceResult]:
    """One result for each slice. A slice without a reported result had no records that Spark handed over."""
    small, conditions = task.has_small_records, task.conditions
    frame = read_slices(
        *(spark, task.slices, connection),
        columns=task.columns,
        group=group,
        isolation=isolation,
        conditions=conditions,
    )
    frame = without_large(frame) if small else frame
    with limit_of(spark, small=small):
        rows = collect(frame.mapInArrow(task, RESULT_SCHEMA), f"the Spark job over {_names(task.slices)}")
    results = {r.slice: r for r in (result_from_json(row.result) for row in rows)}
    return [results.get(s) or _without_records(s, certain=s.topic not in conditions) for s in task.slices]


def _without_records(part: Slice, *, certain: bool) -> SliceResult:
    if certain:
        return SliceResult(part, part.end)
    failure = Failure(UNCOUNTED, "no record of it was handed over", retryable=True)
    return SliceResult(part, part.start, failure=failure)


def _replaced(results: list[SliceResult], again: list[SliceResult]) -> list[SliceResult]:
    by_slice = {r.slice: r for r in again}
    return [by_slice.get(r.slice, r) for r in results]


def _names(slices: Sequence[Slice]) -> str:
    shown = ", ".join(str(s) for s in slices[:5])
    return shown + (f" and {len(slices) - 5} more" if len(slices) > 5 else "")


def _failed(part: Slice, error: JobFailed) -> SliceResult:
    return SliceResult(part, part.start, failure=Failure(error.reason, str(error), retryable=True))
