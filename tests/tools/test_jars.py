"""The connector's jars: all that Spark lacks, and nothing that it has."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from s3sink_job.spark.session import versions
from tools.parts.jars import broker_jars, connector_jars


def test_the_connector_has_no_jar_that_spark_has() -> None:
    names = {jar.name.rpartition("-")[0] for jar in connector_jars()}
    assert names == {
        "commons-pool2",
        "kafka-clients",
        "spark-sql-kafka-0-10_2.13",
        "spark-token-provider-kafka-0-10_2.13",
    }


SESSION = """
from tools.parts.class_archive import typical_session
spark = typical_session()
for jar in sorted(spark.sparkContext.getConf().get("spark.jars").split(",")):
    print(jar.rpartition("/")[2])
print(spark._jvm.org.apache.kafka.common.utils.AppInfoParser.getVersion())
"""


@pytest.mark.slow
@pytest.mark.spark
def test_without_a_jar_folder_spark_fetches_the_same_jars(tmp_path: Path) -> None:
    """From a repository with only these jars: dependencies of theirs are not requested."""
    coordinates = [coordinate.split(":") for coordinate in versions()["spark"].values()]
    for group, name, release in coordinates:
        place = tmp_path / "repository" / group.replace(".", "/") / name / release
        place.mkdir(parents=True)
        (jar,) = [jar for jar in connector_jars() if jar.name == f"{name}-{release}.jar"]
        shutil.copy(jar, place)
    environment = {name: value for name, value in os.environ.items() if name != "S3SINK_JARS"}
    environment |= {
        "DEFAULT_ARTIFACT_REPOSITORY": (tmp_path / "repository").as_uri(),
        "JAVA_TOOL_OPTIONS": f"-Duser.home={tmp_path}",
    }
    command = [sys.executable, "-c", SESSION]
    done = subprocess.run(
        command, env=environment, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    fetched = {f"{group}_{name}-{release}.jar" for group, name, release in coordinates}
    # Ivy's own output comes before it.
    *jars, client = done.stdout.split()[-len(fetched) - 1 :]
    assert set(jars) == fetched
    assert client == versions()["spark"]["kafka_client"].rpartition(":")[2]


def test_the_broker_has_its_runtime_and_no_tests_or_sources() -> None:
    names = [jar.name for jar in broker_jars()]
    assert any(name.startswith("kafka_2.13-") for name in names)
    assert any(name.startswith("log4j-slf4j-impl-") for name in names)
    assert not [name for name in names if "test" in name or "sources" in name or "javadoc" in name]
