"""Starts Spark while Python still imports the driver. Either takes seconds, on a core of its own."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from pyspark.sql import SparkSession

from s3sink_api.spec import S3Sink
from s3sink_job.spark.cluster_mode import driver_pod
from s3sink_job.spark.session import start_session


def start_early(sink: S3Sink) -> Future[SparkSession]:
    pod = driver_pod() if sink.spec.spark.mode == "Cluster" else None
    pool = ThreadPoolExecutor(1, "spark")
    session = pool.submit(start_session, sink.spec, sink.metadata.name, pod)
    pool.shutdown(wait=False)
    return session
