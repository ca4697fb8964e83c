"""The status that a running driver reports: for the resource, for metrics, for a terminal."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from s3sink_api import conditions
from s3sink_api.status import Condition, DriverReport, DriverStatus, FlushStatus, RetryStatus
from s3sink_job.base.errors import S3SinkError
from s3sink_job.base.times import iso
from s3sink_job.flush.kafka_metadata import Offsets, TopicPartition
from s3sink_job.flush.manifest import Gap, Manifest, ObjectEntry
from s3sink_job.flush.plan import Plan
from s3sink_job.flush.problem import Problem
from s3sink_job.flush.state import SinkState
from s3sink_job.flush.transitions import is_writing_run
from s3sink_job.report.metrics import Metrics
from s3sink_job.report.progress import Estimate, Progress
from s3sink_job.report.status_parts import (
    PartitionLag,
    gaps_status,
    lag_status,
    last_letter_status,
    offsets_status,
    refresh_status,
    reset_status,
)

MOST_PARTITIONS = 50
"""The partitions furthest behind that a report names."""
_READY_PHASES = frozenset({conditions.RUNNING, conditions.PAUSED, conditions.COMPLETED})


@dataclass
class Reporter:
    """Written by the driver's thread, read by others: every access goes through the lock."""

    generation: int = 1
    metrics: Metrics = field(default_factory=Metrics)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _report: DriverReport = field(default_factory=DriverReport)
    _flush: FlushStatus = field(default_factory=FlushStatus)
    _retry: RetryStatus = field(
        default_factory=lambda: RetryStatus(attempts=0, skipped_records=0, dead_lettered_records=0)
    )
    _conditions: dict[str, Condition] = field(default_factory=dict)
    _attempts: int = 0
    _gauged: set[TopicPartition] = field(default_factory=set)
    _progress: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        self._report = DriverReport(observed_generation=self.generation, phase=conditions.STARTING)
        self.condition(conditions.ACCEPTED, True, "Valid", "the manifest is valid")
        self.condition(conditions.READY, False, conditions.STARTING, "the driver is starting")

    def condition(self, type: str, status: bool | None, reason: str, message: str) -> None:
        with self._lock:
            before = self._conditions.get(type)
            made = Condition(
                type=type,
                status="Unknown" if status is None else "True" if status else "False",
                reason=reason,
                message=message,
                last_transition_time=_now(),
                observed_generation=self.generation,
            )
            if before is not None and before.status == made.status:
                made = replace(made, last_transition_time=before.last_transition_time)
            self._conditions[type] = made

    def phase(self, phase: str, message: str = "") -> None:
        with self._lock:
            self._report = replace(self._report, phase=phase)
        self.condition(conditions.READY, phase in _READY_PHASES, phase, message or phase)

    def probed(self, fault: str | None, delivery: str, reason: str = "NoConditionalWrites") -> None:
        if fault is None:
            text = "the store's conditional writes work"
            self.condition(conditions.EXACTLY_ONCE, True, "ConditionalWrites", text)
        else:
            self.condition(conditions.EXACTLY_ONCE, False, reason, f"{fault}; delivery is {delivery}")

    def throttled(self, answers: int, share: int) -> None:
        self.metrics.throttled.inc(answers)
        self.metrics.share.set(share)

    def observed(
        self,
        state: SinkState,
        seen: Mapping[TopicPartition, Offsets],
        since: Mapping[TopicPartition, float],
        problems: Mapping[TopicPartition, Problem],
        plan: Plan,
        now: float,
        cause: Problem | None = None,
    ) -> None:
        """`cause` is what keeps the sink as a whole from catching up, where no partition is blocked."""
        partitions = [PartitionLag.of(at, state.offset(*at), offsets, since, now) for at, offsets in seen.items()]
        partitions.sort(key=lambda p: (-p.behind, p.topic, p.partition))
        self._gauge(partitions)
        self._forget(self._gauged - seen.keys() - problems.keys())
        self._gauged |= seen.keys()
        self.metrics.epoch.set(state.epoch)
        lag = lag_status(partitions)
        with self._lock:
            self._report = replace(
                self._report,
                offsets=tuple(offsets_status(partition) for partition in partitions[:MOST_PARTITIONS]),
                lag=lag,
                gaps=gaps_status(state),
                driver=DriverStatus(epoch=state.epoch),
                reset=reset_status(state) or self._report.reset,
                refresh=refresh_status(state),
            )
            self._flush = replace(
                self._flush,
                total_records=state.totals.records,
                total_objects=state.totals.objects,
                total_filtered=state.filtered or None,
                next_due=iso(plan.next_due) if plan.next_due else None,
            )
            self._retry = replace(
                self._retry,
                skipped_records=state.totals.skipped,
                dead_lettered_records=state.letters.count,
                last_dead_letter=last_letter_status(state),
            )
            self._progress.see(plan.length + plan.left, plan.left, now)
        everything = "everything in Kafka" if state.end is None else "everything below endingOffsets"
        if is_writing_run(state):
            everything = "everything up to the end of the full refresh"
        self._caught_up(partitions, problems, cause, everything, throttled=plan.throttled)

    def refreshed(self, state: SinkState) -> None:
        """How far a full refresh is that publishes or removes."""
        self.metrics.unremoved.set(state.refresh.unremoved if state.refresh else 0)
        with self._lock:
            self._report = replace(self._report, refresh=refresh_status(state), driver=DriverStatus(epoch=state.epoch))

    def removed(self, count: int) -> None:
        self.metrics.removed.inc(count)

    def _gauge(self, partitions: Sequence[PartitionLag]) -> None:
        for p in partitions:
            labels = (p.topic, str(p.partition))
            self.metrics.lag.labels(*labels).set(p.behind)
            self.metrics.lag_end.labels(*labels).set(p.to_high_watermark)
            self.metrics.oldest.labels(*labels).set(p.age)
            self.metrics.committed.labels(*labels).set(p.committed)

    def _forget(self, partitions: set[TopicPartition]) -> None:
        """A topic that was given up must not show its last lag for ever."""
        for topic, partition in partitions:
            for gauge in (self.metrics.lag, self.metrics.lag_end, self.metrics.oldest, self.metrics.committed):
                gauge.remove(topic, str(partition))
        self._gauged -= partitions

    def _caught_up(
        self,
        partitions: Sequence[PartitionLag],
        problems: Mapping[TopicPartition, Problem],
        cause: Problem | None,
        everything: str,
        *,
        throttled: bool,
    ) -> None:
        behind, to_end = sum(p.behind for p in partitions), sum(p.to_high_watermark for p in partitions)
        if problems:
            (topic, partition), problem = next(iter(sorted(problems.items())))
            more = f" (and {len(problems) - 1} more partitions)" if len(problems) > 1 else ""
            where = "" if topic in problem.message else f"{topic}-{partition}: "
            self._behind(problem.reason, where + problem.message + more)
        elif cause is not None:
            self._behind(cause.reason, cause.message)
        elif to_end == 0:
            self.condition(conditions.CAUGHT_UP, True, "Level", f"{everything} is in the bucket")
        elif throttled:
            self._behind("Throttled", f"{behind} offsets are left; source.maxBytesPerSecond limits the rate")
        elif behind == 0:
            self._behind("OpenTransaction", f"{to_end} offsets belong to transactions that are still open")
        else:
            self._behind("Waiting", f"{behind} offsets wait for a flush rule")

    def _behind(self, reason: str, message: str) -> None:
        self.condition(conditions.CAUGHT_UP, False, reason, message)

    def offsets_published(self, group: str, error: S3SinkError | None = None) -> None:
        """A condition of its own: the sink keeps writing, whatever happens to the group."""
        if error is None:
            text = f"the group {group} shows the committed offsets"
            self.condition(conditions.OFFSETS_PUBLISHED, True, "Published", text)
        else:
            self.metrics.errors.labels(error.reason).inc()
            self.condition(conditions.OFFSETS_PUBLISHED, False, error.reason, str(error))

    def lost(self, gaps: Sequence[Gap]) -> None:
        for gap in gaps:
            self.metrics.gaps.labels(gap.topic, str(gap.partition)).inc(gap.end - gap.start)

    def left_out(self, at: TopicPartition, unknown_fields: int) -> None:
        topic, partition = at
        self.metrics.unknown_fields.labels(topic, str(partition)).inc(unknown_fields)

    def flushing(self) -> None:
        """A first flush may take long: the driver is not starting any more."""
        with self._lock:
            starting = self._report.phase == conditions.STARTING
        if starting:
            self.phase(conditions.RUNNING, "the first flush is under way")

    def flushed(self, manifest: Manifest, seconds: float, now: float, lost: Sequence[ObjectEntry] = ()) -> None:
        for entry in (o for o in manifest.data if o not in lost):
            labels = (entry.topic, str(entry.partition))
            self.metrics.records.labels(*labels).inc(entry.rows)
            self.metrics.bytes.labels(*labels).inc(entry.bytes)
            self.metrics.objects.labels(*labels).inc()
        for slice in manifest.slices:
            self.metrics.flushes.labels(slice.reason).inc()
            self.metrics.skipped.labels(slice.topic, str(slice.partition)).inc(len(slice.skipped))
            self.metrics.letters.labels(slice.topic, str(slice.partition)).inc(len(slice.letters))
            self.metrics.filtered.labels(slice.topic, str(slice.partition)).inc(slice.filtered)
        self.metrics.flush_seconds.observe(seconds)
        self.metrics.last_flush.set(now)
        self.held(manifest, seconds, now)

    def held(self, manifest: Manifest, seconds: float, now: float) -> None:
        """A flush is committed. In a full refresh it is not visible yet, and its metrics count when it is."""
        with self._lock:
            self._progress.moved(sum(s.end - s.start for s in manifest.slices), now)
            self._attempts = 0
            self._retry = replace(self._retry, attempts=0)
            self._flush = replace(
                self._flush,
                last_time=iso(now),
                last_reason=", ".join(sorted({s.reason for s in manifest.slices})),
                records=manifest.rows,
                bytes=manifest.size,
                objects=len(manifest.data),
                duration_seconds=round(seconds, 3),
            )

    def failed(self, error: S3SinkError, next_time: float | None) -> None:
        self.metrics.errors.labels(error.reason).inc()
        self.metrics.up.set(0)
        with self._lock:
            self._attempts += 1
            self._retry = replace(
                self._retry,
                attempts=self._attempts,
                last_error=f"{error.reason}: {error}",
                last_time=_now(),
                next_time=iso(next_time) if next_time else None,
            )
        if error.retryable:
            self.metrics.retries.labels(error.reason).inc()
        self.condition(conditions.LAST_FLUSH_SUCCEEDED, False, error.reason, str(error))

    def well(self) -> None:
        self.metrics.up.set(1)
        self.condition(conditions.LAST_FLUSH_SUCCEEDED, True, "Succeeded", "no failure since")

    def estimate(self, now: float) -> Estimate | None:
        """How far a backlog is; None while there is none."""
        with self._lock:
            return self._progress.estimate(now)

    def report(self) -> DriverReport:
        with self._lock:
            return replace(
                self._report,
                conditions=tuple(self._conditions.values()),
                flush=self._flush,
                retry=self._retry,
                reported_at=_now(),
            )

    def status(self) -> dict[str, Any]:
        """The report as JSON."""
        return self.report().to_document()


def _now() -> str:
    return iso(time.time())
