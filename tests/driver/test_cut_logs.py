"""Truncated logs that grow again, as after an unclean leader election or on a restored disk."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from s3sink_job.kafka.admin import Admin
from tests.harness import World
from tools.parts.kafka import KafkaBroker
from tools.parts.s3 import S3Server

SKIP = {"onDataLoss": "Skip"}


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    """A broker for this module only: it is stopped and its logs are replaced."""
    with KafkaBroker() as broker:
        yield broker


@pytest.fixture
def cut(
    broker: KafkaBroker, s3: S3Server, spark: SparkSession, bucket: str, topic_name: str, tmp_path: Path
) -> Iterator[World]:
    """Ten records were committed. Then the log lost the last five of them, and got seven others."""
    world = World(broker, s3, spark, bucket, topic_name, tmp_path)
    broker.create_topic(topic_name, partitions=2)
    world.produce([f"old {n}" for n in range(5)])
    world.produce(["other"], partition=1)
    log, kept = broker.folder / f"{topic_name}-0", tmp_path / "kept"
    broker.stop()
    shutil.copytree(log, kept)
    broker.start()
    world.produce([f"old {n}" for n in range(5, 10)])
    world.drain()
    broker.stop()
    shutil.rmtree(log)
    shutil.copytree(kept, log)
    broker.start()
    world.produce([f"new {n}" for n in range(5, 12)])
    yield world
    for driver in world.drivers:
        driver.close()


def test_a_truncated_log_that_grew_again_stops_its_partition(cut: World) -> None:
    written = cut.objects()
    for _ in range(2):
        driver = cut.drain()
        (problem,) = driver.problems.values()
        assert problem.reason == "LogTruncated"
        assert "differs from offset 5 on" in problem.message
    cut.produce(["another"], partition=1)
    cut.produce([f"new {n}" for n in range(12, 40)])
    cut.drain()

    assert cut.rows(1) == ["other", "another"]
    assert [key for key in cut.objects() if f"/{cut.topic}/0/" in key] == [key for key in written if "/0/" in key]
    assert cut.state()["cuts"][cut.topic]["0"]["at"] == 5


def test_skip_writes_every_record_of_the_new_log_under_new_names(cut: World) -> None:
    driver = cut.drain(source=SKIP)

    assert driver.problems == {}
    keys = [key for key in cut.objects() if f"/{cut.topic}/0/" in key]
    assert [key.rpartition("/")[2] for key in keys] == ["0000000000000000000.jsonl", "0000000000000000005-g2.jsonl"]
    assert cut.rows(0) == [f"old {n}" for n in range(10)] + [f"new {n}" for n in range(5, 12)]
    (event,) = cut.state()["truncations"]
    assert (event["partition"], event["committed"], event["resumed"]) == (0, 10, 5)
    report = cut.verify(driver)
    assert report.ok, report.counts.findings


def test_a_change_of_leader_that_lost_nothing_changes_nothing(cut: World) -> None:
    driver = cut.drain(source=SKIP)
    before = cut.state()["leader_epochs"][cut.topic]["0"]
    cut.kafka.stop()
    cut.kafka.start()
    cut.produce(["after"])

    again = cut.drain(source=SKIP)

    assert again.problems == driver.problems == {}
    assert cut.rows(0)[-1] == "after"
    assert cut.state()["topics"][cut.topic]["generation"] == 2
    assert cut.state()["leader_epochs"][cut.topic]["0"] > before


def test_the_broker_returns_the_offset_where_logs_diverge(cut: World) -> None:
    admin = Admin(cut.spark._jvm, {"bootstrap.servers": cut.kafka.bootstrap})
    at, other = (cut.topic, 0), (cut.topic, 1)
    epoch = cut.state()["leader_epochs"][cut.topic]["0"]
    try:
        told = admin.validate({at: (10, epoch), other: (1, epoch)})
        confirmed = admin.validate({at: (5, epoch)})
    finally:
        admin.close()

    assert (dict(told.truncated), dict(told.unanswered)) == ({at: 5}, {})
    assert (dict(confirmed.truncated), dict(confirmed.unanswered)) == ({}, {})
