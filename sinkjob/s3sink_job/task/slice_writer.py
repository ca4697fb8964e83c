"""Writes one slice: batches of Kafka records in, uploaded objects out.

A bad record is a result, not an exception: the task finishes the objects before it and reports where it stopped, so
that other slices are not affected. A store that stays unavailable is reported in the same way. An exception would fail
the whole Spark job.
"""

from __future__ import annotations

from dataclasses import replace
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.base.errors import FinalError, ProtocolError, S3SinkError
from s3sink_job.columns.types import Column
from s3sink_job.decode.bad_records import BadRecord
from s3sink_job.decode.batch_parts import in_parts
from s3sink_job.layout.groups import Groups
from s3sink_job.layout.keys import MAX_KEY_BYTES, room_for_folder
from s3sink_job.shape.row_builder import RowBuilder
from s3sink_job.shape.transformer import TypesChanged
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.factory import open_bucket
from s3sink_job.stores.request_limit import RequestLimit
from s3sink_job.task.bad_records import BadRecordHandler
from s3sink_job.task.letter_objects import LetterObjects, has_whole_records
from s3sink_job.task.open_objects import OpenObjects
from s3sink_job.task.record_objects import RecordObjects
from s3sink_job.task.record_pipeline import PreparedBatch, RecordPipeline
from s3sink_job.task.refused_keys import RefusedKeys, refusal
from s3sink_job.task.slice_objects import SliceObjects
from s3sink_job.task.slice_result import DEAD_LETTER, ID_IN_HEADER, LARGE_RECORD, UNCOUNTED, Failure, SliceResult
from s3sink_job.task.slice_rows import LeftOutCount, RowCheck, without_frame
from s3sink_job.task.staged_letters import StagedLetters
from s3sink_job.task.task_settings import SliceWork


