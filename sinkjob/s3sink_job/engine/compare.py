"""The part of `s3sink verify` that reads: a partition's records in Kafka beside the objects made of them.

A Spark task walks one partition in offset order, encodes what it reads as the manifest says it was
encoded, and compares with the bytes in the bucket, object by object. Memory holds one object at a time.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.encoding import Encoding, encoding_from_doc
from s3sink_job.errors import S3SinkError
from s3sink_job.flush.manifest import ObjectEntry
from s3sink_job.formats.compression import decompress
from s3sink_job.records.decode import decode
from s3sink_job.secrets import Secrets
from s3sink_job.spec import Destination
from s3sink_job.stores.bucket import Bucket, Retrying
from s3sink_job.stores.client import open_bucket

MOST_FINDINGS = 20


class Unreadable(S3SinkError):
    """An object whose bytes are not what its name says."""


@dataclass(frozen=True)
class Expected:
    """One partition: its objects in order of their first offsets, and what was left out on purpose."""

    objects: tuple[tuple[ObjectEntry, Mapping[str, Any]], ...]
    left_out: frozenset[int]
    compacted: bool = False
    """Kafka may have dropped records that were written: then the objects may hold more than Kafka does."""


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
class PartitionWalk:
    at: tuple[str, int]
    expected: Expected
    bucket: Bucket
    tally: Tally = field(default_factory=Tally)
    _index: int = 0
    _batches: list[pa.RecordBatch] = field(default_factory=list)

    def take(self, batch: pa.RecordBatch) -> None:
        """Cuts the batch at the ends of objects; what lies between two objects must be left out on purpose."""
        while batch.num_rows:
            if self._index == len(self.expected.objects):
                self._uncovered(batch)
                return
            entry, _ = self.expected.objects[self._index]
            offsets = batch.column("offset")
            before = pc.sum(pc.less(offsets, entry.first)).as_py() or 0
            self._uncovered(batch.slice(0, before))
            batch = batch.slice(before)
            inside = pc.sum(pc.less_equal(batch.column("offset"), entry.last)).as_py() or 0
            if inside:
                self._batches.append(batch.slice(0, inside))
            if inside == batch.num_rows:
                return
            batch = batch.slice(inside)
            self._judge()

    def end(self) -> None:
        while self._index < len(self.expected.objects):
            self._judge()

    def _uncovered(self, batch: pa.RecordBatch) -> None:
        for offset in batch.column("offset").to_pylist():
            if offset not in self.expected.left_out:
                self.tally.missing += 1
                self.tally.find(f"{self.at[0]}-{self.at[1]} offset {offset}: in Kafka, in no object")

    def _judge(self) -> None:
        entry, encoding = self.expected.objects[self._index]
        self._index += 1
        lines = self._lines(encoding_from_doc(encoding))
        self._batches = []
        try:
            found = read_lines(self.bucket, entry, encoding_from_doc(encoding))
        except Unreadable as error:
            self.tally.missing += len(lines)
            self.tally.find(str(error))
            return
        if found is None:
            self.tally.missing += len(lines)
            self.tally.find(f"{entry.key}: not in the bucket, {len(lines)} records missing")
            return
        self.tally.records += len(found)
        if found == lines:
            return
        wanted, there = Counter(lines), Counter(found)
        missing, extra = sum((wanted - there).values()), sum((there - wanted).values())
        if self.expected.compacted and not missing and len(found) == entry.rows:
            return
        self.tally.missing += missing
        self.tally.duplicates += extra
        order = "" if missing or extra else ", in another order"
        self.tally.find(f"{entry.key}: {missing} records missing, {extra} that should not be there{order}")

    def _lines(self, encoding: Encoding) -> list[bytes]:
        lines: list[bytes] = []
        for batch in self._batches:
            kept = batch
            if self.expected.left_out:
                skip = pa.array(sorted(self.expected.left_out), pa.int64())
                kept = batch.filter(pc.invert(pc.is_in(batch.column("offset"), value_set=skip)))
            if kept.num_rows:
                decoded = decode(kept, encoding, self.at[0])
                lines += decoded.rows.column("line").to_pylist()
        return lines


def read_lines(bucket: Bucket, entry: ObjectEntry, encoding: Encoding) -> list[bytes] | None:
    """The lines of an object, None if it is not there."""
    found = bucket.get(entry.key)
    if found is None:
        return None
    try:
        content = decompress(found[0], encoding.codec)
    except Exception as error:
        raise Unreadable(f"{entry.key}: cannot be decompressed: {error}") from error
    return content.split(b"\n")[:-1] if content.endswith(b"\n") else content.split(b"\n")
