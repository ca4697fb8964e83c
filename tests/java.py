"""Java code of others, called from a test."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from tools.parts.jars import java, spark_jars_dir


@contextmanager
def java_gateway(jars: Sequence[Path]) -> Iterator[JavaGateway]:
    """A JVM of its own with these jars: those of Spark's session are other versions."""
    (py4j,) = spark_jars_dir().glob("py4j-*.jar")
    classes = os.pathsep.join(map(str, jars))
    port = launch_gateway(jarpath=str(py4j), classpath=classes, java_path=java(), die_on_exit=True)
    opened = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    try:
        yield opened
    finally:
        opened.shutdown()
