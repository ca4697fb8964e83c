"""The Spark session of a driver: settings that the protocol needs, and settings that measured fastest."""

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

from s3sink_api.environment import CLASSES, JARS
from s3sink_api.spec import Spec
from s3sink_job.kafka.batch_size import BATCH_BYTES, BATCH_LIMIT, BATCH_RECORDS
from s3sink_job.kafka.properties import jvm_options
from s3sink_job.spark.cluster_mode import DriverPod, cluster_settings, remove_old_executors

REPOSITORY = "DEFAULT_ARTIFACT_REPOSITORY"
"""Environment variable of Spark: where it fetches jars from, if not from Maven Central."""
TASK_ATTEMPTS = 3
POOL = "system"
"""Arrow's memory pool: malloc, as the worker daemon sets it up, needs 100 MiB less than Arrow's own."""
HEAP_SHARE = 4
SMALLEST_HEAP = 512 * 2**20
"""Spark does not start with less."""

FIXED = {
    # The protocol: one task for each slice, run once, no shuffle.
    "spark.sql.adaptive.enabled": "false",
    "spark.speculation": "false",
    # Kafka's timestamps do not depend on the machine.
    "spark.sql.session.timeZone": "UTC",
    # Names of headers are texts in SQL, whatever characters they have.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    # Batches bound the memory, whatever the size of the records (see kafka/batch_size.py).
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_RECORDS),
    BATCH_LIMIT: str(BATCH_BYTES),
    "spark.driver.maxResultSize": "256m",
    "spark.python.daemon.module": "s3sink_job.spark.worker_daemon",
    "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": POOL,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.artifact.isolation.enabled": "false",
    # Java never compiles a method with more bytes of code, and would take five times as long. Spark has another way.
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # The newer Kafka source, which makes no row objects.
    "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",
}
# A fixed young generation: by default it grows for hours, and is no faster.
JAVA_OPTIONS = "-XX:+UseParallelGC -XX:ParallelGCThreads=2 -XX:CICompilerCount=2 -XX:NewSize=128m -XX:MaxNewSize=128m"


def start_session(spec: Spec, name: str, pod: DriverPod | None = None) -> SparkSession:
    """Local, or with executors in pods of their own if the driver's pod is given."""
    # pandas is never used: data goes to Spark as Arrow batches.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    # Workers must run this interpreter, not the first python3 on the path.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["ARROW_DEFAULT_MEMORY_POOL"] = POOL
    # Java's command without what it would warn of.
    os.environ.setdefault("SPARK_CONF_DIR", str(files("s3sink_job.spark") / "launcher"))
    java_options = f"{_java_options()} {jvm_options(spec.source)}"
    settings = {**spec.spark.conf, **FIXED, **_connector(local=pod is not None)}
    settings |= {
        "spark.task.maxFailures": str(TASK_ATTEMPTS),
        "spark.driver.memory": f"{_heap(spec.spark.driver.memory) >> 20}m",
        "spark.driver.extraJavaOptions": java_options,
    }
    if pod is None:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        master = f"local[{spec.spark.driver.cores},{TASK_ATTEMPTS}]"
    else:
        os.environ["SPARK_LOCAL_IP"] = pod.address
        master = pod.master
        heap = _heap(spec.spark.executor.memory)
        settings |= cluster_settings(spec.spark, pod, heap=heap, java_options=java_options)
    builder: Any = SparkSession.builder
    builder = builder.appName(f"s3sink-{name}").master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    if pod is not None:
        remove_old_executors(session, pod, name)
    return session


def _heap(memory: int) -> int:
    """The rest of the pod's memory is for Python workers, their batches and part buffers."""
    return max(SMALLEST_HEAP, memory // HEAP_SHARE)


def _java_options() -> str:
    quiet = Path(str(files("s3sink_job.spark") / "log4j2.properties"))
    archive = os.environ.get(CLASSES)
    classes = f" -XX:SharedArchiveFile={archive}" if archive else ""
    return f"{JAVA_OPTIONS}{classes} -Dlog4j2.configurationFile=file:{quiet}"


def _connector(*, local: bool) -> dict[str, str]:
    folder = os.environ.get(JARS)
    if folder:
        # Executors have the same image, so nothing has to be sent to them.
        scheme = "local://" if local else ""
        return {"spark.jars": ",".join(sorted(f"{scheme}{jar}" for jar in Path(folder).glob("*.jar")))}
    os.environ.setdefault(REPOSITORY, "https://repo1.maven.org/maven2/")
    return {
        "spark.jars.packages": ",".join(versions()["spark"].values()),
        "spark.jars.ivySettings": str(files("s3sink_job.spark") / "ivysettings.xml"),
    }


@cache
def versions() -> dict[str, Any]:
    return tomllib.loads((files("s3sink_job") / "versions.toml").read_text())
