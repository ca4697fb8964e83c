"""What Java prints does not mix with the output of a command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.parts.jars import connector_dir

PROGRAM = """
from tools.parts.class_archive import typical_session
session = typical_session()
java = session.sparkContext._jvm.java.lang.System
java.out.println(f"conf {java.getenv('SPARK_CONF_DIR')}")
session.stop()
"""


@pytest.mark.slow
@pytest.mark.spark
def test_java_starts_without_a_warning_and_writes_nothing_to_standard_output() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_CONF_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=Path(__file__).parents[2],
        env={**environment, "S3SINK_JARS": str(connector_dir())},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    # Spark looks for settings where it always does.
    assert line.startswith("conf ")
    assert line.endswith("pyspark/conf")
