"""The comparison of objects with the records that Kafka still has: which partitions, and the Spark job over them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import SparkSession

from s3sink_api.spec import S3Sink
from s3sink_job.base.secrets import Secrets
from s3sink_job.commit.ledger import Ledger
from s3sink_job.flush.kafka_metadata import Offsets, TopicPartition
from s3sink_job.flush.manifest import Slice
from s3sink_job.flush.state import SinkState, same_topic
from s3sink_job.kafka.admin import Admin
from s3sink_job.kafka.slice_reader import collect, read_slices
from s3sink_job.proof.comparison_task import ComparisonTask
from s3sink_job.proof.flush_history import FlushHistory, PartitionGeneration, PartitionHistory
from s3sink_job.proof.records_by_object import ExpectedPartition
from s3sink_job.proof.sent_letters import letters_of
from s3sink_job.proof.verify_report import RecordCounts
from s3sink_job.stores.bucket import Bucket
from s3sink_job.task.encoding import KAFKA_COLUMNS
from s3sink_job.task.slice_result import RESULT_SCHEMA


@dataclass(frozen=True)
class ComparablePartition:
    """Offsets that Kafka still has, and the objects that lie within them."""

    slice: Slice
    expected: ExpectedPartition

    @property
    def place(self) -> PartitionGeneration:
        return PartitionGeneration(self.slice.topic, self.slice.generation, self.slice.partition)


def comparable_partitions(
    state: SinkState, history: FlushHistory, admin: Admin, ledger: Ledger
) -> dict[TopicPartition, ComparablePartition]:
    """Recreated topics are left out: Kafka has other records than those that were written."""
    topics = admin.describe(sorted(state.topics))
    same = {n: t for n, t in topics.items() if t is not None and same_topic(t.id, state.topics[n].id)}
    wanted = [(n, p) for n, t in same.items() for p in t.partitions if p in state.topics[n].partitions]
    compacted = admin.compacted(sorted(same))
    schemas = {name: ledger.schema(name) for name in sorted({o.schema for o in history.objects} - {""})}
    found = {}
    for at, offsets in admin.offsets(wanted, committed=False).items():
        place = PartitionGeneration(at[0], state.topics[at[0]].generation, at[1])
        partition = _comparable(state, place, history.of(place), offsets, schemas, compacted=at[0] in compacted)
        if partition is not None:
            found[at] = partition
    return found


def _comparable(
    state: SinkState,
    place: PartitionGeneration,
    history: PartitionHistory,
    offsets: Offsets,
    schemas: Mapping[str, str],
    *,
    compacted: bool,
) -> ComparablePartition | None:
    known = state.topics[place.topic].partitions[place.partition]
    start = _first_offset_between_objects(history, max(known.start, offsets.earliest))
    objects = [o for o in (*history.objects, *history.replayed) if o.entry.first >= start]
    end = min(known.offset, offsets.end)
    if known.truncated_log is not None:
        # The log was truncated: from there on Kafka has other records than those that were written.
        end = min(end, known.truncated_log.first_difference or 0)
        objects = [o for o in objects if o.entry.last < end]
    if start >= end:
        return None
    in_gaps = {offset for gap in history.gaps for offset in range(max(gap.start, start), gap.end)}
    expected = ExpectedPartition(
        objects=tuple(objects),
        left_out=frozenset(history.left_out | in_gaps),
        letters=frozenset(history.letters),
        compacted=compacted,
        without_tombstones=tuple(history.without_tombstones),
        filters=tuple(one for one in history.filters if start < one.end and one.start < end),
        span=(start, end),
        schemas={o.schema: schemas[o.schema] for o in objects if o.schema},
    )
    return ComparablePartition(Slice(*place, start, end, "Verify"), expected)


def _first_offset_between_objects(history: PartitionHistory, start: int) -> int:
    """From `start` on, the first offset that no object lies across. Objects of several groups interleave."""
    while across := [o.entry.last + 1 for o in history.objects if o.entry.first < start <= o.entry.last]:
        start = max(across)
    return start


def compare_with_kafka(
    sink: S3Sink,
    secrets: Secrets,
    bucket: Bucket,
    spark: SparkSession,
    connection: Mapping[str, str],
    partitions: Mapping[TopicPartition, ComparablePartition],
    letters: pa.Table,
) -> dict[TopicPartition, RecordCounts]:
    """Counts by partition. One that Kafka has no record of is left out: compaction or aborted transactions do that.

    `letters`: the dead letters that are in topics.
    """
    if not partitions:
        return {}
    expected = {at: replace(one.expected, sent=letters_of(letters, one.place)) for at, one in partitions.items()}
    task = ComparisonTask(expected, sink.spec.destination, secrets, bucket.retry)
    frame = read_slices(
        spark,
        [partition.slice for partition in partitions.values()],
        connection,
        columns=KAFKA_COLUMNS,
        group=f"s3sink.{sink.metadata.namespace}.{sink.metadata.name}.verify",
        isolation=sink.spec.source.isolation,
        topic=True,
    )
    found = {}
    for row in collect(frame.mapInArrow(task, RESULT_SCHEMA), "comparing with Kafka"):
        doc = json.loads(row.result)
        topic, partition = doc.pop("at")
        found[topic, partition] = RecordCounts(**doc)
    return found
