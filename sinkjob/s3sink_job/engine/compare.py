"""The part of `s3sink verify` that reads: a partition's records in Kafka beside the objects made of them.

A Spark task walks one partition in offset order, encodes what it reads as the manifest says it was
encoded, and compares with the bytes in the bucket, object by object. Memory holds one object at a time.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.encoding import Encoding, encoding_from_doc
from s3sink_job.engine.contents import Unreadable, difference, read_rows, rows_as
from s3sink_job.flush.keys import MAX_KEY_BYTES
from s3sink_job.flush.manifest import ObjectEntry
from s3sink_job.layout import Layout
from s3sink_job.records.folders import folders_of
from s3sink_job.records.groups import groups_of
from s3sink_job.secrets import Secrets
from s3sink_job.spec import Destination
from s3sink_job.stores.bucket import Bucket, Retrying
from s3sink_job.stores.client import open_bucket

MOST_FINDINGS = 20


@dataclass(frozen=True)
class Expected:
    """One partition: its objects in order of their first offsets, and what was left out on purpose."""

    objects: tuple[tuple[ObjectEntry, Mapping[str, Any]], ...]
    left_out: frozenset[int]
    compacted: bool = False
    """Kafka may have dropped records that were written: then the objects may hold more than Kafka does."""
    without_nulls: tuple[tuple[int, int], ...] = ()
    """Ranges of which tombstones were left out."""
    known: Mapping[str, str] = field(default_factory=dict)
    """By key: the schema that an object was written by, where it does not tell the types of its columns."""


@dataclass
class Tally:
    records: int = 0
    missing: int = 0
    duplicates: int = 0
    findings: list[str] = field(default_factory=list)

    def find(self, text: str) -> None:
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(text)

    def add(self, other: Tally) -> None:
        self.records += other.records
        self.missing += other.missing
        self.duplicates += other.duplicates
        for text in other.findings:
            self.find(text)


@dataclass(frozen=True)
class CompareTask:
    expected: Mapping[tuple[str, int], Expected]
    destination: Destination
    secrets: Secrets
    retrying: Retrying

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        walk: PartitionWalk | None = None
        for batch in batches:
            if batch.num_rows == 0:
                continue
            if walk is None:
                at = (batch.column("topic")[0].as_py(), batch.column("partition")[0].as_py())
                bucket = open_bucket(self.destination, self.secrets, self.retrying)
                walk = PartitionWalk(at, self.expected[at], bucket)
            walk.take(batch)
        if walk is not None:
            walk.end()
            row = json.dumps({"at": walk.at, **asdict(walk.tally)})
            yield pa.RecordBatch.from_arrays([pa.array([row], pa.string())], ["result"])


@dataclass
class Queue:
    """The objects of one group, and the records read so far of the first of them."""

    objects: deque[tuple[ObjectEntry, Encoding]] = field(default_factory=deque)
    batches: list[pa.RecordBatch] = field(default_factory=list)


@dataclass
class PartitionWalk:
    at: tuple[str, int]
    expected: Expected
    bucket: Bucket
    tally: Tally = field(default_factory=Tally)
    _queues: dict[tuple[Encoding, tuple[str, ...]], Queue] = field(default_factory=dict)
    """By the rules of grouping and the group: other rules give the same names to other groups."""
    _spans: dict[Encoding, tuple[int, int]] = field(default_factory=dict)
    """First and last offset of the objects that were grouped by these rules."""

    def __post_init__(self) -> None:
        for entry, doc in self.expected.objects:
            encoding = encoding_from_doc(doc)
            rules = grouping(encoding)
            self._queues.setdefault((rules, entry.group), Queue()).objects.append((entry, encoding))
            first, last = self._spans.get(rules, (entry.first, entry.last))
            self._spans[rules] = (min(first, entry.first), max(last, entry.last))
        self._left_out = pa.array(sorted(self.expected.left_out), pa.int64())

    def take(self, batch: pa.RecordBatch) -> None:
        """What belongs to no object must have been left out on purpose."""
        if len(self._left_out):
            batch = batch.filter(pc.invert(pc.is_in(batch.column("offset"), value_set=self._left_out)))
        batch = self._without_nulls(batch)
        for rules, (first, last) in self._spans.items():
            offsets = batch.column("offset")
            if batch.num_rows and pc.min(offsets).as_py() <= last and first <= pc.max(offsets).as_py():
                batch = self._take_grouped(batch, rules)
        self._uncovered(batch)

    def _take_grouped(self, batch: pa.RecordBatch, rules: Encoding) -> pa.RecordBatch:
        """Gives the records to the objects that were grouped by these rules; returns those nobody took."""
        left = []
        for group, mine in self._split(batch, rules):
            queue = self._queues.get((rules, group))
            left.append(mine if queue is None else self._take_queued(queue, mine))
        # In order again: whoever is asked next cuts at the ends of objects.
        return pa.concat_batches(left).sort_by("offset") if left else batch

    def _split(self, batch: pa.RecordBatch, rules: Encoding) -> Iterator[tuple[tuple[str, ...], pa.RecordBatch]]:
        folders, _ = folders_of(batch, rules, *self.at, MAX_KEY_BYTES)
        groups = groups_of(batch, rules, folders)
        if groups is None:
            yield (), batch
            return
        for code, group in enumerate(groups.keys):
            yield group, batch.filter(pc.equal(groups.codes, code))

    def _take_queued(self, queue: Queue, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Cuts the batch at the ends of objects."""
        between = []
        while batch.num_rows and queue.objects:
            entry, _ = queue.objects[0]
            before = pc.sum(pc.less(batch.column("offset"), entry.first)).as_py() or 0
            between.append(batch.slice(0, before))
            batch = batch.slice(before)
            inside = pc.sum(pc.less_equal(batch.column("offset"), entry.last)).as_py() or 0
            if inside:
                queue.batches.append(batch.slice(0, inside))
            if inside == batch.num_rows:
                batch = batch.slice(inside)
                break
            batch = batch.slice(inside)
            self._judge(queue)
        return pa.concat_batches([*between, batch])

    def end(self) -> None:
        for queue in self._queues.values():
            while queue.objects:
                self._judge(queue)

    def _without_nulls(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Tombstones that were left out may lie between the records of an object."""
        if not batch.column("value").null_count:
            return batch
        first, last = pc.min_max(batch.column("offset")).as_py().values()
        for start, end in self.expected.without_nulls:
            if start <= last and first < end:
                offsets = batch.column("offset")
                within = pc.and_(pc.greater_equal(offsets, start), pc.less(offsets, end))
                batch = batch.filter(pc.invert(pc.and_(within, batch.column("value").is_null())))
        return batch

    def _uncovered(self, batch: pa.RecordBatch) -> None:
        for offset in batch.column("offset").to_pylist():
            self.tally.missing += 1
            self.tally.find(f"{self.at[0]}-{self.at[1]} offset {offset}: in Kafka, in no object")

    def _judge(self, queue: Queue) -> None:
        entry, encoding = queue.objects.popleft()
        batches, queue.batches = queue.batches, []
        count = sum(b.num_rows for b in batches)
        try:
            found = read_rows(self.bucket.named(entry.bucket), entry, encoding)
        except Unreadable as error:
            self.tally.missing += count
            self.tally.find(str(error))
            return
        if found is None:
            self.tally.missing += count
            self.tally.find(f"{entry.key}: not in the bucket, {count} records missing")
            return
        self.tally.records += found.num_rows
        wanted = rows_as(found, batches, encoding, entry, self.expected.known.get(entry.key, ""))
        if wanted.equals(found):
            return
        apart = difference(wanted, found)
        if not apart or (self.expected.compacted and not apart.missing and found.num_rows == entry.rows):
            return
        self.tally.missing += apart.missing
        self.tally.duplicates += apart.extra
        order = "" if apart.missing or apart.extra else ", in another order"
        self.tally.find(f"{entry.key}: {apart.missing} records missing, {apart.extra} that should not be there{order}")


def grouping(encoding: Encoding) -> Encoding:
    """Only what decides on the group of a record."""
    layout, separate = encoding.layout, encoding.nulls == "Separate"
    bare = Encoding("", "", None, "None", encoding.key, encoding.value, window=encoding.window)
    if layout.constant and not separate:
        return bare
    by_clock = any(item.source == "Wallclock" for item in layout.items)
    kept = Layout(layout.items, layout.missing, stamp=layout.stamp if by_clock else 0)
    return replace(bare, layout=kept, nulls="Separate" if separate else "Write")
