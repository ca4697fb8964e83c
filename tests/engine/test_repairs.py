"""Uploads that somebody aborted after their flush was committed: each comes back whole, and nothing waits for them."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from e2e.parts.kafka import KafkaBroker
from e2e.parts.s3 import S3Server
from s3sink_job.engine import repair, writing
from s3sink_job.engine.driver import Driver
from s3sink_job.engine.holds import Holds
from s3sink_job.engine.lost import Left, Lost
from s3sink_job.engine.repair import Repairs
from s3sink_job.engine.topics import Topics
from s3sink_job.engine.write import SliceResult
from s3sink_job.errors import FinalError
from s3sink_job.flush.manifest import ObjectEntry, Slice
from s3sink_job.flush.problem import Problem
from s3sink_job.kafka.admin import Admin
from s3sink_job.spec import Retries, Source
from tests.engine.harness import World
from tests.engine.test_kafka_history import delete_records
from tests.engine.test_store_faults import abort_all, committed_but_unpublished

BY_COUNTRY = {"partitionBy": [{"type": "Topic"}, {"type": "Partition"}, {"type": "Field", "path": ["country"]}]}
COUNTRIES = ["de", "fr", "it", "es", "pl", "nl", "be", "at", "ch", "pt", "se", "dk"]
"""More than a task keeps open at a time: the rest is staged."""


def orders(count: int) -> list[dict[str, Any]]:
    return [{"n": n, "country": COUNTRIES[n % len(COUNTRIES)]} for n in range(count)]


def test_all_lost_objects_of_a_slice_come_back_by_one_reading_of_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.kafka.create_topic(world.topic, partitions=2)
    for partition in range(2):
        world.produce(orders(600), partition)
    flush = {"records": 20, "interval": "1h"}
    committed_but_unpublished(world, monkeypatch, layout=BY_COUNTRY, flush=flush)
    lost = {upload["Key"] for upload in world.client().list_multipart_uploads(Bucket=world.bucket)["Uploads"]}
    assert abort_all(world) == len(lost) > 2 * len(COUNTRIES)
    jobs: list[int] = []
    run_job = writing.run_job
    monkeypatch.setattr(
        writing,
        "run_job",
        lambda spark, task, *others, **more: jobs.append(len(task.slices)) or run_job(spark, task, *others, **more),
    )

    driver = world.drain(layout=BY_COUNTRY, flush=flush)

    assert set(world.sizes()) == lost
    assert Counter(row["n"] for row in world.rows()) == Counter(dict.fromkeys(range(600), 2))
    assert len(jobs) == 1, "one job for all slices, each read once"
    assert world.state()["lost"] == {}
    report = world.verify(driver)
    assert report.ok, report.tally.findings


def test_what_came_back_is_committed_before_the_rest_is_tried(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.kafka.create_topic(world.topic)
    world.produce(list(range(60)))
    committed_but_unpublished(world, monkeypatch, flush={"records": 10})
    assert abort_all(world) == 6
    monkeypatch.setattr(repair, "AT_A_TIME", 2)
    driver = world.driver(flush={"records": 10})

    driver.step()
    left = [sum(map(len, world.state()["lost"].values()))]
    driver.step()
    left.append(sum(map(len, world.state()["lost"].values())))
    world.drain(driver)

    assert left == [4, 2]
    assert world.rows() == list(range(60))
    assert world.verify(driver).ok


def test_records_that_are_gone_with_their_upload_wait_for_a_decision_and_hold_up_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.kafka.create_topic(world.topic, partitions=2)
    world.produce(list(range(10)), 0)
    world.produce([100], 1)
    committed_but_unpublished(world, monkeypatch, flush={"records": 5})
    abort_all(world)
    delete_records(world, before=7)
    world.produce(list(range(10, 15)), 0)

    stopped = world.drain(flush={"records": 5})

    assert stopped.problems[world.topic, 0].reason == "DataLoss"
    assert "onDataLoss to Skip" in stopped.problems[world.topic, 0].message
    assert (world.rows(0), world.rows(1)) == ([10, 11, 12, 13, 14], [100])
    assert world.state()["formatVersion"] == 3
    driver = world.drain(source={"onDataLoss": "Skip"}, flush={"records": 5})
    assert world.rows(0) == [7, 8, 9, 10, 11, 12, 13, 14]
    assert driver.problems == {}
    assert world.verify(driver).ok


def test_a_topic_that_may_not_be_seen_for_a_moment_is_waited_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1, 2])
    committed_but_unpublished(world, monkeypatch)
    abort_all(world)
    driver = world.driver(source={"onDataLoss": "Skip"}, run="Continuous")
    hidden: Any = SimpleNamespace(describe=dict.fromkeys)

    books = driver.open()
    driver._publish(books, books.ledger.manifest(books.state.publishing or ""))
    driver._repairs.mend(books, hidden, {})

    assert driver._repairs.holds.problems[world.topic, 0].reason == "TopicMissing"
    assert world.state()["recent_gaps"] == []
    world.drain()
    assert world.rows() == [1, 2]


@pytest.fixture(scope="module")
def two() -> Iterator[tuple[KafkaBroker, KafkaBroker]]:
    with KafkaBroker() as first, KafkaBroker(join=first) as second:
        yield first, second


@pytest.fixture
def led(
    two: tuple[KafkaBroker, KafkaBroker],
    s3: S3Server,
    spark: SparkSession,
    bucket: str,
    topic_name: str,
    tmp_path: Path,
) -> Iterator[World]:
    """The second partition is on a broker that can be stopped."""
    first = two[0]
    world = World(first, s3, spark, bucket, topic_name, tmp_path)
    first.create_topic(topic_name, partitions=2, brokers=[[1], [2]])
    yield world
    for driver in world.drivers:
        driver.close()


def test_a_partition_without_a_leader_holds_up_neither_looks_nor_flushes_nor_repairs(
    led: World, two: tuple[KafkaBroker, KafkaBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    led.produce([1], 0)
    led.produce([2], 1)
    committed_but_unpublished(led, monkeypatch)
    assert abort_all(led) == 2
    epochs = led.state()["leader_epochs"][led.topic]
    two[1].stop()
    admin = Admin(led.spark._jvm, {"bootstrap.servers": led.kafka.bootstrap})
    told = admin.validate({(led.topic, p): (1, epochs[str(p)]) for p in range(2)})
    admin.close()
    assert (dict(told.cut), set(told.unknown)) == ({}, {(led.topic, 1)}), "the others are confirmed"
    led.produce([3], 0)
    driver = led.driver(run="Continuous", flush={"records": 1, "interval": "1h"})

    steps = timed_steps(driver, 6)

    assert led.rows(0) == [1, 3]
    assert driver.problems[led.topic, 1].reason == "PartitionUnavailable"
    assert sum(steps[2:]) < 10, steps
    two[1].start()
    led.drain()
    assert led.rows(1) == [2]


def timed_steps(driver: Driver, count: int) -> list[float]:
    taken = []
    for _ in range(count):
        begin = time.monotonic()
        driver.step()
        taken.append(time.monotonic() - begin)
    return taken


@pytest.mark.parametrize(("rows", "compacted", "short"), [(10, set(), False), (9, set(), True), (9, {"t"}, False)])
def test_a_lost_object_is_never_replaced_by_less_than_it_held(rows: int, compacted: set[str], short: bool) -> None:
    """Unless Kafka may have dropped records by itself."""
    entry = ObjectEntry("raw/t/0/0.jsonl", "u", (), "t", 1, 0, first=0, last=9, rows=10, bytes=100)
    left = Left(Lost(0, entry), 0, 10)
    result = SliceResult(Slice("t", 1, 0, 0, 10, "Repair"), 10, (entry,))
    admin: Any = SimpleNamespace(compacted=lambda topics: compacted)
    nothing: Any = None
    repairs = Repairs(nothing, nothing, Holds(Retries(), lambda: 0.0), lambda: 0.0, skip_lost=True)
    written = {0: [ObjectEntry(**{**entry.__dict__, "rows": rows})]}

    assert repairs._is_whole(left, [result], written, admin) is not short

    if short:
        (problem,) = repairs.holds.problems.values()
        assert problem.reason == "RepairFellShort"
        assert "raw/t/0/0.jsonl held 10 records" in problem.message
    assert json.dumps(sorted(repairs.holds.until)) == ('[["t", 0]]' if short else "[]")


def test_a_repair_that_falls_short_waits_where_nobody_may_say_whether_the_topic_is_compacted() -> None:
    """It stopped the whole sink."""
    entry = ObjectEntry("raw/t/0/0.jsonl", "u", (), "t", 1, 0, first=0, last=9, rows=10, bytes=100)
    result = SliceResult(Slice("t", 1, 0, 0, 10, "Repair"), 10, (entry,))

    def denied(topics: list[str]) -> set[str]:
        raise FinalError("not authorized", reason="TopicAuthorization")

    admin: Any = SimpleNamespace(compacted=denied)
    nothing: Any = None
    repairs = Repairs(nothing, nothing, Holds(Retries(), lambda: 0.0), lambda: 0.0, skip_lost=True)

    assert not repairs._is_whole(Left(Lost(0, entry), 0, 10), [result], {0: []}, admin)
    assert "not authorized" in repairs.holds.problems["t", 0].message


def test_a_run_that_ends_does_not_try_again_what_was_tried_often_enough() -> None:
    """With a short back-off it would be due at every look, and the run never end."""
    problem = Problem("StoreUnavailable", "")
    retries = Retries(max=2, backoff=0.1, max_backoff=0.1)
    ending, lasting = (Holds(retries, lambda: 0.0, ends=ends) for ends in (True, False))
    for holds in (ending, lasting):
        for _ in range(3):
            holds.hold(("t", 0), problem, retryable=True)
        holds.hold(("t", 1), problem, retryable=False)

    assert set(ending.until.values()) == {math.inf}
    assert all(until < math.inf for until in lasting.until.values())


def test_a_topic_of_a_pattern_is_not_given_up_before_anybody_has_looked_for_it() -> None:
    """A starting driver repairs first: a topic that is hidden just then must not become a gap."""
    topics = Topics(Source(bootstrap_servers="kafka:9092", topic_pattern="orders.*"), lambda: 0.0)

    assert not topics.given_up("orders", 0.0, 60.0)
