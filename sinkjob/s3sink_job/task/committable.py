"""Which results of a flush may be committed. The uploads of the others are aborted, and their slices read again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from s3sink_job.base.errors import FinalError, S3SinkError
from s3sink_job.columns.evolution import Incompatible, widened
from s3sink_job.flush.manifest import ObjectEntry, SourceLog
from s3sink_job.flush.slicing import contiguous_slices
from s3sink_job.flush.state import SinkState, same_topic
from s3sink_job.kafka.admin import Admin
from s3sink_job.kafka.leaders import truncated_meanwhile
from s3sink_job.report import logs
from s3sink_job.stores.bucket import Bucket
from s3sink_job.task.slice_result import SliceResult


@dataclass(frozen=True)
class CommitCheck:
    """`source_logs` are the logs that the plan was made for."""

    state: SinkState
    source_logs: Mapping[str, SourceLog]
    admin: Admin
    bucket: Bucket

    typed: Mapping[str, pa.StructType] = field(default_factory=dict)
    """The known columns of topics whose records bring their types along."""

    def committable(self, results: list[SliceResult], *, most_bad_records: int) -> list[SliceResult]:
        kept = self.contiguous(self.of_one_schema(self.of_unchanged_logs(results)))
        skipped = sum(len(r.skipped) for r in kept)
        if skipped > most_bad_records:
            abort_uploads((entry for result in kept for entry in result.objects), self.bucket)
            raise FinalError(
                f"{skipped} bad records in one flush, more than errors.maxPerFlush = {most_bad_records}. Nothing of "
                "the flush was committed. Correct the producer, or raise the limit",
                reason="TooManyBadRecords",
            )
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
        kept, columns = [], dict(self.typed)
        for result in results:
            topic = result.slice.topic
            if topic in columns and result.schema is not None and result.end > result.slice.start:
                try:
                    columns[topic] = widened(columns[topic], result.schema)
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
    """Best effort: an orphaned upload is invisible and only costs storage."""
    for entry in objects:
        if not entry.upload_id:
            continue
        try:
            bucket.named(entry.bucket).abort_upload(entry.key, entry.upload_id)
        except S3SinkError as error:
            logs.warning("could not abort an upload; `s3sink gc` removes it later", key=entry.key, error=str(error))
