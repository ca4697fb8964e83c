"""Repairs of uploads that were aborted after the commit: every object is written again, and nothing waits for it."""

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

from s3sink_api.spec import Retries, Source
from s3sink_job.base.errors import FinalError
from s3sink_job.commit import repairs
from s3sink_job.commit.lost_objects import LostObject, Remainder
from s3sink_job.commit.repairs import Repairs
from s3sink_job.driver.driver import Driver
from s3sink_job.flush.manifest import ObjectEntry, Slice, SliceEntry
from s3sink_job.flush.partition_backoff import PartitionBackoff
from s3sink_job.flush.problem import Problem
from s3sink_job.kafka.admin import Admin
from s3sink_job.kafka.topics import Topics
from s3sink_job.task import flush_job
from s3sink_job.task.slice_result import SliceResult
from tests.commit.test_store_faults import abort_all, committed_but_unpublished
from tests.driver.test_kafka_history import delete_records
from tests.harness import World
from tools.parts.kafka import KafkaBroker
from tools.parts.s3 import S3Server

BY_COUNTRY = {"partitionBy": [{"type": "Topic"}, {"type": "Partition"}, {"type": "Field", "path": ["country"]}]}
COUNTRIES = ["de", "fr", "it", "es", "pl", "nl", "be", "at", "ch", "pt", "se", "dk"]
"""More than a task keeps open at a time: the rest is staged."""


def orders(count: int) -> list[dict[str, Any]]:
    return [{"n": n, "country": COUNTRIES[n % len(COUNTRIES)]} for n in range(count)]


