"""How many records Spark hands to Python at a time, so that memory is bounded whatever the size of the records.

Spark can limit a batch in bytes, but then it measures after every row, which takes a quarter of the JVM's time. Small
records do not need that: a limit in rows is enough. So a job first assumes that all records are small. A record that
is not arrives without key and value, and with the flag `large`. The task stops there, and its slice is read again
with the limit in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from s3sink_job.kafka.schema_ids import MESSAGES, SCHEMA_IDS
from s3sink_job.kafka.single_headers import header_columns

BATCH_LIMIT = "spark.sql.execution.arrow.maxBytesPerBatch"
BATCH_RECORDS = 4000
BATCH_BYTES = 16 * 2**20
SMALL = BATCH_BYTES // BATCH_RECORDS
"""Bytes of all measured columns."""
MEASURED = ("key", "value", *SCHEMA_IDS.values(), *MESSAGES.values())
NO_LIMIT = 2**31 - 1
LARGE = "large"
"""The column that marks records that were too large for a job of small ones."""


def can_be_small(columns: tuple[str, ...]) -> bool:
    """Spark cannot measure headers."""
    return "headers" not in columns


def without_large(frame: DataFrame) -> DataFrame:
    """The frame with the column `large`. Large records have neither key nor value."""
    measured = [*(name for name in MEASURED if name in frame.columns), *header_columns(frame.columns)]
    size = sum((f.coalesce(f.length(name), f.lit(0)) for name in measured), f.lit(0))
    large = size > SMALL
    kept: dict[str, Column] = {name: f.when(~large, f.col(name)).alias(name) for name in measured}
    return frame.select(*(kept.get(name, f.col(name)) for name in frame.columns), large.alias(LARGE))


@contextmanager
def limit_of(spark: SparkSession, *, small: bool) -> Iterator[None]:
    spark.conf.set(BATCH_LIMIT, str(NO_LIMIT if small else BATCH_BYTES))
    try:
        yield
    finally:
        spark.conf.set(BATCH_LIMIT, str(BATCH_BYTES))
