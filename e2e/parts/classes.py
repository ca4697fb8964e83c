"""Spark's classes as Java keeps them in memory, in a file: with it a driver's JVM starts with half of the CPU time.

Java takes such an archive only for the very jars that it was made of, in their places: it stays with the environment
that has them.

    python -m e2e.parts.classes      make it now
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from e2e.parts.cache import locked
from e2e.parts.jars import connector_dir, java
from e2e.parts.processes import PartFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SINK = {
    "apiVersion": "s3sink.dev/v1alpha1",
    "kind": "S3Sink",
    "metadata": {"name": "classes"},
    "spec": {
        "source": {"bootstrapServers": "127.0.0.1:1", "topics": ["none"]},
        "destination": {"bucket": "none"},
        "format": {"type": "Json"},
    },
}


def class_archive() -> Path:
    """Where it is, or would be."""
    told = subprocess.run([java(), "-version"], capture_output=True, text=True, check=True).stderr
    key = hashlib.sha256(f"{told} {version('pyspark')}".encode()).hexdigest()[:8]
    return Path(sys.prefix) / f"spark-{key}.jsa"


def make() -> Path:
    archive = class_archive()
    with locked(archive.with_suffix(".lock")):
        if not archive.exists():
            print("• keeping Spark's classes for quicker starts: half a minute, once", file=sys.stderr, flush=True)
            _make(archive)
    return archive


def _make(archive: Path) -> None:
    staging = archive.with_suffix(".new")
    # Java writes it when it ends, which is after Python has: its output ends then, too.
    done = subprocess.run(
        [sys.executable, "-c", f"from {__spec__.name} import typical; typical()"],
        cwd=Path(__file__).parents[2],
        env={
            **os.environ,
            "S3SINK_CLASSES": "",
            "S3SINK_JARS": str(connector_dir()),
            "JAVA_TOOL_OPTIONS": f"-XX:ArchiveClassesAtExit={staging} -Xlog:cds=off -Xlog:cds+dynamic=off",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0 or not staging.exists():
        raise PartFailed(f"Java wrote no archive of Spark's classes:\n{done.stdout}{done.stderr}")
    staging.rename(archive)


def typical() -> None:
    """What every sink has Java do, but for Kafka, whose classes Spark loads in a way that no archive can hold."""
    from s3sink_job.engine.batches import without_large

    spark = typical_session()
    frame = spark.range(0, 1000, 1, 2).selectExpr(
        "id AS offset", "encode(string(id), 'utf-8') AS value", "1 AS partition"
    )
    without_large(frame).unionAll(frame).mapInArrow(lambda batches: batches, frame.schema).collect()
    spark.stop()


def typical_session() -> SparkSession:
    from s3sink_job.engine.session import start_session
    from s3sink_job.spec import parse

    return start_session(parse(_SINK).spec, "classes")


if __name__ == "__main__":
    make()