def test_all_lost_objects_of_a_slice_are_repaired_by_reading_it_once(
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
    run_job = flush_job.run_job
    monkeypatch.setattr(
        flush_job,
        "run_job",
        lambda spark, task, *others, **more: jobs.append(len(task.slices)) or run_job(spark, task, *others, **more),
    )

    driver = world.drain(layout=BY_COUNTRY, flush=flush)

    assert set(world.sizes()) == lost
    assert Counter(row["n"] for row in world.rows()) == Counter(dict.fromkeys(range(600), 2))
    assert len(jobs) == 1, "one job for all slices, each read once"
    assert world.state()["lost"] == {}
    report = world.verify(driver)
    assert report.ok, report.counts.findings


def test_repaired_objects_are_committed_before_the_next_ones_are_tried(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.kafka.create_topic(world.topic)
    world.produce(list(range(60)))
    committed_but_unpublished(world, monkeypatch, flush={"records": 10})
    assert abort_all(world) == 6
    monkeypatch.setattr(repairs, "OBJECTS_PER_REPAIR", 2)
    driver = world.driver(flush={"records": 10})

    driver.step()
    left = [sum(map(len, world.state()["lost"].values()))]
    driver.step()
    left.append(sum(map(len, world.state()["lost"].values())))
    world.drain(driver)

    assert left == [4, 2]
    assert world.rows() == list(range(60))
    assert world.verify(driver).ok


def test_a_lost_object_without_its_records_waits_for_a_person_and_blocks_no_other(
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


def test_a_repair_waits_for_a_topic_that_is_hidden_for_a_moment(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1, 2])
    committed_but_unpublished(world, monkeypatch)
    abort_all(world)
    driver = world.driver(source={"onDataLoss": "Skip"}, run="Continuous")
    hidden: Any = SimpleNamespace(describe=dict.fromkeys)

    committer = driver.open()
    driver.flusher.publish(committer, committer.ledger.manifest(committer.state.publishing or ""))
    driver.repairs.repair_some(committer, hidden, {})

    assert driver.repairs.backoff.problems[world.topic, 0].reason == "TopicMissing"
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


def test_a_partition_without_a_leader_delays_neither_flushes_nor_repairs(
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
    assert (dict(told.truncated), set(told.unanswered)) == ({}, {(led.topic, 1)}), "the others are confirmed"
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
    """Unless Kafka may have removed records by compaction."""
    entry = ObjectEntry("raw/t/0/0.jsonl", "u", (), "t", 1, 0, first=0, last=9, rows=10, bytes=100)
    left = Remainder(LostObject(0, entry), 0, 10)
    result = SliceResult(Slice("t", 1, 0, 0, 10, "Repair"), 10, (entry,))
    admin: Any = SimpleNamespace(compacted=lambda topics: compacted)
    nothing: Any = None
    repairing = Repairs(nothing, nothing, PartitionBackoff(Retries(), lambda: 0.0), lambda: 0.0, skip_lost=True)
    written = {0: [ObjectEntry(**{**entry.__dict__, "rows": rows})]}

    assert repairing._is_complete(left, [result], written, admin) is not short

    if short:
        (problem,) = repairing.backoff.problems.values()
        assert problem.reason == "RepairFellShort"
        assert "raw/t/0/0.jsonl held 10 records" in problem.message
    assert json.dumps(sorted(repairing.backoff.until)) == ('[["t", 0]]' if short else "[]")


def test_what_a_repair_wrote_and_lost_again_is_read_by_the_slices_of_its_first_flush() -> None:
    """A manifest of a repair has no slices. Each slice has types of its own."""
    types = ((("n",), '"int64"'),), ((("n",), '"text"'),)
    parts = [SliceEntry("t", 1, 0, 10 * at, 10 * at + 10, "Size", 10, inputs=one) for at, one in enumerate(types)]
    manifests = {
        "first": SimpleNamespace(slices=parts, mends={}),
        "second": SimpleNamespace(slices=[], mends=["first"]),
    }
    third: Any = SimpleNamespace(slices=[], mends=["second"])
    committer: Any = SimpleNamespace(ledger=SimpleNamespace(manifest=manifests.__getitem__))
    nothing: Any = None
    repairing = Repairs(nothing, nothing, PartitionBackoff(Retries(), lambda: 0.0), lambda: 0.0, skip_lost=True)
    entries = [ObjectEntry(f"raw/{at}", "u", (), "t", 1, 0, at, at + 4, rows=5, bytes=100) for at in (3, 12)]
    left = [Remainder(LostObject(at, entry), entry.first, entry.last + 1) for at, entry in enumerate(entries)]

    committed = repairing._committed_slices(committer, third)
    slices = repairs._slices(committed, left)

    assert [(part.start, part.end, repairs._left_out(committed, part).inputs) for part in slices] == [
        (3, 8, types[0]),
        (12, 17, types[1]),
    ]


def test_an_incomplete_repair_waits_if_compaction_of_the_topic_is_not_known() -> None:
    """This used to stop the whole sink."""
    entry = ObjectEntry("raw/t/0/0.jsonl", "u", (), "t", 1, 0, first=0, last=9, rows=10, bytes=100)
    result = SliceResult(Slice("t", 1, 0, 0, 10, "Repair"), 10, (entry,))

    def denied(topics: list[str]) -> set[str]:
        raise FinalError("not authorized", reason="TopicAuthorization")

    admin: Any = SimpleNamespace(compacted=denied)
    nothing: Any = None
    repairing = Repairs(nothing, nothing, PartitionBackoff(Retries(), lambda: 0.0), lambda: 0.0, skip_lost=True)

    assert not repairing._is_complete(Remainder(LostObject(0, entry), 0, 10), [result], {0: []}, admin)
    assert "not authorized" in repairing.backoff.problems["t", 0].message


def test_a_run_that_ends_limits_the_retries_of_a_partition() -> None:
    """With a short backoff it would be due in every step, and the run would never end."""
    problem = Problem("StoreUnavailable", "")
    retries = Retries(max=2, backoff=0.1, max_backoff=0.1)
    ending, lasting = (PartitionBackoff(retries, lambda: 0.0, ends=ends) for ends in (True, False))
    for holds in (ending, lasting):
        for _ in range(3):
            holds.hold(("t", 0), problem, retryable=True)
        holds.hold(("t", 1), problem, retryable=False)

    assert set(ending.until.values()) == {math.inf}
    assert all(until < math.inf for until in lasting.until.values())


def test_a_topic_of_a_pattern_is_not_given_up_before_topics_were_listed() -> None:
    """A driver repairs first when it starts: a topic that is hidden then must not become a gap."""
    topics = Topics(Source(bootstrap_servers="kafka:9092", topic_pattern="orders.*"), lambda: 0.0)

    assert not topics.given_up("orders", 0.0, 60.0)
