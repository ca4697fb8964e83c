"""The Spark session of a driver: settings that the protocol needs, and those that were measured to be quick."""

from __future__ import annotations

import os
import sys
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from s3sink_job.spec import Spec

JARS_FOLDER = "S3SINK_JARS"
"""Environment: a folder with the Kafka connector's jars, as the image has it; without it Spark fetches them."""
TASK_TRIES = 3
HEAP_SHARE = 4
SMALLEST_HEAP = 256 * 2**20

FIXED = {
    # The protocol: one task, one slice, run once, no exchange.
    "spark.sql.adaptive.enabled": "false",
    "spark.speculation": "false",
    # Kafka's timestamps as they are, wherever the driver runs.
    "spark.sql.session.timeZone": "UTC",
    # Memory bounded by batches, whatever the size of the records.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "16m",
    "spark.driver.maxResultSize": "256m",
    "spark.python.daemon.module": "s3sink_job.engine.daemon",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.artifact.isolation.enabled": "false",
}
JAVA_OPTIONS = "-XX:+UseParallelGC -XX:ParallelGCThreads=2 -XX:CICompilerCount=2"


def start_session(spec: Spec, name: str) -> SparkSession:
    # Workers must run this very interpreter, not the first python3 on the path.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    cores = spec.spark.driver.cores
    builder: Any = SparkSession.builder
    builder = builder.appName(f"s3sink-{name}").master(f"local[{cores},{TASK_TRIES}]")
    settings = {**spec.spark.conf, **FIXED, **_connector()}
    # The rest of the driver's memory is for Python: its workers, their batches and part buffers.
    heap = max(SMALLEST_HEAP, spec.spark.driver.memory // HEAP_SHARE)
    settings |= {"spark.driver.memory": f"{heap >> 20}m", "spark.driver.extraJavaOptions": _java_options()}
    for key, value in settings.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    return session


def _java_options() -> str:
    quiet = Path(str(files("s3sink_job.engine") / "log4j2.properties"))
    return f"{JAVA_OPTIONS} -Dlog4j2.configurationFile=file:{quiet}"


def _connector() -> dict[str, str]:
    folder = os.environ.get(JARS_FOLDER)
    if folder:
        return {"spark.jars": ",".join(sorted(str(jar) for jar in Path(folder).glob("*.jar")))}
    return {"spark.jars.packages": versions()["spark"]["kafka_connector"]}


@cache
def versions() -> dict[str, Any]:
    return tomllib.loads((files("s3sink_job") / "versions.toml").read_text())
