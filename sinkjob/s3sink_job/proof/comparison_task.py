"""The Spark task of `s3sink verify`: reads a partition from Kafka and compares it with the objects written of it.

It reads the partition in offset order, encodes the records as the manifest says, and compares the result with the bytes
in the bucket, object by object. Memory holds one object of each group at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_api.spec import Destination
from s3sink_job.base.retry import RetryPolicy
from s3sink_job.base.secrets import Secrets
from s3sink_job.decode.schema_access import SchemaAccess
from s3sink_job.flush.kafka_metadata import TopicPartition
from s3sink_job.proof.flush_history import WrittenObject
from s3sink_job.proof.letter_contents import digests, letter_records, millis, records_in_letters
from s3sink_job.proof.object_contents import (
    UnreadableObject,
    UnreadableRecords,
    comparable_lines,
    difference,
    expected_rows,
    read_rows,
)
from s3sink_job.proof.records_by_object import ExpectedPartition, RecordsByObject, assign_all, result_row
from s3sink_job.proof.verify_report import RecordCounts
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.factory import open_bucket


@dataclass(frozen=True)
class ComparisonTask:
    expected: Mapping[TopicPartition, ExpectedPartition]
    destination: Destination
    secrets: Secrets
    retrying: RetryPolicy

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row with the counts of the partition, as JSON. None if Kafka has no record of it."""
        comparison = assign_all(batches, self._begin)
        if comparison is not None:
            yield result_row({"at": comparison.at, **asdict(comparison.counts)})

    def _begin(self, at: TopicPartition) -> PartitionComparison:
        bucket = open_bucket(self.destination, self.secrets, self.retrying)
        return PartitionComparison(at, self.expected[at], SchemaAccess(self.secrets, self.retrying), bucket=bucket)


@dataclass
class PartitionComparison(RecordsByObject):
    bucket: Bucket = field(kw_only=True)
    counts: RecordCounts = field(default_factory=RecordCounts)
    _gave_up: bool = False

    def add(self, batch: pa.RecordBatch) -> None:
        if self.expected.sent is not None and self.expected.sent.num_rows:
            self._compare_sent(batch, self.expected.sent)
        super().add(batch)

    def _compare_sent(self, batch: pa.RecordBatch, sent: pa.Table) -> None:
        """Dead letters in a topic have the key, value, headers and timestamp of their records."""
        first, last = (pc.min_max(batch.column("offset")).as_py()[name] for name in ("min", "max"))
        offsets = sent.column("offset").to_numpy()
        start, end = offsets.searchsorted(first), offsets.searchsorted(last, side="right")
        letters = sent.slice(start, end - start)
        at = pc.index_in(letters.column("offset"), value_set=batch.column("offset")).combine_chunks()
        letters, records = letters.filter(at.is_valid()), batch.take(at.drop_null())
        if not letters.num_rows:
            return
        times = millis(records)
        # A record without a timestamp got the time of sending.
        untimed = pc.or_(letters.column("timestamp").is_null(), pc.less(times, 0))
        same_time = pc.or_(untimed, pc.fill_null(pc.equal(letters.column("timestamp"), times), False))
        same = pc.and_(same_time, pc.equal(letters.column("digest"), digests(records)))
        for offset in letters.column("offset").filter(pc.invert(same)).to_pylist():
            self.counts.missing += 1
            self.counts.add_finding(
                f"{self.at[0]}-{self.at[1]} offset {offset}: its dead letter in the topic has another key, value, "
                "headers or timestamp"
            )

    def finish(self) -> None:
        super().finish()
        start, end = self.expected.span
        for part in self.expected.filters:
            found, whole = self._filtered[part], start <= part.start and part.end <= end
            fewer = self.expected.compacted and found < part.filtered
            if whole and found != part.filtered and not fewer and not self._gave_up:
                self.counts.add_finding(
                    f"{self.at[0]}-{self.at[1]} offsets {part.start} to {part.end - 1}: the flush left {part.filtered} "
                    f"records out by its transform, and the transform leaves out {found}"
                )

    def give_up(self, why: str) -> None:
        self._gave_up = True
        self.counts.add_finding(why)
        super().give_up(why)

    def _in_no_object(self, batch: pa.RecordBatch) -> None:
        for offset in batch.column("offset").to_pylist():
            self.counts.missing += 1
            self.counts.add_finding(f"{self.at[0]}-{self.at[1]} offset {offset}: in Kafka, but in no object")

    def _in_object(self, written: WrittenObject, records: list[pa.RecordBatch]) -> None:
        """Compares the object with the records read for it."""
        entry, counts = written.entry, self.counts
        count = sum(batch.num_rows for batch in records)
        try:
            found = read_rows(self.bucket.named(entry.bucket), entry, written.encoding)
        except UnreadableObject as error:
            counts.missing += count
            counts.add_finding(str(error))
            return
        if found is None:
            counts.missing += count
            counts.add_finding(f"{entry.key}: not in the bucket, {count} records missing")
            return
        counts.add_rows(found.num_rows, letters=bool(entry.letters))
        schema = self.expected.schemas.get(written.schema, "")
        try:
            if entry.letters:
                wanted, found = letter_records(records), records_in_letters(found)
            else:
                wanted = expected_rows(found, records, written.encoding, entry, schema, self.access)
                found = comparable_lines(found, written.encoding)
        except UnreadableRecords as error:
            counts.add_finding(str(error))
            return
        if wanted.equals(found):
            return
        apart = difference(wanted, found)
        if not apart or (self.expected.compacted and not apart.missing and found.num_rows == entry.rows):
            return
        counts.missing += apart.missing
        counts.duplicates += apart.unexpected
        order = "" if apart.missing or apart.unexpected else ", in another order"
        counts.add_finding(
            f"{entry.key}: {apart.missing} records missing, {apart.unexpected} unexpected records{order}"
        )
