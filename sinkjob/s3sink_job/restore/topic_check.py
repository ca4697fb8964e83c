"""The proof of a restore: the topics are read again, and counts and checksums are compared with what was sent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from s3sink_job.flush.kafka_metadata import Offsets, TopicPartition
from s3sink_job.flush.manifest import Slice
from s3sink_job.kafka.slice_reader import collect, read_slices
from s3sink_job.proof.records_by_object import result_row
from s3sink_job.restore.checksums import Checksum, checksum_from_text, record_digests, total
from s3sink_job.restore.plan import RestoreSlice
from s3sink_job.shape.dead_letters import record_columns
from s3sink_job.task.encoding import RECORD_COLUMNS
from s3sink_job.task.slice_result import RESULT_SCHEMA


@dataclass(frozen=True)
class ChecksumTask:
    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row with the checksum of the partition; none if it has no record."""
        found, at = Checksum(), None
        for batch in batches:
            if batch.num_rows:
                at = at or (batch.column("topic")[0].as_py(), batch.column("partition")[0].as_py())
                plain = record_columns(batch)
                times = plain.schema.get_field_index("timestamp")
                found = found.plus(
                    record_digests(plain.set_column(times, "timestamp", plain.column(times).cast(pa.int64())))
                )
        if at is not None:
            yield result_row({"at": at, "checksum": found.to_text()})


def read_checksums(
    spark: SparkSession, connection: Mapping[str, str], group: str, ranges: Mapping[TopicPartition, tuple[int, int]]
) -> dict[TopicPartition, Checksum]:
    """Of committed records. Partitions without any are left out."""
    slices = [Slice(topic, 1, partition, *span, "Restore") for (topic, partition), span in ranges.items()]
    slices = [part for part in slices if part.start < part.end]
    if not slices:
        return {}
    frame = read_slices(
        spark, slices, connection, columns=RECORD_COLUMNS, group=group, isolation="ReadCommitted", topic=True
    )
    found = {}
    for row in collect(frame.mapInArrow(ChecksumTask(), RESULT_SCHEMA), "reading the topic"):
        doc = json.loads(row.result)
        found[doc["at"][0], doc["at"][1]] = checksum_from_text(doc["checksum"])
    return found


def deleted_since(base: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, Offsets]) -> list[str]:
    """Partitions whose first records Kafka has deleted already."""
    return [
        f"{topic}-{partition}: Kafka has deleted the first {ends[topic, partition].earliest - start:,} offsets already"
        for (topic, partition), start in base.items()
        if ends[topic, partition].earliest > start
    ]


def differences(
    slices: Sequence[RestoreSlice],
    sent: Sequence[Checksum],
    found: Mapping[TopicPartition, Checksum],
    compacted: frozenset[str],
) -> list[str]:
    """What is not as it was sent, in words. A compacted topic may have fewer records."""
    findings = []
    for topic in sorted({part.topic for part in slices}):
        own = {n: part for n, part in enumerate(slices) if part.topic == topic}
        there = {at: one for at, one in found.items() if at[0] == topic}
        if topic in compacted:
            expected, present = (total(x)[0] for x in ((sent[n] for n in own), there.values()))
            findings += [f"{topic}: {present:,} records, {expected:,} were sent"] if present > expected else []
        elif any(part.partition is None for part in own.values()):
            findings += _by_topic(topic, [sent[n] for n in own], there)
        else:
            findings += _by_partition(topic, {own[n].place.partition: sent[n] for n in own}, there)
    return findings


def _by_topic(topic: str, sent: list[Checksum], found: Mapping[TopicPartition, Checksum]) -> list[str]:
    expected, there = total(sent), total(found.values())
    return [] if expected == there else [f"{topic}: {_apart(expected, there)}"]


def _by_partition(topic: str, sent: Mapping[int, Checksum], found: Mapping[TopicPartition, Checksum]) -> list[str]:
    findings = []
    for partition in sorted({*sent, *(at[1] for at in found)}):
        expected = sent.get(partition, Checksum())
        there = found.get((topic, partition), Checksum())
        if expected.without_order != there.without_order:
            findings.append(f"{topic}-{partition}: {_apart(expected.without_order, there.without_order)}")
        elif expected != there:
            findings.append(f"{topic}-{partition}: its records are in another order than they were sent")
    return findings


def _apart(expected: tuple[int, int], there: tuple[int, int]) -> str:
    if expected[0] != there[0]:
        return f"{there[0]:,} records, {expected[0]:,} were sent; does somebody else write to it?"
    return "its records differ from those that were sent: their checksum is another one"
