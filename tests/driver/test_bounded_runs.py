"""Runs that end at `endingOffsets`, with real Kafka: what they write, and that a restart does not move the end."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from s3sink_job.base.errors import TransientError
from s3sink_job.cli.plan_text import plan_text
from s3sink_job.cli.verify_text import verify_text
from s3sink_job.commit.ledger import Ledger
from s3sink_job.driver.driver import Driver
from s3sink_job.driver.flusher import Flusher
from s3sink_job.driver.preview import preview
from s3sink_job.flush.state import Owner
from s3sink_job.proof.preflight import preflight_checks
from tests.driver.test_kafka_history import transaction
from tests.harness import World, failure_of

LATEST = {"endingOffsets": {"position": "Latest"}}


def millis(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def produce_at(world: World, partition: int, *times: str) -> None:
    """Each record holds the time that it has."""
    records: list[Any] = [(None, json.dumps(time).encode(), None, millis(time)) for time in times]
    world.kafka.produce(world.topic, records, partition)


def ledger(driver: Driver) -> Ledger:
    return Ledger(driver.bucket(), ".s3sink/default/sink", Owner(driver.cluster, "default", "sink"), conditional=True)


def planned(driver: Driver) -> str:
    return plan_text(preview(driver, ledger(driver)).to_doc())


def checked(driver: Driver) -> dict[str, str]:
    arguments = (driver.bucket, lambda _: ledger(driver), driver.kafka.admin, driver.secrets)
    return {found.what: f"{found.ok} {found.text}" for found in preflight_checks(driver.sink, *arguments)}


def test_january_of_a_topic_is_one_manifest_and_stays_january(world: World) -> None:
    world.kafka.create_topic(world.topic, partitions=3)
    produce_at(world, 0, "2025-12-31T23:59:59", "2026-01-01T00:00:00", "2026-01-31T23:59:59", "2026-02-01T00:00:00")
    produce_at(world, 1, "2026-01-05T00:00:00", "2026-01-06T00:00:00")
    produce_at(world, 2, "2026-02-02T00:00:00")
    start = {"position": "Timestamp", "timestamp": "2026-01-01T00:00:00Z"}
    january = {
        "startingOffsets": start,
        "endingOffsets": {"position": "Timestamp", "timestamp": "2026-02-01T00:00:00Z"},
    }
    driver = world.driver(source=january)
    assert (
        checked(driver)["end"]
        == "True Timestamp 2026-02-01T00:00:00Z: Kafka has 5 offsets below it; the next run fixes it"
    )
    text = planned(driver)
    assert "the run ends at spec.source.endingOffsets, Timestamp 2026-02-01T00:00:00Z" in text
    assert f"{world.topic}-0: committed 1, end 3, 2 behind; due by Drain" in text
    assert f"{world.topic}-2: committed 0, end 0, 0 behind" in text

    world.drain(driver)

    assert sorted(world.rows()) == [
        "2026-01-01T00:00:00",
        "2026-01-05T00:00:00",
        "2026-01-06T00:00:00",
        "2026-01-31T23:59:59",
    ]
    status = driver.reporter.status()
    assert status["lag"]["records"] == status["lag"]["recordsToHighWatermark"] == 0
    (caught_up,) = (c for c in status["conditions"] if c["type"] == "CaughtUp")
    assert (caught_up["status"], caught_up["message"]) == ("True", "everything below endingOffsets is in the bucket")
    report = world.verify(driver)
    assert (report.ok, report.counts.records, report.left) == (True, 4, 0)
    assert "end         endingOffsets: reached" in verify_text(report)
    driver.complete()
    # A late record belongs to January by its time, and comes after the end.
    produce_at(world, 1, "2026-01-07T00:00:00")

    again = world.drain(source=january)

    assert len(world.rows()) == 4
    assert "fixed at" in checked(again)["end"]


def test_a_restarted_run_keeps_the_end_and_the_next_run_fixes_its_own(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1, 2])
    with monkeypatch.context() as patch:

        def crash(*_: Any) -> bool:
            raise TransientError("killed before the first flush")

        patch.setattr(Flusher, "flush", crash)
        failure_of(world.driver(source=LATEST).step)
    world.produce([3])
    report = world.verify(world.driver(source=LATEST))
    assert (report.ok, report.left) == (True, 2)
    assert "endingOffsets: 2 offsets below it are not written yet" in verify_text(report)

    driver = world.drain(source=LATEST)
    assert world.rows() == [1, 2]
    # Killed between the last flush and its exit: the same run again.
    world.drain(source=LATEST)
    assert world.rows() == [1, 2]
    driver = world.drain(source=LATEST)
    driver.complete()
    world.drain(source=LATEST)
    assert world.rows() == [1, 2, 3]


def test_an_end_within_an_open_transaction_waits_for_it(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1])
    producer = transaction(world, [2, 3], commit=None)
    world.produce([4])
    end = {"position": "Offsets", "offsets": [{"topic": world.topic, "partition": 0, "offset": 2}]}
    driver = world.driver(source={"endingOffsets": end})
    for _ in range(3):
        driver.step()
    assert not driver.finished
    assert world.rows() == [1]
    (caught_up,) = (c for c in driver.reporter.status()["conditions"] if c["type"] == "CaughtUp")
    assert caught_up["reason"] == "OpenTransaction"
    producer.commit_transaction()

    world.drain(driver)

    assert world.rows() == [1, 2]
    assert world.verify(driver).ok


def test_an_end_that_kafka_does_not_have_is_refused_before_anything_is_stored(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1])
    end = {"position": "Offsets", "offsets": [{"topic": world.topic, "partition": 0, "offset": 2}]}
    driver = world.driver(source={"endingOffsets": end})
    words = f"EndingOffsets: spec.source.endingOffsets.offsets[0]: {world.topic}-0 ends at offset 1, got 2"
    assert checked(driver)["kafka"].startswith(f"False {words}")
    error = failure_of(driver.step)
    assert (error.reason, error.retryable) == ("EndingOffsets", False)
    assert world.state()["contacted"] is False