class SliceWriter:
    def __init__(self, work: SliceWork) -> None:
        self._work, self._slice = work, work.slice
        self._settings, self._target = work.settings, work.target
        self._rows, self._left_out = RowCheck(work.slice), LeftOutCount(work.slice)
        missing = work.target.encoding.layout.missing
        self._bad = BadRecordHandler(self._settings.bad_records, work.slice, missing, work.committed)
        self._keys = RefusedKeys(work)
        self._failure: Failure | None = None
        self._read_bytes = self._unknown_fields = self._filtered = 0
        self._early_end: int | None = None
        """Where the slice ends because the next batch would make too many objects."""
        self._limit = RequestLimit(self._settings.request_limit)
        self._retries, self._retries_lock = 0, Lock()
        self._bucket = open_bucket(
            *(self._target.destination, self._settings.secrets, self._settings.retry),
            limit=self._limit,
            on_retry=self._count_retry,
        )
        encoding = self._target.encoding
        self._framed_parts = encoding.framed_parts
        if work.committed is not None:
            encoding = encoding.with_input_types(work.committed.inputs)
        self._access = self._settings.schema_access()
        self._builder = encoding.row_builder(self._slice.topic, self._slice.generation, work.schema, self._access)
        self._pipeline = RecordPipeline(encoding, self._slice, self._builder, _longest_folder(work))
        data = replace(work, rewrites=work.lost_data)
        self._objects = _open_objects(data, self._bucket, self._builder)
        self._letters: LetterObjects | StagedLetters | None = None
        """Opened with the first dead letter."""

    def _count_retry(self) -> None:
        with self._retries_lock:
            self._retries += 1

    def stop_at_large(self, offset: int) -> None:
        self._failure = Failure(LARGE_RECORD, f"offset {offset} is a large record", retryable=True)

    def write(self, batch: pa.RecordBatch) -> bool:
        """Whether to go on: False once the slice ends early or failed."""
        self._rows.check(batch)
        batch = self._left_out.take(batch)
        try:
            self._write(batch)
        except S3SinkError as error:
            self._failure = _failure_of(error)
        if self._early_end is not None:
            return False
        self._read_bytes += batch.nbytes
        return self._failure is None

    def finish(self) -> SliceResult:
        if self._failure is None and self._end == self._slice.end and not self._left_out.is_complete:
            text = "Spark left records out behind the last that it handed over"
            self._failure = Failure(UNCOUNTED, text, retryable=True)
        if self._failure is None or self._failure.offset is not None:
            try:
                self._close_letters()
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
        letters = self._letters.done if self._letters else []
        end = self._end
        return replace(
            result,
            end=end,
            objects=(*self._objects.done, *letters),
            skipped=tuple(offset for offset in self._bad.skipped if offset < end),
            letters=tuple(offset for offset in self._bad.letters if offset < end),
            shown=tuple(self._bad.shown),
            read_bytes=self._left_out.of_all(self._read_bytes),
            schema=self._builder.schema,
            unknown_fields=self._unknown_fields,
            filtered=self._filtered + self._left_out.before(end),
            inputs=self._builder.input_types,
        )

    @property
    def _end(self) -> int:
        """The first offset that is not written."""
        if self._failure is not None and self._failure.offset is not None:
            return self._failure.offset
        return self._slice.end if self._early_end is None else self._early_end

    def abandon(self) -> None:
        self._objects.abandon()
        if self._letters is not None:
            self._letters.abandon()

    def _write_letters(self, batch: pa.RecordBatch, letters: list[BadRecord]) -> None:
        if not has_whole_records(batch):
            text = f"offset {self._bad.letters[-1]} is a dead letter, and not all columns were read"
            self._failure = Failure(DEAD_LETTER, text, retryable=True)
            return
        if self._letters is None:
            if self._settings.letters is None:
                raise ProtocolError("there is no place for dead letters")
            kind = StagedLetters if self._settings.letters.staging else LetterObjects
            self._letters = kind(self._work, self._bucket, self._settings.letters)
        self._letters.write(batch, letters)

    def _close_letters(self) -> None:
        if self._letters is None:
            return
        self._letters.close()
        if self._letters.refused:
            raise FinalError(f"{self._slice}: dead letters cannot be written: {self._letters.refused}")
        self._letters.release()

    def _write(self, batch: pa.RecordBatch) -> None:
        def prepare(part: pa.RecordBatch) -> tuple[int, PreparedBatch | None]:
            first = part.column("offset")[0].as_py()
            try:
                return first, self._pipeline.prepare(part)
            except TypesChanged:
                if self._work.committed is not None:
                    text = f"{self._slice}: its fields do not have the types that they were written with"
                    raise ProtocolError(text) from None
                self._early_end = first
                return first, None

        for first, prepared in in_parts(batch, prepare):
            if prepared is not None:
                self._write_prepared(prepared, first)
                self._count_filtered(prepared.filtered)
            if self._failure is not None or self._early_end is not None:
                return

    def _count_filtered(self, offsets: Column) -> None:
        """Only those before the end of the slice: the others are read again."""
        end = self._end
        self._filtered += len(offsets) if end == self._slice.end else pc.sum(pc.less(offsets, end)).as_py() or 0

    def _write_prepared(self, prepared: PreparedBatch, first: int) -> None:
        """`first` is the first offset that was read for it."""
        if self._keys.possible:
            prepared.refuse_groups(self._keys.reason)
        if self._too_many_objects(prepared.groups):
            self._early_end = first
            return
        self._unknown_fields += prepared.unknown_fields
        if self._work.committed is not None:
            self._work.committed.refuse(prepared.offsets, prepared.bad)
        if prepared.bad:
            if (offset := without_frame(prepared.bad.batch, self._framed_parts)) is not None:
                text = f"offset {offset} has no frame, and headers with ids of schemas were not read"
                self._failure = Failure(ID_IN_HEADER, text, retryable=True)
                return
            kept, letters = self._bad.handle(prepared.offsets, prepared.bad)
            self._failure = self._bad.failure
            # Without lost dead letters all of them are in their objects already.
            if letters and self._work.lost_letters != ():
                self._write_letters(prepared.bad.batch, letters)
            prepared = prepared.filter(kept)
        if len(prepared.offsets):
            self._objects.write(prepared.rows, prepared.offsets, prepared.groups, prepared.schemas)

    def _too_many_objects(self, groups: Groups | None) -> bool:
        """Never for the first batch: a slice always makes progress."""
        limit = self._settings.object_limit
        return limit is not None and self._read_bytes > 0 and self._objects.count_with(groups) > limit


def _failure_of(error: S3SinkError) -> Failure:
    return Failure(error.reason, str(error), error.retryable)


def _longest_folder(work: SliceWork) -> int:
    """Bytes. A lost object that is written again had room for its folder."""
    if work.rewrites is not None:
        return MAX_KEY_BYTES
    encoding, prefix = work.target.encoding, work.target.destination.prefix
    mark = work.settings.name_mark(encoding.layout)
    return room_for_folder(prefix, encoding.layout, work.slice.topic, encoding.extension, mark)


def _open_objects(work: SliceWork, bucket: Bucket, builder: RowBuilder) -> SliceObjects:
    if work.target.encoding.format.one_record_objects:
        return RecordObjects(work, bucket)
    return OpenObjects(work, bucket, builder)
