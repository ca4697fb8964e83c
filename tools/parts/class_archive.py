"""An archive of Spark's classes (class data sharing): with it a driver's JVM starts in half of the CPU time.

Java accepts an archive only together with the same jars at the same paths, so it stands in the Python environment that
has these jars.

    python -m tools.parts.class_archive      makes it, unless it exists
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from tools.parts.cache import locked
from tools.parts.jars import connector_dir, java
from tools.parts.processes import PartFailed

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
    """Its path, whether it exists or not."""
    java_version = subprocess.run([java(), "-version"], capture_output=True, text=True, check=True).stderr
    # Java refuses an archive that was made with other modules than it is started with.
    launcher = (files("s3sink_job.spark") / "launcher" / "spark-env.sh").read_text()
    key = hashlib.sha256(f"{java_version} {version('pyspark')} {launcher}".encode()).hexdigest()[:8]
    return Path(sys.prefix) / f"spark-{key}.jsa"


def make() -> Path:
    archive = class_archive()
    with locked(archive.with_suffix(".lock")):
        if not archive.exists():
            print("• making an archive of Spark's classes: half a minute, once", file=sys.stderr, flush=True)
            _make(archive)
    return archive


def _make(archive: Path) -> None:
    staging = archive.with_suffix(".new")
    # Java writes the archive when it ends, which is after Python: reading its output waits for that.
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
    """Loads the classes that every sink needs, except Kafka's: Spark's class loader for them supports no archive."""
    from s3sink_job.kafka.batch_size import without_large

    spark = typical_session()
    frame = spark.range(0, 1000, 1, 2).selectExpr(
        "id AS offset", "encode(string(id), 'utf-8') AS value", "1 AS partition"
    )
    frame = without_large(frame)
    frame.unionAll(frame).mapInArrow(lambda batches: batches, frame.schema).collect()
    spark.stop()


def typical_session() -> SparkSession:
    from s3sink_api.spec import parse
    from s3sink_job.spark.session import start_session

    return start_session(parse(_SINK).spec, "classes")


if __name__ == "__main__":
    make()
