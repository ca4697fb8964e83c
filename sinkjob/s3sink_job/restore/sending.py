"""The Spark job that sends: a task for each slice reads its objects in Python and sends the records in Java."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from s3sink_job.base.errors import FinalError, S3SinkError, TransientError
from s3sink_job.kafka.letter_topic import PRODUCER, SERIALIZER
from s3sink_job.restore.positions import Positions
from s3sink_job.restore.reading_task import SPARK_SCHEMA, ReadingTask
from s3sink_job.restore.sender_class import new_sender

CHUNK_RECORDS = 50_000
CHUNK_BYTES = 32 * 2**20
CHUNK_MILLIS = 1_000
"""A transaction is committed when it has as much as one of these. After a crash at most this is sent again."""
BUFFER = str(128 * 2**20)
"""Bytes that a task has in memory at most, and so the length of the longest record."""
POLL_SECONDS = 1.0
RESUMES = "Run the same command again: it resumes"
FINAL = {
    "TopicAuthorizationException": "grant Write, Read, Describe and DescribeConfigs on the topic",
    "TransactionalIdAuthorizationException": "grant Write and Describe on transactional ids with the prefix s3sink.",
    "GroupAuthorizationException": "grant Read on groups with the prefix s3sink.",
    "ClusterAuthorizationException": "the brokers are older than Kafka 3.0: grant IdempotentWrite on the cluster",
    "RecordTooLargeException": "raise max.message.bytes of the topic",
    "InvalidTimestampException": "raise message.timestamp.before.max.ms or after.max.ms of the topic",
    "InvalidTxnTimeoutException": "raise transaction.max.timeout.ms of the brokers to 600000 or more",
    "InvalidRecordException": "the topic refuses a record: a compacted topic takes none without a key",
    "ProducerFencedException": "another restore with the same --run-id is running: let only one of them run",
    "InvalidProducerEpochException": "another restore with the same --run-id is running: let only one of them run",
}
_OURS = re.compile(r"s3sink\[(\w+),(\w+)\]: (.*?) \[s3sink\]", re.DOTALL)


class RestoreFailed(TransientError):
    reason = "RestoreFailed"


@dataclass(frozen=True)
class ReportingTask:
    """A failure becomes text, which is all that passes from a task through Java to the driver."""

    task: ReadingTask

    def __call__(self, batches: Any) -> Any:
        try:
            yield from self.task(batches)
        except S3SinkError as error:
            raise RuntimeError(f"s3sink[{error.reason},{error.retryable}]: {error} [s3sink]") from error


@dataclass(frozen=True)
class Sending:
    spark: SparkSession
    connection: Mapping[str, str]
    positions: Positions
    task: ReadingTask
    parallel: int
    rate: int | None = None
    """Bytes of keys and values in a second, of all tasks together."""

    def run(self, on_progress: Callable[[], None]) -> None:
        """Sends what is left, and calls back about once a second. Raises if a task failed more than twice."""
        todo = [n for n, part in enumerate(self.task.slices) if self.task.positions[n] < part.rows]
        if not todo:
            return
        # The longest first, so that no task is left alone with it at the end.
        order = sorted(todo, key=lambda n: self.task.positions[n] - self.task.slices[n].rows)
        task = ReportingTask(replace(self.task, order=order))
        frame: Any = self.spark.range(0, len(order), 1, len(order)).mapInArrow(task, SPARK_SCHEMA)
        with ThreadPoolExecutor(1, "restore") as pool:
            job = pool.submit(frame._jdf.foreachPartition, self._sender(len(order)))
            try:
                while not job.done():
                    wait([job], POLL_SECONDS)
                    on_progress()
                job.result()
            except (Py4JJavaError, PySparkException) as error:
                raise failure_of(str(error)) from None
            finally:
                self.spark.sparkContext.cancelAllJobs()

    def _sender(self, tasks: int) -> Any:
        jvm: Any = self.spark._jvm
        producer = {**PRODUCER, "buffer.memory": BUFFER, "key.serializer": SERIALIZER, "value.serializer": SERIALIZER}
        slices = jvm.java.util.ArrayList()
        for number, place in enumerate(self.positions.places):
            settings = {"topic": place.at[0], "group": place.group, "groupPartition": str(place.at[1])}
            settings["transactionalId"] = self.positions.transactional_id(number)
            slices.add(self.positions.admin.java_map(settings))
        rate = 0 if self.rate is None else max(1, self.rate // max(1, min(tasks, self.parallel)))
        return new_sender(
            self.spark,
            *(self.positions.admin.java_map(self.connection), self.positions.admin.java_map(producer), slices),
            *(jvm.java.lang.Long.valueOf(rate), jvm.java.lang.Integer.valueOf(CHUNK_RECORDS)),
            *(jvm.java.lang.Long.valueOf(CHUNK_BYTES), jvm.java.lang.Long.valueOf(CHUNK_MILLIS)),
        )


def failure_of(text: str) -> S3SinkError:
    """The cause among pages of stack traces."""
    if ours := _OURS.search(text):
        reason, retryable, message = ours.groups()
        kind: type[S3SinkError] = TransientError if retryable == "True" else FinalError
        return kind(f"{message}. {RESUMES}" if retryable == "True" else message, reason=reason)
    if lost := re.search(r"ProgressLost: (.*)", text):
        return FinalError(f"{lost[1]}: see `ProgressLost` in docs/troubleshooting.md", reason="ProgressLost")
    for name, advice in FINAL.items():
        if name in text:
            line = next(line.strip() for line in text.splitlines() if name in line)
            return FinalError(f"{line[:300]}: {advice}. {RESUMES}", reason=name.removesuffix("Exception"))
    causes = [line.strip() for line in text.splitlines() if line.strip().startswith("Caused by:")]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    chosen = (causes or lines or ["unknown"])[-1].removeprefix("Caused by:").strip()[:500]
    return RestoreFailed(f"sending failed: {chosen}. {RESUMES}")
