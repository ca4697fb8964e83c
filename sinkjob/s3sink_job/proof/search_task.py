"""Spark tasks of `s3sink find`: they read records from Kafka, and find the row of an object that holds one of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.base.retry import RetryPolicy
from s3sink_job.base.secrets import Secrets
from s3sink_job.decode.batch_parts import in_parts
from s3sink_job.decode.schema_access import SchemaAccess
from s3sink_job.flush.kafka_metadata import TopicPartition
from s3sink_job.flush.manifest import Slice
from s3sink_job.layout.keys import MAX_KEY_BYTES
from s3sink_job.proof.flush_history import WrittenObject
from s3sink_job.proof.object_contents import UnreadableRecords
from s3sink_job.proof.records_by_object import ExpectedPartition, RecordsByObject, assign_all, result_row
from s3sink_job.task.encoding import Encoding
from s3sink_job.task.record_pipeline import RecordPipeline

NO_OBJECT = -1


@dataclass(frozen=True)
class SearchTask:
    expected: Mapping[TopicPartition, ExpectedPartition]
    secrets: Secrets
    retrying: RetryPolicy
    offset: int | None = None
    key: bytes | None = None
    """One of the two."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row for the partition, as JSON: its matches. Raises if its records cannot be read any more."""
        search = assign_all(batches, self._begin)
        if search is not None:
            yield result_row({"at": search.at, "matches": search.matches})

    def _begin(self, at: TopicPartition) -> RecordSearch:
        return RecordSearch(at, self.expected[at], SchemaAccess(self.secrets, self.retrying), task=self)


@dataclass
class RecordSearch(RecordsByObject):
    task: SearchTask = field(kw_only=True)
    matches: list[tuple[int, int, int]] = field(default_factory=list)
    """Number of the object, row, offset. The number is `NO_OBJECT` for a record that a transform left out."""

    def _leave_out(self, offsets: pa.Array) -> None:
        if self.task.offset is not None and pc.any(pc.equal(offsets, self.task.offset)).as_py():
            self.matches.append((NO_OBJECT, 0, self.task.offset))

    def give_up(self, why: str) -> None:
        raise UnreadableRecords(why)

    def _in_object(self, written: WrittenObject, records: list[pa.RecordBatch]) -> None:
        before, number = 0, self.expected.objects.index(written)
        for batch in records:
            name, wanted = ("offset", self.task.offset) if self.task.key is None else ("key", self.task.key)
            found = pc.indices_nonzero(pc.fill_null(pc.equal(batch.column(name), wanted), False))
            for row in found.to_pylist():
                self.matches.append((number, before + row, batch.column("offset")[row].as_py()))
            before += batch.num_rows

    def _in_no_object(self, batch: pa.RecordBatch) -> None:
        """Not searched for: its absence from all objects is what `verify` finds."""


@dataclass(frozen=True)
class FaultTask:
    """Why a record that was skipped is bad."""

    encoding: Encoding
    slice: Slice
    secrets: Secrets
    retrying: RetryPolicy

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        access = SchemaAccess(self.secrets, self.retrying)
        builder = self.encoding.row_builder(self.slice.topic, self.slice.generation, access=access)
        pipeline = RecordPipeline(self.encoding, self.slice, builder, MAX_KEY_BYTES)
        for prepared in (found for batch in batches for found in in_parts(batch, pipeline.prepare)):
            for bad in prepared.bad if prepared else ():
                yield result_row({"reason": bad.reason, "message": bad.message})
