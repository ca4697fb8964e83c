"""Records that Kafka still has, read to find out where they were written. Java starts only if this is used."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from s3sink_api.spec import S3Sink
from s3sink_job.base.retry import RetryPolicy
from s3sink_job.base.secrets import Secrets
from s3sink_job.flush.kafka_metadata import TopicPartition
from s3sink_job.flush.manifest import Slice
from s3sink_job.flush.state import SinkState, same_topic
from s3sink_job.kafka.admin import Admin
from s3sink_job.kafka.slice_reader import collect, read_slices
from s3sink_job.proof.flush_history import PartitionGeneration
from s3sink_job.proof.records_by_object import ExpectedPartition
from s3sink_job.proof.search_task import FaultTask, SearchTask
from s3sink_job.task.encoding import KAFKA_COLUMNS, Encoding
from s3sink_job.task.slice_result import RESULT_SCHEMA


class KafkaAccess(NamedTuple):
    spark: SparkSession
    admin: Admin
    connection: dict[str, str]


class Match(NamedTuple):
    at: TopicPartition
    number: int
    """Of the object among the expected ones of the partition."""
    row: int
    offset: int


@dataclass(frozen=True)
class KafkaRecords:
    sink: S3Sink
    secrets: Secrets
    retry: RetryPolicy
    access: Callable[[], KafkaAccess]

    @property
    def admin(self) -> Admin:
        return self.access().admin

    def earliest(self, state: SinkState, place: PartitionGeneration) -> int | None:
        """Where Kafka's log of this generation begins now; None if Kafka has another log, or none."""
        topic = state.topics[place.topic]
        now = self.admin.describe([place.topic])[place.topic]
        if now is None or place.generation != topic.generation or not same_topic(now.id, topic.id):
            return None
        at = (place.topic, place.partition)
        found = self.admin.offsets([at], committed=False).get(at)
        return found.earliest if found else None

    def with_offset(self, expected: ExpectedPartition, slice: Slice) -> list[Match]:
        """The record at the last offset of the slice; none if Kafka has no record there."""
        task = SearchTask({slice.at: expected}, self.secrets, self.retry, offset=slice.end - 1)
        return list(self._matches([slice], task))

    def with_key(
        self, expected: Mapping[TopicPartition, ExpectedPartition], slices: list[Slice], key: bytes
    ) -> list[Match]:
        return list(self._matches(slices, SearchTask(expected, self.secrets, self.retry, key=key)))

    def fault(self, encoding: Encoding, slice: Slice) -> str:
        """Why the record of the slice is bad; empty if it is not."""
        task = FaultTask(encoding, slice, self.secrets, self.retry)
        return next((f"{doc['reason']}: {doc['message']}" for doc in self._run([slice], task)), "")

    def _matches(self, slices: list[Slice], task: SearchTask) -> Iterator[Match]:
        for doc in self._run(slices, task):
            for number, row, offset in doc["matches"]:
                yield Match((doc["at"][0], doc["at"][1]), number, row, offset)

    def _run(self, slices: list[Slice], task: SearchTask | FaultTask) -> Iterator[dict[str, Any]]:
        spark, _, connection = self.access()
        frame = read_slices(
            spark,
            slices,
            connection,
            columns=KAFKA_COLUMNS,
            group=f"s3sink.{self.sink.metadata.namespace}.{self.sink.metadata.name}.find",
            isolation=self.sink.spec.source.isolation,
            topic=True,
        )
        for row in collect(frame.mapInArrow(task, RESULT_SCHEMA), "reading records from Kafka"):
            yield json.loads(row.result)
