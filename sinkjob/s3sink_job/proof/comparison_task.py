"""The Spark task of `s3sink verify`: reads a partition from Kafka and compares it with the objects written of it.

It reads the partition in offset order, encodes the records as the manifest says, and compares the result with the bytes
in the bucket, object by object. Memory holds one object of each group at a time.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_api.spec import Destination
from s3sink_job.base.retry import RetryPolicy
from s3sink_job.base.secrets import Secrets
from s3sink_job.decode.decoder import Decoder
from s3sink_job.decode.schema_access import NO_ACCESS, SchemaAccess
from s3sink_job.decode.settings import Decoding
from s3sink_job.flush.kafka_metadata import TopicPartition
from s3sink_job.layout.folders import folders_of
from s3sink_job.layout.groups import groups_of
from s3sink_job.layout.keys import MAX_KEY_BYTES
from s3sink_job.layout.settings import Grouping
from s3sink_job.proof.flush_history import WrittenObject
from s3sink_job.proof.object_contents import (
    SCHEMA_FAULTS,
    UnreadableObject,
    UnreadableRecords,
    difference,
    expected_rows,
    read_rows,
)
from s3sink_job.proof.verify_report import RecordCounts
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.factory import open_bucket
from s3sink_job.task.encoding import Encoding


@dataclass(frozen=True)
class ExpectedPartition:
    """What the manifests say of one partition."""

    objects: tuple[WrittenObject, ...]
    """In the order of their first offsets."""
    left_out: frozenset[int]
    """Offsets of skipped records and of gaps."""
    compacted: bool = False
    """Kafka may have dropped records that were written. Then the objects may hold more than Kafka does."""
    without_tombstones: tuple[tuple[int, int], ...] = ()
    """Ranges of offsets whose tombstones were left out."""
    schemas: Mapping[str, str] = field(default_factory=dict)
    """By name: those that objects were written by."""


@dataclass(frozen=True)
class ComparisonTask:
    expected: Mapping[TopicPartition, ExpectedPartition]
    destination: Destination
    secrets: Secrets
    retrying: RetryPolicy

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row with the counts of the partition, as JSON. None if Kafka has no record of it."""
        comparison: PartitionComparison | None = None
        for batch in batches:
            if batch.num_rows == 0:
                continue
            if comparison is None:
                at = (batch.column("topic")[0].as_py(), batch.column("partition")[0].as_py())
                bucket = open_bucket(self.destination, self.secrets, self.retrying)
                access = SchemaAccess(self.secrets, self.retrying)
                comparison = PartitionComparison(at, self.expected[at], bucket, access)
            try:
                comparison.add(batch)
            except UnreadableRecords as error:
                comparison.give_up(str(error))
                break
        if comparison is not None:
            comparison.finish()
            row = json.dumps({"at": comparison.at, **asdict(comparison.counts)})
            yield pa.RecordBatch.from_arrays([pa.array([row], pa.string())], ["result"])


@dataclass(frozen=True)
class GroupingRules:
    """Only what decides on the group of a record."""

    decoding: Decoding
    grouping: Grouping

    @classmethod
    def of(cls, encoding: Encoding) -> GroupingRules:
        return cls(replace(encoding.decoding, supplied=None), encoding.grouping.rules)


@dataclass
class GroupObjects:
    """The objects of one group that are still to be compared, and the records read so far for the first of them."""

    objects: deque[WrittenObject] = field(default_factory=deque)
    records: list[pa.RecordBatch] = field(default_factory=list)


