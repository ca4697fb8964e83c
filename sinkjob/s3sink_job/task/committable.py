"""Which results of a flush may be committed. The uploads of the others are aborted, and their slices read again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from s3sink_api.spec.format import EvolutionMode
from s3sink_job.base.errors import S3SinkError
from s3sink_job.columns.evolution import Incompatible, evolved
from s3sink_job.columns.known_columns import KnownColumns
from s3sink_job.flush.kafka_metadata import TopicPartition
from s3sink_job.flush.manifest import STAGED, ObjectEntry, SourceLog
from s3sink_job.flush.slicing import contiguous_slices
from s3sink_job.flush.state import SinkState, same_topic
from s3sink_job.kafka.admin import Admin
from s3sink_job.kafka.leaders import truncated_meanwhile
from s3sink_job.report import logs
from s3sink_job.stores.bucket import Bucket
from s3sink_job.task.slice_result import Failure, SliceResult

PERCENT_FROM = 1_000
"""Records of a partition in a flush from which on the share of bad ones counts. A few say nothing about the rest."""


@dataclass(frozen=True)
class BadRecordLimits:
    """Of one partition in one flush: `spec.errors.maxPerFlush` and `maxPercent`."""

    most: int
    percent: int = 100

    def exceeded(self, bad: int, records: int) -> str:
        """Which limit, and what to do; empty if none."""
        if bad > self.most:
            limit = f"errors.maxPerFlush = {self.most}"
        elif records >= PERCENT_FROM and bad * 100 > self.percent * records:
            limit = f"errors.maxPercent = {self.percent}"
        else:
            return ""
        return (
            f"{bad} of {records} records in one flush are bad, more than {limit}. Nothing of the partition was "
            "committed. Correct the producer, or raise the limit"
        )


@dataclass(frozen=True)
class TypedTopic:
    """A topic whose records bring their types along."""

    known: KnownColumns
    mode: EvolutionMode


@dataclass(frozen=True)
class CommitCheck:
    """`source_logs` are the logs that the plan was made for."""

    state: SinkState
    source_logs: Mapping[str, SourceLog]
    admin: Admin
    bucket: Bucket

    typed: Mapping[str, TypedTopic] = field(default_factory=dict)
    """Topics whose records bring their types along."""

    def committable(self, results: list[SliceResult], limits: BadRecordLimits) -> list[SliceResult]:
        kept = self.contiguous(self.of_one_schema(self.of_unchanged_logs(results)))
        return self.within(limits, kept)

    def within(self, limits: BadRecordLimits, results: list[SliceResult]) -> list[SliceResult]:
        """A partition with too many bad records fails: one failed result stands for all of its slices."""
        by_partition: dict[TopicPartition, list[SliceResult]] = {}
        for result in results:
            by_partition.setdefault(result.slice.at, []).append(result)
        kept = []
        for at, own in by_partition.items():
            text = limits.exceeded(sum(r.bad for r in own), sum(r.records for r in own))
            if not text:
                kept += own
                continue
            abort_uploads((entry for result in own for entry in result.objects), self.bucket)
            failure = Failure("TooManyBadRecords", f"topic {at[0]}, partition {at[1]}: {text}", retryable=False)
            kept.append(SliceResult(own[0].slice, own[0].slice.start, failure=failure))
        return kept

    def of_unchanged_logs(self, results: list[SliceResult]) -> list[SliceResult]:
        """Without logs that changed while they were read: records of the old and the new log may be mixed.

        That is so if the topic was recreated, or if a change of leader truncated the log.
        """
        if not results:
            return []
        topics = self.admin.describe(sorted({r.slice.topic for r in results}))
        truncated = truncated_meanwhile(self.admin, ((r.slice, r.end) for r in results), self.source_logs)
        kept = []
        for result in results:
            name, topic = result.slice.topic, topics[result.slice.topic]
            topic_id = self.source_logs[name].id if name in self.source_logs else self.state.topics[name].id
            if topic is not None and same_topic(topic.id, topic_id) and result.slice.at not in truncated:
                kept.append(result)
            else:
                logs.warning(
                    "topic was recreated or its log truncated while it was read; reading the slice again",
                    slice=str(result.slice),
                )
                abort_uploads(result.objects, self.bucket)
        return kept

    def of_one_schema(self, results: list[SliceResult]) -> list[SliceResult]:
        """Without slices whose columns do not fit those of a slice before them, which another task read.

        Read again, with the columns of the other known, the records that do not fit are bad records.
        """
        kept, columns = [], {topic: own.known for topic, own in self.typed.items()}
        for result in results:
            topic = result.slice.topic
            if topic in columns and result.schema is not None and result.end > result.slice.start:
                try:
                    columns[topic] = evolved(columns[topic], result.schema, self.typed[topic].mode)
                except Incompatible as error:
                    logs.warning(
                        "two slices of a flush have columns that do not fit; reading one again",
                        slice=str(result.slice),
                        cause=str(error),
                    )
                    abort_uploads(result.objects, self.bucket)
                    continue
            kept.append(result)
        return kept

    def contiguous(self, results: list[SliceResult]) -> list[SliceResult]:
        """Without slices behind one that stopped early: committing them would skip records."""
        kept = contiguous_slices((r.slice, r.end) for r in results)
        left_out = [r for r in results if r.slice not in kept]
        abort_uploads((entry for result in left_out for entry in result.objects), self.bucket)
        return [r for r in results if r.slice in kept]


def abort_uploads(objects: Iterable[ObjectEntry], bucket: Bucket) -> None:
    """Best effort: an orphaned upload is invisible and only costs storage, and so do staged dead letters."""
    for entry in objects:
        try:
            if entry.upload_id:
                bucket.named(entry.bucket).abort_upload(entry.key, entry.upload_id)
            elif entry.letters == STAGED:
                bucket.delete(entry.key)
        except S3SinkError as error:
            logs.warning("could not abort an upload; `s3sink gc` removes it later", key=entry.key, error=str(error))
