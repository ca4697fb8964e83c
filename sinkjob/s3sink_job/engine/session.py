"""The Spark session of a driver: settings that the protocol needs, and those that were measured to be quick."""

from __future__ import annotations

import os
import sys
import tomllib
import warnings
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from s3sink_job.engine.batches import BATCH_BYTES, BATCH_LIMIT, BATCH_RECORDS
from s3sink_job.engine.cluster import Place, cluster_settings, remove_left_overs
from s3sink_job.kafka.properties import jvm_options
from s3sink_job.spec import Spec

JARS_FOLDER = "S3SINK_JARS"
"""Environment: a folder with the Kafka connector's jars, as the image has it; without it Spark fetches them."""
CLASSES_FILE = "S3SINK_CLASSES"
"""Environment: an archive of Spark's classes, which Java need not read and check one by one then."""
REPOSITORY = "DEFAULT_ARTIFACT_REPOSITORY"
"""Environment: where Spark fetches jars from, if not from Maven Central."""
TASK_TRIES = 3
POOL = "system"
"""Where Arrow gets memory from: the C library, as the daemon sets it, keeps 100 MiB less than Arrow by itself."""
HEAP_SHARE = 4
SMALLEST_HEAP = 512 * 2**20
"""With less Spark refuses to start."""

FIXED = {
    # The protocol: one task, one slice, run once, no exchange.
    "spark.sql.adaptive.enabled": "false",
    "spark.speculation": "false",
    # Kafka's timestamps as they are, wherever the driver runs.
    "spark.sql.session.timeZone": "UTC",
    # Memory bounded by batches, whatever the size of the records; a job of small ones needs no look at the bytes.
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_RECORDS),
    BATCH_LIMIT: str(BATCH_BYTES),
    "spark.driver.maxResultSize": "256m",
    "spark.python.daemon.module": "s3sink_job.engine.daemon",
    "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": POOL,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.artifact.isolation.enabled": "false",
    # Kafka's newer reader makes no row objects on its way.
    "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",
}
# The space for new objects is fixed: left to itself it grows for hours, and is as quick with this.
JAVA_OPTIONS = "-XX:+UseParallelGC -XX:ParallelGCThreads=2 -XX:CICompilerCount=2 -XX:NewSize=128m -XX:MaxNewSize=128m"


def start_session(spec: Spec, name: str, place: Place | None = None) -> SparkSession:
    """All in this process tree, or, with a `place` in a cluster, with executors in pods of their own."""
    # Spark gets Arrow's batches from us, never a frame of pandas'.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    # Workers must run this very interpreter, not the first python3 on the path.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["ARROW_DEFAULT_MEMORY_POOL"] = POOL
    java_options = f"{_java_options()} {jvm_options(spec.source)}"
    settings = {**spec.spark.conf, **FIXED, **_connector(local=place is not None)}
    settings |= {
        "spark.task.maxFailures": str(TASK_TRIES),
        "spark.driver.memory": f"{_heap(spec.spark.driver.memory) >> 20}m",
        "spark.driver.extraJavaOptions": java_options,
    }
    if place is None:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        master = f"local[{spec.spark.driver.cores},{TASK_TRIES}]"
    else:
        os.environ["SPARK_LOCAL_IP"] = place.address
        master = place.master
        heap = _heap(spec.spark.executor.memory)
        settings |= cluster_settings(spec.spark, place, heap=heap, java_options=java_options)
    builder: Any = SparkSession.builder
    builder = builder.appName(f"s3sink-{name}").master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    if place is not None:
        remove_left_overs(session, place, name)
    return session


def _heap(memory: int) -> int:
    """The rest of a pod's memory is for Python: its workers, their batches and part buffers."""
    return max(SMALLEST_HEAP, memory // HEAP_SHARE)


def _java_options() -> str:
    quiet = Path(str(files("s3sink_job.engine") / "log4j2.properties"))
    archive = os.environ.get(CLASSES_FILE)
    classes = f" -XX:SharedArchiveFile={archive}" if archive else ""
    return f"{JAVA_OPTIONS}{classes} -Dlog4j2.configurationFile=file:{quiet}"


def _connector(*, local: bool) -> dict[str, str]:
    folder = os.environ.get(JARS_FOLDER)
    if folder:
        # Executors have the same image: nothing needs to travel.
        scheme = "local://" if local else ""
        return {"spark.jars": ",".join(sorted(f"{scheme}{jar}" for jar in Path(folder).glob("*.jar")))}
    os.environ.setdefault(REPOSITORY, "https://repo1.maven.org/maven2/")
    return {
        "spark.jars.packages": ",".join(versions()["spark"].values()),
        "spark.jars.ivySettings": str(files("s3sink_job.engine") / "ivysettings.xml"),
    }


@cache
def versions() -> dict[str, Any]:
    return tomllib.loads((files("s3sink_job") / "versions.toml").read_text())