@dataclass
class PartitionComparison:
    at: TopicPartition
    expected: ExpectedPartition
    bucket: Bucket
    access: SchemaAccess = NO_ACCESS
    counts: RecordCounts = field(default_factory=RecordCounts)
    _groups: dict[tuple[GroupingRules, tuple[str, ...]], GroupObjects] = field(default_factory=dict)
    """By the rules of grouping and the group: other rules give the same names to other groups."""
    _spans: dict[GroupingRules, tuple[int, int]] = field(default_factory=dict)
    """First and last offset of the objects that were grouped by these rules."""

    def __post_init__(self) -> None:
        for written in self.expected.objects:
            entry, rules = written.entry, GroupingRules.of(written.encoding)
            self._groups.setdefault((rules, entry.group), GroupObjects()).objects.append(written)
            first, last = self._spans.get(rules, (entry.first, entry.last))
            self._spans[rules] = (min(first, entry.first), max(last, entry.last))
        self._left_out = pa.array(sorted(self.expected.left_out), pa.int64())

    def add(self, batch: pa.RecordBatch) -> None:
        """Assigns the records to objects. A record of no object must have been left out on purpose."""
        if len(self._left_out):
            batch = batch.filter(pc.invert(pc.is_in(batch.column("offset"), value_set=self._left_out)))
        batch = self._without_tombstones(batch)
        for rules, (first, last) in self._spans.items():
            offsets = batch.column("offset")
            if batch.num_rows and pc.min(offsets).as_py() <= last and first <= pc.max(offsets).as_py():
                batch = self._assign(batch, rules)
        self._count_missing(batch)

    def _assign(self, batch: pa.RecordBatch, rules: GroupingRules) -> pa.RecordBatch:
        """Assigns the records to the objects that were grouped by these rules. Returns the records of no object."""
        left = []
        for name, records in self._split(batch, rules):
            group = self._groups.get((rules, name))
            left.append(records if group is None else self._assign_to_group(group, records))
        # In order again: the next rules cut the batch at the ends of objects.
        return pa.concat_batches(left).sort_by("offset") if left else batch

    def _split(self, batch: pa.RecordBatch, rules: GroupingRules) -> Iterator[tuple[tuple[str, ...], pa.RecordBatch]]:
        decoded = Decoder(rules.decoding, access=self.access).decode(batch)
        folders = folders_of(decoded, rules.grouping, *self.at, MAX_KEY_BYTES)
        groups = groups_of(batch, rules.grouping, folders)
        if missing := next((bad for bad in decoded.bad if bad.reason in SCHEMA_FAULTS), None):
            where = f"{self.at[0]}-{self.at[1]}"
            raise UnreadableRecords(f"{where}: not compared, because its records cannot be read: {missing.message}")
        if groups is None:
            yield (), batch
            return
        for code, group in enumerate(groups.keys):
            yield group, batch.filter(pc.equal(groups.codes, code))

    def _assign_to_group(self, group: GroupObjects, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Cuts the batch at the ends of objects, and compares each object that is complete."""
        between = []
        while batch.num_rows and group.objects:
            entry = group.objects[0].entry
            before = pc.sum(pc.less(batch.column("offset"), entry.first)).as_py() or 0
            between.append(batch.slice(0, before))
            batch = batch.slice(before)
            inside = pc.sum(pc.less_equal(batch.column("offset"), entry.last)).as_py() or 0
            if inside:
                group.records.append(batch.slice(0, inside))
            if inside == batch.num_rows:
                batch = batch.slice(inside)
                break
            batch = batch.slice(inside)
            self._compare_first(group)
        return pa.concat_batches([*between, batch])

    def give_up(self, why: str) -> None:
        """Leaves out the objects that are not compared yet."""
        self.counts.add_finding(why)
        self._groups.clear()

    def finish(self) -> None:
        for group in self._groups.values():
            while group.objects:
                self._compare_first(group)

    def _without_tombstones(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Tombstones that were left out may lie between the records of an object."""
        if not batch.column("value").null_count:
            return batch
        first, last = pc.min_max(batch.column("offset")).as_py().values()
        for start, end in self.expected.without_tombstones:
            if start <= last and first < end:
                offsets = batch.column("offset")
                within = pc.and_(pc.greater_equal(offsets, start), pc.less(offsets, end))
                batch = batch.filter(pc.invert(pc.and_(within, batch.column("value").is_null())))
        return batch

    def _count_missing(self, batch: pa.RecordBatch) -> None:
        for offset in batch.column("offset").to_pylist():
            self.counts.missing += 1
            self.counts.add_finding(f"{self.at[0]}-{self.at[1]} offset {offset}: in Kafka, but in no object")

    def _compare_first(self, group: GroupObjects) -> None:
        """Compares the first object of the group with the records read for it."""
        written = group.objects.popleft()
        entry, counts = written.entry, self.counts
        records, group.records = group.records, []
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
        counts.records += found.num_rows
        schema = self.expected.schemas.get(written.schema, "")
        try:
            wanted = expected_rows(found, records, written.encoding, entry, schema, self.access)
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
