"""Writes, commits and publishes a flush."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from s3sink_api.spec import Errors
from s3sink_job.base.errors import FinalError, TransientError
from s3sink_job.columns.known_columns import NO_COLUMNS
from s3sink_job.commit.committer import Committer
from s3sink_job.flush.manifest import LetterTopicEntry, Manifest, Slice, manifest_name
from s3sink_job.flush.partition_backoff import PartitionBackoff
from s3sink_job.flush.problem import Problem
from s3sink_job.flush.topic_changes import TopicChanges
from s3sink_job.flush.transitions import is_writing_run
from s3sink_job.kafka.admin import Admin
from s3sink_job.kafka.connection import KafkaConnection
from s3sink_job.kafka.leaders import source_logs
from s3sink_job.report import logs
from s3sink_job.report.status import Reporter
from s3sink_job.task.committable import BadRecordLimits, CommitCheck, TypedTopic
from s3sink_job.task.flush_job import FlushJob
from s3sink_job.task.slice_result import SliceResult

LOST_SHOWN = 20
BAD_RECORDS_SHOWN = 20


class Flusher:
    def __init__(
        self,
        flush_job: FlushJob,
        kafka: KafkaConnection,
        backoff: PartitionBackoff,
        reporter: Reporter,
        clock: Callable[[], float],
    ) -> None:
        self._job, self._kafka, self._backoff = flush_job, kafka, backoff
        self._reporter, self._clock = reporter, clock
        self._began = clock()

    def flush(self, committer: Committer, slices: tuple[Slice, ...], changes: TopicChanges) -> bool:
        """Whether something was committed and no slice failed."""
        self._began = self._clock()
        self._reporter.flushing()
        state, ledger, routing = committer.state, committer.ledger, self._job.routing
        number = ledger.next_number(state)
        name = manifest_name(number, ledger.writer)
        topics = {part.topic for part in slices}
        schemas = committer.schemas.known(state, topics)
        encodings = routing.encodings(topics).at(max(int(self._clock() * 1000), state.stamp + 1))
        task = self._job.task(slices, name, encodings, schemas, conditional=ledger.conditional)
        results = self._job.write(task, state, self._kafka.properties)
        read = source_logs(state, (part.at for part in slices), changes.known)
        decodings = {topic: encodings.of(topic).decoding for topic in topics}
        typed = {
            topic: TypedTopic(schemas.get(topic, NO_COLUMNS), decoding.evolution.mode)
            for topic, decoding in decodings.items()
            if decoding.typed
        }
        check = CommitCheck(state, read, self._kafka.admin(), ledger.bucket, typed)
        errors = self._job.sink.spec.errors
        results = check.committable(results, BadRecordLimits(errors.max_per_flush, errors.max_percent))
        self._handle_failures(results)
        moved = [r for r in results if r.end > r.slice.start]
        if not moved:
            return False
        letters = _letter_topic(errors, moved, self._kafka.admin())
        manifest = committer.manifest(state, encodings, number=number, results=moved, logs=read, letter_topic=letters)
        committer.commit(state, manifest)
        _log_bad_records(moved)
        for result in moved:
            self._reporter.left_out(result.slice.at, result.unknown_fields)
        if is_writing_run(committer.state):
            self._hold(manifest)
        else:
            self.publish(committer, manifest)
        return not any(r.failure for r in results)

    def _hold(self, manifest: Manifest) -> None:
        """A flush of a full refresh becomes visible with all others of its run."""
        now = self._clock()
        self._reporter.held(manifest, now - self._began, now)
        logs.info("written, and not visible before the end of the run", **_summary(manifest, now - self._began))

    def publish_of_run(self, committer: Committer, manifest: Manifest) -> None:
        self._began = self._clock()
        self.publish(committer, manifest)

    def publish(self, committer: Committer, manifest: Manifest) -> None:
        lost = committer.publish(manifest)
        if lost:
            logs.warning(
                "uploads were aborted between commit and publish; their objects are written again",
                keys=[o.key for o in lost[:LOST_SHOWN]],
            )
        now = self._clock()
        self._reporter.flushed(manifest, now - self._began, now, lost)
        logs.info("flushed", **_summary(manifest, now - self._began))

    def _handle_failures(self, results: list[SliceResult]) -> None:
        """Each failed partition gets its own backoff; the others go on."""
        for result in results:
            at, failure = result.slice.at, result.failure
            if failure is None:
                self._backoff.drop(at)
                continue
            problem = Problem(failure.reason, failure.message)
            until = self._backoff.hold(at, problem, retryable=failure.retryable)
            error = TransientError if failure.retryable else FinalError
            self._reporter.failed(error(failure.message, reason=failure.reason), until)
            logs.warning("slice failed", slice=str(result.slice), reason=failure.reason, cause=failure.message)


def _summary(manifest: Manifest, seconds: float) -> dict[str, Any]:
    return {
        "flush": manifest.number,
        "records": manifest.rows,
        "objects": len(manifest.data),
        "bytes": manifest.size,
        **({"filtered": manifest.filtered} if manifest.filtered else {}),
        "reason": ",".join(sorted({s.reason for s in manifest.slices})),
        "seconds": round(seconds, 3),
    }


def _letter_topic(errors: Errors, results: list[SliceResult], admin: Admin) -> LetterTopicEntry | None:
    """If the flush has dead letters for a topic."""
    letters = errors.dead_letter
    if letters is None or letters.topic is None or not any(r.letters for r in results):
        return None
    topic = admin.describe([letters.topic])[letters.topic]
    return LetterTopicEntry(letters.topic, letters.with_context, topic.id if topic else "")


def _log_bad_records(results: list[SliceResult]) -> None:
    """Some of those that a flush committed."""
    shown = [(r.slice, record) for r in results for record in r.shown if record.offset < r.end]
    for part, record in shown[:BAD_RECORDS_SHOWN]:
        content = {name: text for name in ("key", "value") if (text := getattr(record, name)) is not None}
        logs.warning(
            "dead letter" if record.became == "DeadLetter" else "bad record skipped",
            topic=part.topic,
            partition=part.partition,
            offset=record.offset,
            stage=record.stage,
            reason=record.reason,
            cause=record.message,
            **content,
        )
    if (more := sum(r.bad for r in results) - min(len(shown), BAD_RECORDS_SHOWN)) > 0:
        logs.warning("more bad records in this flush", count=more)
