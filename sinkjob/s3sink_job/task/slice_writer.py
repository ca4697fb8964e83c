"""Writes one slice: batches of Kafka records in, uploaded objects out.

A bad record is a result, not an exception: the task finishes the objects before it and reports where it stopped, so
that other slices are not affected. A store that stays unavailable is reported in the same way. An exception would fail
the whole Spark job.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Lock

import pyarrow as pa

from s3sink_job.base.errors import S3SinkError
from s3sink_job.layout.groups import Groups
from s3sink_job.layout.keys import MAX_KEY_BYTES, room_for_folder
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.factory import open_bucket
from s3sink_job.stores.request_limit import RequestLimit
from s3sink_job.task.bad_records import BadRecordHandler
from s3sink_job.task.open_objects import OpenObjects
from s3sink_job.task.record_objects import RecordObjects
from s3sink_job.task.record_pipeline import RecordPipeline
from s3sink_job.task.refused_keys import RefusedKeys, refusal
from s3sink_job.task.slice_objects import SliceObjects
from s3sink_job.task.slice_result import LARGE_RECORD, Failure, SliceResult
from s3sink_job.task.slice_rows import RowCheck
from s3sink_job.task.task_settings import SliceWork


class SliceWriter:
    def __init__(self, work: SliceWork) -> None:
        self._work, self._slice = work, work.slice
        self._settings, self._target = work.settings, work.target
        self._rows = RowCheck(work.slice)
        self._bad = BadRecordHandler(self._settings.bad_records, work.slice)
        self._keys = RefusedKeys(work)
        self._failure: Failure | None = None
        self._read_bytes = 0
        self._early_end: int | None = None
        """Where the slice ends because the next batch would make too many objects."""
        self._limit = RequestLimit(self._settings.request_limit)
        self._retries, self._retries_lock = 0, Lock()
        bucket = open_bucket(
            *(self._target.destination, self._settings.secrets, self._settings.retry),
            limit=self._limit,
            on_retry=self._count_retry,
        )
        encoding = self._target.encoding
        self._access = self._settings.schema_access()
        self._builder = encoding.row_builder(self._slice.topic, self._slice.generation, work.schema, self._access)
        self._pipeline = RecordPipeline(encoding, self._slice, self._builder, _longest_folder(work))
        self._objects = _open_objects(work, bucket, self._builder.widen_to_text)

    def _count_retry(self) -> None:
        with self._retries_lock:
            self._retries += 1

    def stop_at_large(self, offset: int) -> None:
        self._failure = Failure(LARGE_RECORD, f"offset {offset} is a large record", retryable=True)

    def write(self, batch: pa.RecordBatch) -> bool:
        """Whether to go on: False once the slice ends early or failed."""
        self._rows.check(batch)
        try:
            self._write(batch)
        except S3SinkError as error:
            self._failure = _failure_of(error)
        if self._early_end is not None:
            return False
        self._read_bytes += batch.nbytes
        return self._failure is None

    def finish(self) -> SliceResult:
        if self._failure is None or self._failure.offset is not None:
            try:
                self._objects.close()
                refused = refusal(self._objects, self._slice, self._target.destination.prefix)
                self._failure = refused or self._failure
            except S3SinkError as error:
                self._failure = _failure_of(error)
        result = SliceResult(
            *(self._slice, self._slice.start),
            failure=self._failure,
            request_retries=self._retries,
            throttled=self._limit.throttled,
            request_limit=self._limit.now,
            found_schemas=self._access.found,
        )
        if self._failure is not None and self._failure.offset is None:
            self.abandon()
            refused_keys = self._objects.refused if self._failure.reason == "KeyRefused" else {}
            return replace(result, refused_keys=tuple(refused_keys.items()))
        self._objects.release()
        end = self._end
        return replace(
            result,
            end=end,
            objects=tuple(self._objects.done),
            skipped=tuple(offset for offset in self._bad.skipped if offset < end),
            read_bytes=self._read_bytes,
            schema=self._builder.schema,
        )

    @property
    def _end(self) -> int:
        """The first offset that is not written."""
        if self._failure is not None and self._failure.offset is not None:
            return self._failure.offset
        return self._slice.end if self._early_end is None else self._early_end

    def abandon(self) -> None:
        self._objects.abandon()

    def _write(self, batch: pa.RecordBatch) -> None:
        first = batch.column("offset")[0].as_py()
        prepared = self._pipeline.prepare(batch)
        if prepared is None:
            return
        if self._keys.possible:
            prepared.refuse_groups(self._keys.reason)
        if self._too_many_objects(prepared.groups):
            self._early_end = first
            return
        if prepared.bad:
            prepared = prepared.filter(self._bad.rows_to_write(prepared.offsets, prepared.bad))
            self._failure = self._bad.failure
        if len(prepared.offsets):
            self._objects.write(prepared.rows, prepared.offsets, prepared.groups)

    def _too_many_objects(self, groups: Groups | None) -> bool:
        """Never for the first batch: a slice always makes progress."""
        limit = self._settings.object_limit
        return limit is not None and self._read_bytes > 0 and self._objects.count_with(groups) > limit


def _failure_of(error: S3SinkError) -> Failure:
    return Failure(error.reason, str(error), error.retryable)


def _longest_folder(work: SliceWork) -> int:
    """Bytes. A lost object that is written again had room for its folder."""
    if work.rewrites:
        return MAX_KEY_BYTES
    encoding, prefix = work.target.encoding, work.target.destination.prefix
    return room_for_folder(prefix, encoding.layout, work.slice.topic, encoding.extension, work.settings.name_mark)


def _open_objects(work: SliceWork, bucket: Bucket, as_text: Callable[[tuple[str, ...]], None]) -> SliceObjects:
    if work.target.encoding.format.one_record_objects:
        return RecordObjects(work, bucket)
    return OpenObjects(work, bucket, as_text)
