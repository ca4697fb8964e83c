"""Spark starts while Python still imports what the loop needs: either takes seconds, on a core of its own."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from pyspark.sql import SparkSession

from s3sink_job.engine.cluster import place_of
from s3sink_job.engine.session import start_session
from s3sink_job.spec import S3Sink


def start_early(sink: S3Sink) -> Future[SparkSession]:
    place = place_of() if sink.spec.spark.mode == "Cluster" else None
    pool = ThreadPoolExecutor(1, "spark")
    session = pool.submit(start_session, sink.spec, sink.metadata.name, place)
    pool.shutdown(wait=False)
    return session
