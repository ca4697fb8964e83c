"""Reads exactly the planned slices from Kafka with Spark: one task for each slice."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from s3sink_job.base.errors import TransientError
from s3sink_job.flush.manifest import Slice
from s3sink_job.kafka.left_out import by_topic, numbered
from s3sink_job.kafka.properties import ISOLATION, consumer_group
from s3sink_job.kafka.schema_ids import MESSAGES, SCHEMA_IDS, message, schema_id
from s3sink_job.kafka.single_headers import header_columns, header_value

# Smaller fetches measured faster, with less garbage. Properties of the spec take precedence.
CONSUMER = {
    "max.partition.fetch.bytes": "2097152",
    "fetch.max.bytes": "16777216",
    "max.poll.records": "5000",
    "receive.buffer.bytes": "-1",
    # At the end of a log a fetch waits at the broker, and delays Spark's own request for offsets.
    "fetch.max.wait.ms": "10",
}
POLL_TIMEOUT_MS = "30000"
_OF_HEADERS = {"headers", *SCHEMA_IDS.values(), *MESSAGES.values()}


class JobFailed(TransientError):
    """The Spark job failed. Nothing of it is committed."""

    reason = "JobFailed"


def collect(frame: DataFrame, what: str) -> list[Row]:
    try:
        return frame.collect()
    except (Py4JJavaError, PySparkException) as error:
        raise JobFailed(f"{what} failed: {_last_cause(error)}") from error


def collect_table(frame: DataFrame, what: str) -> pa.Table:
    try:
        return frame.toArrow()
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
    conditions: Mapping[str, str] | None = None,
) -> DataFrame:
    """The records of the slices: one task for each slice, rows in offset order.

    `conditions`: by topic, which records are handed over. If there are any, all rows have a number: see `left_out.py`.

    One read can have one range of each partition. Further ranges of a partition are separate reads, joined by a union,
    which does not change the tasks.
    """
    single = header_columns(columns)
    options = {f"kafka.{k}": v for k, v in {**CONSUMER, **connection}.items()}
    options |= {
        "failOnDataLoss": "true",
        "kafkaConsumer.pollTimeoutMs": POLL_TIMEOUT_MS,
        # Without a constant group every query would cache new consumers, until the heap is full.
        "kafka.group.id": consumer_group(group, connection),
        "kafka.isolation.level": ISOLATION[isolation],
        "includeHeaders": str(bool(single) or not _OF_HEADERS.isdisjoint(columns)).lower(),
    }
    computed = {column: schema_id(part).alias(column) for part, column in SCHEMA_IDS.items()}
    computed |= {column: message(part).alias(column) for part, column in MESSAGES.items()}
    computed |= {column: header_value(column).alias(column) for column in single}
    wanted = ["partition", "offset", *(computed.get(name, name) for name in columns)]
    if topic or len({s.topic for s in slices}) > 1:
        wanted.insert(0, "topic")
    reader = spark.read.format("kafka").options(**options)

    def read(part: list[Slice]) -> DataFrame:
        return reader.options(**_ranges(part)).load().select(*wanted)

    if not conditions:
        return reduce(DataFrame.union, map(read, in_reads(slices)))
    parts = [part for own in by_topic(slices) for part in in_reads(own)]
    return reduce(DataFrame.union, (numbered(read(part), part, conditions) for part in parts))


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


def _last_cause(error: Exception) -> str:
    """The line that matters in pages of stack traces."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    python = [line for line in lines if "Error: " in line or "Exception: " in line]
    chosen = (causes or python or lines or [type(error).__name__])[-1]
    return chosen.removeprefix("Caused by:").strip()[:500]
