"""Spark for a command that ends soon: a session, and Kafka's admin client in its JVM."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from s3sink_job.cli.opened_sink import OpenedSink
from s3sink_job.kafka.admin import Admin
from s3sink_job.spark.session import start_session


@contextmanager
def spark_session(opened: OpenedSink) -> Iterator[SparkSession]:
    session = start_session(opened.sink.spec, f"{opened.sink.metadata.name}-check")
    try:
        yield session
    finally:
        session.stop()


def open_admin(opened: OpenedSink, spark: SparkSession) -> Admin:
    return Admin(spark._jvm, opened.connection())
