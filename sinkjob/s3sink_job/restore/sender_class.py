"""The Java class that sends records, compiled by the Janino that Spark brings along for its own generated code.

So no JDK is needed, and no jar has to be built and shipped. Executors get the class as a jar, from the driver.
"""

from __future__ import annotations

import zipfile
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pyspark import SparkFiles
from pyspark.sql import SparkSession

SOURCE = "RecordSender.java"
NAME = "dev.s3sink.restore.RecordSender"


def sender_class(spark: SparkSession) -> Any:
    """The class, in the driver's JVM. Compiled once for each session."""
    return _compiled(spark.sparkContext.applicationId, spark)


@lru_cache(maxsize=1)
def _compiled(application: str, spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook((files("s3sink_job.restore") / SOURCE).read_text())
    # Spark removes this folder when the session ends.
    jar = Path(SparkFiles.getRootDirectory()) / "restore" / f"record-sender-{application}.jar"
    jar.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(jar, "w") as archive:
        for name, code in compiler.getBytecodes().items():
            archive.writestr(f"{name.replace('.', '/')}.class", bytes(code))
    spark.sparkContext._jsc.sc().addJar(str(jar))
    return compiler.getClassLoader().loadClass(NAME)


def new_sender(spark: SparkSession, *arguments: Any) -> Any:
    """An instance, by the only constructor of the class."""
    gateway: Any = spark.sparkContext._gateway
    values = gateway.new_array(gateway.jvm.java.lang.Object, len(arguments))
    for at, argument in enumerate(arguments):
        values[at] = argument
    return sender_class(spark).getConstructors()[0].newInstance(values)
