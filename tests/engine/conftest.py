from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from e2e.parts.jars import connector_dir
from e2e.parts.kafka import KafkaBroker
from e2e.parts.s3 import S3Server
from s3sink_job.engine.session import start_session
from s3sink_job.spec import parse
from tests.engine.harness import World


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for every test of the engine: only the first job is slow."""
    os.environ["S3SINK_JARS"] = str(connector_dir())
    sink = parse(
        {
            "apiVersion": "s3sink.dev/v1alpha1",
            "kind": "S3Sink",
            "metadata": {"name": "tests"},
            "spec": {
                "source": {"bootstrapServers": "127.0.0.1:1", "topics": ["none"]},
                "destination": {"bucket": "none"},
                "format": {"type": "Json"},
                "spark": {"driver": {"cores": 2}},
            },
        }
    )
    session = start_session(sink.spec, "tests")
    yield session
    session.stop()


@pytest.fixture
def world(
    kafka: KafkaBroker, s3: S3Server, spark: SparkSession, bucket: str, topic_name: str, tmp_path: Path
) -> Iterator[World]:
    made = World(kafka, s3, spark, bucket, topic_name, tmp_path)
    yield made
    for driver in made.drivers:
        driver.close()
