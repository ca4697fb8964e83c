from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.parts.class_archive import make
from tools.parts.jars import connector_dir


@pytest.mark.slow
@pytest.mark.spark
def test_a_driver_loads_spark_from_the_class_archive(tmp_path: Path) -> None:
    log = tmp_path / "classes.log"
    environment = {
        "S3SINK_CLASSES": str(make()),
        "S3SINK_JARS": str(connector_dir()),
        "JAVA_TOOL_OPTIONS": f"-Xlog:class+load:file={log}",
    }
    command = [sys.executable, "-c", "from tools.parts.class_archive import typical; typical()"]
    subprocess.run(command, env={**os.environ, **environment}, cwd=Path(__file__).parents[2], check=True)
    loaded = log.read_text()
    assert "org.apache.spark.SparkContext source: shared objects file (top)" in loaded
    assert "org.apache.spark.sql.catalyst.expressions.Expression source: shared objects file (top)" in loaded
