"""Step 3: one Spark job over exactly the planned slices, and what came of each."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from s3sink_job.engine.batches import limit_of, without_large
from s3sink_job.engine.write import RESULT_SCHEMA, SliceResult, WriteTask, result_from_json
from s3sink_job.errors import TransientError
from s3sink_job.flush.manifest import Slice
from s3sink_job.kafka.properties import ISOLATION, consumer_group

# Smaller fetches measured faster and leaner: less garbage. What the spec sets wins.
CONSUMER = {
    "max.partition.fetch.bytes": "2097152",
    "fetch.max.bytes": "16777216",
    "max.poll.records": "5000",
    "receive.buffer.bytes": "-1",
    # At the end of a log the consumer's next fetch waits at the broker, and Spark's look at the offsets behind it.
    "fetch.max.wait.ms": "10",
}
POLL_TIMEOUT_MS = "30000"


class JobFailed(TransientError):
    """The Spark job ended with an error: nothing of it is committed."""

    reason = "JobFailed"


def run_job(
    spark: SparkSession,
    task: WriteTask,
    connection: Mapping[str, str],
    *,
    group: str,
    isolation: str,
    small: bool = False,
) -> list[SliceResult]:
    """One result for each slice. A slice that no task reported held no record."""
    frame = read_slices(spark, task.slices, connection, columns=task.columns, group=group, isolation=isolation)
    frame = without_large(frame) if small else frame
    with limit_of(spark, small=small):
        rows = collect(frame.mapInArrow(task, RESULT_SCHEMA), f"the Spark job over {_names(task.slices)}")
    results = {r.slice: r for r in (result_from_json(row.result) for row in rows)}
    return [results.get(s) or SliceResult(slice=s, end=s.end) for s in task.slices]


def collect(frame: DataFrame, what: str) -> list[Row]:
    try:
        return frame.collect()
    except (Py4JJavaError, PySparkException) as error:
        raise JobFailed(f"{what} failed: {_last_cause(error)}") from error


def read_slices(
    spark: SparkSession,
    slices: Sequence[Slice],
    connection: Mapping[str, str],
    *,
    columns: tuple[str, ...],
    group: str,
    isolation: str,
    topic: bool = False,
) -> DataFrame:
    """Kafka's records of the slices: one task a slice, rows in offset order.

    A read takes one range of each partition; further ranges of a partition are reads of their own, put together
    by a union, which keeps the tasks of each as they are.
    """
    options = {f"kafka.{k}": v for k, v in {**CONSUMER, **connection}.items()}
    options |= {
        "failOnDataLoss": "true",
        "kafkaConsumer.pollTimeoutMs": POLL_TIMEOUT_MS,
        # Without a stable group every query makes new cached consumers, until the heap is full.
        "kafka.group.id": consumer_group(group, connection),
        "kafka.isolation.level": ISOLATION[isolation],
        "includeHeaders": str("headers" in columns).lower(),
    }
    wanted = ["partition", "offset", *columns]
    if topic or len({s.topic for s in slices}) > 1:
        wanted.insert(0, "topic")
    reader = spark.read.format("kafka").options(**options)
    frames = [reader.options(**_ranges(part)).load().select(*wanted) for part in in_reads(slices)]
    return reduce(DataFrame.union, frames)


def in_reads(slices: Sequence[Slice]) -> list[list[Slice]]:
    """As few reads as possible, each with at most one slice of a partition."""
    reads: list[list[Slice]] = []
    count: Counter[tuple[str, int]] = Counter()
    for s in slices:
        if count[s.at] == len(reads):
            reads.append([])
        reads[count[s.at]].append(s)
        count[s.at] += 1
    return reads


def _ranges(slices: Sequence[Slice]) -> dict[str, str]:
    assign: dict[str, list[int]] = defaultdict(list)
    starts: dict[str, dict[str, int]] = defaultdict(dict)
    ends: dict[str, dict[str, int]] = defaultdict(dict)
    for s in slices:
        assign[s.topic].append(s.partition)
        starts[s.topic][str(s.partition)] = s.start
        ends[s.topic][str(s.partition)] = s.end
    ranges = {"assign": assign, "startingOffsets": starts, "endingOffsets": ends}
    return {name: json.dumps(value) for name, value in ranges.items()}


def _names(slices: Sequence[Slice]) -> str:
    shown = ", ".join(str(s) for s in slices[:5])
    return shown + (f" and {len(slices) - 5} more" if len(slices) > 5 else "")


def _last_cause(error: Exception) -> str:
    """The line people need: Spark wraps the cause in pages of stack traces."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    python = [line for line in lines if "Error: " in line or "Exception: " in line]
    chosen = (causes or python or lines or [type(error).__name__])[-1]
    return chosen.removeprefix("Caused by:").strip()[:500]
