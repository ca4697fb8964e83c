"""How many records Spark hands to Python at a time, so that memory is bounded whatever their size.

Spark can end a batch at a number of bytes, and asks for its size after every row, which takes a quarter of the JVM's
time. Where every record is small the number of rows is bound enough. So a job first takes records to be small and
lets none pass that is not: in its place come an empty value and the complement of its offset, which no record has.
The task that sees one gives up, and its slice is read again with the limit in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

BATCH_LIMIT = "spark.sql.execution.arrow.maxBytesPerBatch"
BATCH_RECORDS = 4000
BATCH_BYTES = 16 * 2**20
SMALL = BATCH_BYTES // BATCH_RECORDS
"""Bytes of key and value."""
NO_LIMIT = 2**31 - 1


def can_be_small(columns: tuple[str, ...]) -> bool:
    """Spark does not tell the size of headers."""
    return "headers" not in columns


def without_large(frame: DataFrame) -> DataFrame:
    measured = [name for name in ("key", "value") if name in frame.columns]
    size = sum((f.coalesce(f.length(name), f.lit(0)) for name in measured), f.lit(0))
    large = size > SMALL
    changed: dict[str, Column] = {name: f.when(~large, f.col(name)) for name in measured}
    changed["offset"] = f.when(large, f.bitwise_not("offset")).otherwise(f.col("offset"))
    return frame.select(*(changed[name].alias(name) if name in changed else f.col(name) for name in frame.columns))


@contextmanager
def limit_of(spark: SparkSession, *, small: bool) -> Iterator[None]:
    spark.conf.set(BATCH_LIMIT, str(NO_LIMIT if small else BATCH_BYTES))
    try:
        yield
    finally:
        spark.conf.set(BATCH_LIMIT, str(BATCH_BYTES))
