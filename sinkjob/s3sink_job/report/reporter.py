"""Facts of a running driver, kept for whoever asks: the status of the resource, metrics, a terminal."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from s3sink_job.errors import S3SinkError
from s3sink_job.flush.manifest import Gap, Manifest, ObjectEntry
from s3sink_job.flush.plan import Offsets, Plan, TopicPartition
from s3sink_job.flush.problem import Problem
from s3sink_job.flush.state import State
from s3sink_job.report.metrics import Metrics
from s3sink_job.report.progress import Estimate, Progress
from s3sink_job.times import iso

WORST = 50


@dataclass
class Reporter:
    """Written by the driver's thread, read by others: every access goes through the lock."""

    generation: int = 1
    metrics: Metrics = field(default_factory=Metrics)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _facts: dict[str, Any] = field(default_factory=dict)
    _conditions: dict[str, dict[str, Any]] = field(default_factory=dict)
    _attempts: int = 0
    _gauged: set[TopicPartition] = field(default_factory=set)
    _progress: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        self._facts = {"phase": "Starting", "flush": {}, "retry": {"attempts": 0, "skippedRecords": 0}}
        self.condition("Accepted", True, "Valid", "the manifest is valid")
        self.condition("Ready", False, "Starting", "the driver is starting")

    def condition(self, type: str, status: bool | None, reason: str, message: str) -> None:
        text = "Unknown" if status is None else str(status)
        with self._lock:
            before = self._conditions.get(type, {})
            since = before["lastTransitionTime"] if before.get("status") == text else _now()
            self._conditions[type] = {
                "type": type,
                "status": text,
                "reason": reason,
                "message": message,
                "lastTransitionTime": since,
                "observedGeneration": self.generation,
            }

    def phase(self, phase: str, message: str = "") -> None:
        with self._lock:
            self._facts["phase"] = phase
        self.condition("Ready", phase in {"Running", "Paused", "Completed"}, phase, message or phase)

    def probed(self, fault: str | None, delivery: str, reason: str = "NoConditionalWrites") -> None:
        if fault is None:
            text = "the store's conditional writes work"
            self.condition("ExactlyOnce", True, "ConditionalWrites", text)
        else:
            self.condition("ExactlyOnce", False, reason, f"{fault}; delivery is {delivery}")

    def throttled(self, answers: int, share: int) -> None:
        self.metrics.throttled.inc(answers)
        self.metrics.share.set(share)

    def observed(
        self,
        state: State,
        seen: Mapping[TopicPartition, Offsets],
        since: Mapping[TopicPartition, float],
        problems: Mapping[TopicPartition, Problem],
        plan: Plan,
        now: float,
        cause: Problem | None = None,
    ) -> None:
        """`cause` is what keeps the sink as a whole from catching up, where no partition is blocked."""
        rows: list[dict[str, Any]] = []
        for (topic, partition), offsets in seen.items():
            committed = state.offset(topic, partition)
            behind, to_end = max(0, offsets.stable - committed), max(0, offsets.end - committed)
            age = max(0.0, now - since[topic, partition]) if behind else 0.0
            labels = (topic, str(partition))
            self.metrics.lag.labels(*labels).set(behind)
            self.metrics.lag_end.labels(*labels).set(to_end)
            self.metrics.oldest.labels(*labels).set(age)
            self.metrics.committed.labels(*labels).set(committed)
            rows.append({"topic": topic, "partition": partition, "committed": committed, "end": offsets.stable})
            rows[-1] |= {"lag": behind, "toEnd": to_end, "age": age}
        self._forget(self._gauged - seen.keys() - problems.keys())
        self._gauged |= seen.keys()
        self.metrics.epoch.set(state.epoch)
        rows.sort(key=lambda r: (-r["lag"], r["topic"], r["partition"]))
        lag: dict[str, Any] = {
            "records": sum(r["lag"] for r in rows),
            "recordsToHighWatermark": sum(r["toEnd"] for r in rows),
            "seconds": round(max((r["age"] for r in rows), default=0.0), 1),
        }
        if rows and rows[0]["lag"]:
            lag["worst"] = {k: rows[0][k] for k in ("topic", "partition")} | {"records": rows[0]["lag"]}
        with self._lock:
            keys = ("topic", "partition", "committed", "end", "lag")
            self._facts["offsets"] = [{k: r[k] for k in keys} for r in rows[:WORST]]
            self._facts["lag"] = lag
            self._facts["gaps"] = _gaps(state)
            self._facts["driver"] = {"epoch": state.epoch}
            if state.resets:
                self._facts["reset"] = {"nonce": state.resets[-1].nonce, "time": iso(state.resets[-1].at)}
            flush = self._facts["flush"]
            flush |= {"totalRecords": state.totals.records, "totalObjects": state.totals.objects}
            flush["nextDue"] = iso(plan.next_due) if plan.next_due else None
            self._facts["retry"]["skippedRecords"] = state.totals.skipped
            self._progress.see(plan.length + plan.left, plan.left, now)
        self._caught_up(lag, problems, cause, throttled=plan.throttled)

    def _forget(self, partitions: set[TopicPartition]) -> None:
        """A topic that was given up must not show its last lag for ever."""
        for topic, partition in partitions:
            for gauge in (self.metrics.lag, self.metrics.lag_end, self.metrics.oldest, self.metrics.committed):
                gauge.remove(topic, str(partition))
        self._gauged -= partitions

    def _caught_up(
        self,
        lag: Mapping[str, Any],
        problems: Mapping[TopicPartition, Problem],
        cause: Problem | None,
        *,
        throttled: bool,
    ) -> None:
        if problems:
            (topic, partition), problem = next(iter(sorted(problems.items())))
            more = f" (and {len(problems) - 1} more partitions)" if len(problems) > 1 else ""
            where = "" if topic in problem.message else f"{topic}-{partition}: "
            self.condition("CaughtUp", False, problem.reason, where + problem.message + more)
        elif cause is not None:
            self.condition("CaughtUp", False, cause.reason, cause.message)
        elif lag["recordsToHighWatermark"] == 0:
            self.condition("CaughtUp", True, "Level", "everything in Kafka is in the bucket")
        elif throttled:
            text = f"{lag['records']} offsets are left, and source.maxBytesPerSecond sets the pace"
            self.condition("CaughtUp", False, "Throttled", text)
        elif lag["records"] == 0:
            text = f"{lag['recordsToHighWatermark']} offsets belong to transactions that are still open"
            self.condition("CaughtUp", False, "OpenTransaction", text)
        else:
            self.condition("CaughtUp", False, "Waiting", f"{lag['records']} offsets wait for a flush rule")

    def offsets_published(self, group: str, error: S3SinkError | None = None) -> None:
        """Apart from all else: the sink goes on writing, whatever becomes of the group."""
        if error is None:
            self.condition("OffsetsPublished", True, "Published", f"the group {group} shows what is committed")
        else:
            self.metrics.errors.labels(error.reason).inc()
            self.condition("OffsetsPublished", False, error.reason, str(error))

    def lost(self, gaps: Sequence[Gap]) -> None:
        for gap in gaps:
            self.metrics.gaps.labels(gap.topic, str(gap.partition)).inc(gap.end - gap.start)

    def flushing(self) -> None:
        """A first flush may take long: the driver is not starting any more."""
        with self._lock:
            starting = self._facts["phase"] == "Starting"
        if starting:
            self.phase("Running", "the first flush is under way")

    def flushed(self, manifest: Manifest, seconds: float, now: float, lost: Sequence[ObjectEntry] = ()) -> None:
        for entry in (o for o in manifest.objects if o not in lost):
            labels = (entry.topic, str(entry.partition))
            self.metrics.records.labels(*labels).inc(entry.rows)
            self.metrics.bytes.labels(*labels).inc(entry.bytes)
            self.metrics.objects.labels(*labels).inc()
        for slice in manifest.slices:
            self.metrics.flushes.labels(slice.reason).inc()
            self.metrics.skipped.labels(slice.topic, str(slice.partition)).inc(len(slice.skipped))
        self.metrics.flush_seconds.observe(seconds)
        self.metrics.last_flush.set(now)
        reasons = sorted({s.reason for s in manifest.slices})
        with self._lock:
            self._progress.moved(sum(s.end - s.start for s in manifest.slices), now)
            self._attempts = 0
            self._facts["retry"]["attempts"] = 0
            self._facts["flush"] |= {
                "lastTime": iso(now),
                "lastReason": ", ".join(reasons),
                "records": manifest.rows,
                "bytes": manifest.size,
                "objects": len(manifest.objects),
                "durationSeconds": round(seconds, 3),
            }

    def failed(self, error: S3SinkError, next_time: float | None) -> None:
        self.metrics.errors.labels(error.reason).inc()
        self.metrics.up.set(0)
        with self._lock:
            self._attempts += 1
            self._facts["retry"] |= {
                "attempts": self._attempts,
                "lastError": f"{error.reason}: {error}",
                "lastTime": _now(),
                "nextTime": iso(next_time) if next_time else None,
            }
        if error.retryable:
            self.metrics.retries.labels(error.reason).inc()
        self.condition("LastFlushSucceeded", False, error.reason, str(error))

    def well(self) -> None:
        self.metrics.up.set(1)
        self.condition("LastFlushSucceeded", True, "Succeeded", "no failure since")

    def estimate(self, now: float) -> Estimate | None:
        """How far a backlog is; None while there is none."""
        with self._lock:
            return self._progress.estimate(now)

    def status(self) -> dict[str, Any]:
        with self._lock:
            facts = {k: dict(v) if isinstance(v, dict) else v for k, v in self._facts.items()}
            conditions = [dict(c) for c in self._conditions.values()]
        status = {
            "observedGeneration": self.generation,
            **facts,
            "conditions": conditions,
            "reportedAt": _now(),
        }
        return {k: _without_none(v) for k, v in status.items()}


def _gaps(state: State) -> dict[str, Any]:
    recent = [
        {"topic": g.topic, "partition": g.partition, "from": g.start, "to": g.end, "reason": g.reason}
        for g in state.recent_gaps
    ]
    return {"count": state.totals.gaps, "records": state.totals.gap_offsets, "recent": recent}


def _without_none(value: Any) -> Any:
    return {k: v for k, v in value.items() if v is not None} if isinstance(value, dict) else value


def _now() -> str:
    return iso(time.time())
