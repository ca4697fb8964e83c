"""When the sink flushes, by each rule, and how it writes a backlog."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from s3sink_job.base.retry import RetryPolicy
from s3sink_job.cli.opened_sink import LOCAL_CLUSTER
from s3sink_job.cli.plan_text import plan_text
from s3sink_job.commit.ledger import Ledger
from s3sink_job.driver.driver import Driver
from s3sink_job.driver.preview import preview
from s3sink_job.flush.manifest import Manifest, Slice
from s3sink_job.flush.state import Owner
from s3sink_job.kafka.slice_reader import in_reads, read_slices
from s3sink_job.stores.factory import open_bucket
from tests.harness import PATIENCE, World, failure_of


def until(driver: Driver, done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < deadline, driver.reporter.status()
        driver.step()
        time.sleep(0.05)


def last_flush(driver: Driver) -> Manifest:
    assert driver.committer is not None
    state = driver.committer.state
    assert state.last is not None
    return driver.committer.ledger.manifest(state.last)


def reason(driver: Driver) -> Any:
    return driver.reporter.status()["flush"].get("lastReason")


def counted(driver: Driver) -> dict[str, float]:
    """Flushed slices by reason, as Prometheus counts them."""
    (family,) = (f for f in driver.reporter.metrics.registry.collect() if f.name == "s3sink_flushes")
    return {s.labels["reason"]: s.value for s in family.samples if s.name == "s3sink_flushes_total"}


def caught_up(driver: Driver) -> str:
    conditions = {c["type"]: c["reason"] for c in driver.reporter.status()["conditions"]}
    return str(conditions["CaughtUp"])


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def in_small_pieces(driver: Driver) -> Driver:
    """As for a backlog of gigabytes, with a handful of records."""
    driver.planner.limits = replace(driver.planner.limits, smallest=1)
    return driver


def test_aligned_writes_at_multiples_of_the_clock_and_says_so(world: World) -> None:
    noon = 1_000_000 * 900.0
    now = [noon - 10]
    world.kafka.create_topic(world.topic)
    driver = world.driver(run="Continuous", flush={"aligned": "15m"}, clock=lambda: now[0])
    driver.step()
    world.produce([1, 2])
    now[0] = noon - 1
    driver.step()
    assert world.objects() == [], "too early"
    now[0] = noon
    driver.step()
    assert reason(driver) == "Aligned"
    assert counted(driver) == {"Aligned": 1}
    assert world.rows() == [1, 2]
    world.produce([3])
    now[0] = noon + 899
    driver.step()
    assert driver.reporter.status()["flush"]["nextDue"] == iso(noon + 900)


def test_aligned_writes_at_midnight_of_its_time_zone(world: World) -> None:
    """On the day that begins at UTC 22:00 and has 25 hours."""
    midnight = datetime(2026, 10, 24, 22, tzinfo=UTC).timestamp()
    now = [midnight + 1]
    world.kafka.create_topic(world.topic)
    flush = {"aligned": "24h", "interval": "100h", "timezone": "Europe/Berlin"}
    driver = world.driver(run="Continuous", flush=flush, clock=lambda: now[0])
    driver.step()
    world.produce([1])
    now[0] = midnight + 25 * 3600 - 1
    driver.step()
    assert world.objects() == []
    assert driver.reporter.status()["flush"]["nextDue"] == iso(midnight + 25 * 3600)
    now[0] += 1
    driver.step()
    assert reason(driver) == "Aligned"


def test_the_bytes_rule_fires_once_a_flush_has_measured_the_records(world: World) -> None:
    world.kafka.create_topic(world.topic)
    record = "x" * 98
    world.produce([record] * 100)
    flush = {"records": 100, "bytes": 40 * 101, "interval": "1h"}
    driver = world.driver(run="Continuous", flush=flush)
    driver.step()
    assert reason(driver) == "Records", "nothing is known of sizes yet"
    measured = world.state()["topics"][world.topic]["partitions"]["0"]
    assert measured["written_per_offset"] == pytest.approx(101, rel=0.1)
    assert measured["read_per_offset"] > 100

    world.produce([record] * 29)
    driver.step()
    assert reason(driver) == "Records", "not enough yet"
    assert counted(driver) == {"Records": 1}
    world.produce([record] * 35)
    driver.step()
    assert reason(driver) == "Bytes"
    assert counted(driver) == {"Records": 1, "Bytes": 1}
    driver.step()
    assert driver.reporter.status()["lag"]["records"] == 64 - 38, "only whole objects; the rest stays in Kafka"
    assert world.verify(driver).ok


def test_a_long_partition_is_cut_so_that_every_task_has_work(world: World) -> None:
    world.kafka.create_topic(world.topic, partitions=2)
    world.produce(list(range(45_000)), partition=0)
    world.produce(list(range(10)), partition=1)
    driver = world.driver(flush={"records": 10_000})
    driver.step()
    flush = last_flush(driver)
    ranges = sorted((s.partition, s.start, s.end) for s in flush.slices)
    assert ranges == [(0, 0, 20_000), (0, 20_000, 45_000), (1, 0, 10)]
    assert sorted(o.rows for o in flush.objects) == [10, 5_000, 10_000, 10_000, 10_000, 10_000]
    world.drain(driver)
    report = world.verify(driver)
    assert (report.ok, report.counts.records) == (True, 45_010)


def test_each_slice_is_one_task_and_nothing_is_exchanged(world: World) -> None:
    world.kafka.create_topic(world.topic, partitions=2)
    for partition in range(2):
        world.produce(list(range(30)), partition=partition)
    bounds = [(0, 0, 10), (0, 10, 20), (0, 20, 30), (1, 0, 30)]
    slices = [Slice(world.topic, 1, partition, start, end, "Drain") for partition, start, end in bounds]
    assert [len(read) for read in in_reads(slices)] == [2, 1, 1]
    frame = read_slices(
        *(world.spark, slices, {"bootstrap.servers": world.kafka.bootstrap}),
        columns=("value",),
        group="g",
        isolation="ReadCommitted",
    )
    tasks = frame.rdd.glom().map(lambda rows: (rows[0].partition, rows[0].offset, rows[-1].offset + 1)).collect()
    assert sorted(tasks) == bounds
    assert "Exchange" not in frame._jdf.queryExecution().executedPlan().toString()


def test_no_slice_behind_a_bad_record_is_committed_and_correcting_it_loses_nothing(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([n if n != 5 else b"{broken" for n in range(40)])
    driver = in_small_pieces(world.driver(flush={"records": 10}))
    driver.step()
    assert [(s.start, s.end) for s in last_flush(driver).slices] == [(0, 5)]
    assert world.state()["topics"][world.topic]["partitions"]["0"]["offset"] == 5
    assert world.rows() == [0, 1, 2, 3, 4]
    uploads = world.client().list_multipart_uploads(Bucket=world.bucket).get("Uploads", [])
    assert uploads == [], "what was uploaded behind it is abandoned"

    world.drain(driver)
    problem = driver.problems[world.topic, 0]
    assert problem.reason == "BadRecord"
    assert f"topic {world.topic}, partition 0, offset 5" in problem.message
    assert world.rows() == [0, 1, 2, 3, 4]

    mended = in_small_pieces(world.driver(flush={"records": 10}, errors={"records": "Skip"}))
    world.drain(mended)
    assert world.rows() == [n for n in range(40) if n != 5]
    report = world.verify(mended)
    assert (report.ok, report.skipped) == (True, 1)


def test_a_backlog_larger_than_a_flush_is_written_without_waiting_for_the_interval(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce(list(range(95)))
    driver = world.driver(run="Continuous", flush={"records": 1000, "interval": "1s"})
    driver.planner.limits = replace(driver.planner.limits, bytes_per_second=1024.0 / 60 * 40)
    until(driver, lambda: bool(world.objects()))
    began = world.state()["topics"][world.topic]["partitions"]["0"]
    assert (began["offset"], began["waiting_since"] is None) == (40, False)
    driver.planner.limits = replace(driver.planner.limits, bytes_per_second=None)
    driver.step()
    assert world.rows() == list(range(95))
    assert reason(driver) == "Interval"
    assert counted(driver) == {"Interval": 2}


def test_all_tasks_together_keep_to_the_rate_and_the_status_names_it_as_the_cause(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce(["x" * 1000] * 3_000)
    driver = in_small_pieces(world.driver(source={"maxBytesPerSecond": "500Ki"}, flush={"records": 500}))
    began = time.monotonic()
    driver.step()
    assert time.monotonic() - began > 3_000_000 / (500 * 1024) * 0.9
    assert len(last_flush(driver).slices) == 2
    assert caught_up(driver) == "Throttled"
    world.drain(driver)
    assert caught_up(driver) == "Level"
    assert world.verify(driver).ok


def everything_in(world: World) -> dict[str, str]:
    answer = world.client().list_objects_v2(Bucket=world.bucket)
    return {o["Key"]: o["ETag"] for o in answer.get("Contents", [])}


def planned(world: World, driver: Driver) -> dict[str, Any]:
    spec = driver.sink.spec
    bucket = open_bucket(spec.destination, driver.secrets, RetryPolicy(1, 0.01))
    owner = Owner(LOCAL_CLUSTER, "default", "sink")
    before = everything_in(world)
    doc = preview(driver, Ledger(bucket, ".s3sink/default/sink", owner, conditional=True)).to_doc()
    assert everything_in(world) == before, "a plan writes nothing"
    return doc


def test_a_plan_shows_where_a_sink_that_never_ran_would_start(world: World) -> None:
    world.kafka.create_topic(world.topic, partitions=2)
    world.produce(list(range(25)), partition=0)
    latest = {"source": {"startingOffsets": {"position": "Latest"}}}
    doc = planned(world, world.driver(**latest))
    assert doc["state"] is None
    assert [(p["partition"], p["committed"], p["lag"]) for p in doc["partitions"]] == [(0, 25, 0), (1, 0, 0)]
    assert plan_text(doc).endswith("nothing is due")

    doc = planned(world, world.driver(flush={"records": 10}))
    first, second = doc["partitions"]
    assert (first["reason"], first["slices"], first["objects"]) == ("Drain", [{"from": 0, "to": 25}], 3)
    assert first["keys"] == [f"raw/{world.topic}/0/{0:019d}.jsonl"]
    assert "reason" not in second
    assert "has never run" in plan_text(doc)
    assert "one flush: 25 offsets of 1 partitions in about 3 objects" in plan_text(doc)


def test_a_plan_is_what_the_next_flush_does_and_takes_nothing_over(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce(list(range(20)))
    settings: dict[str, Any] = {"run": "Continuous", "flush": {"records": 10}}
    driver = world.driver(**settings)
    driver.step()
    world.produce(list(range(20, 25)))
    doc = planned(world, world.driver(**settings))
    (partition,) = doc["partitions"]
    assert (partition["committed"], partition["lag"], partition["waitsFor"]) == (20, 5, "Interval")
    world.produce(list(range(25, 41)))
    (partition,) = planned(world, world.driver(**settings))["partitions"]
    assert (partition["reason"], partition["offsets"], partition["objects"]) == ("Records", 20, 2)
    assert partition["bytes"] > 20
    driver.step()
    (done,) = last_flush(driver).slices
    assert {"from": done.start, "to": done.end} == partition["slices"][0]
    assert world.state()["epoch"] == 1


def test_a_plan_shows_the_bucket_of_a_route_and_where_folders_make_more_objects(world: World) -> None:
    pay, clicks = f"{world.topic}-pay", f"{world.topic}-clicks"
    for topic in (world.topic, pay, clicks):
        world.kafka.create_topic(topic)
        world.produce([{"n": n % 3} for n in range(12)], topic=topic)
    other = f"{world.bucket}-b"
    world.client().create_bucket(Bucket=other)
    by_n = {"partitionBy": [{"type": "Topic"}, {"type": "Partition"}, {"type": "Field", "path": ["n"]}]}
    routes = [
        {"topics": [pay], "destination": {"bucket": other}, "flush": {"recordWindow": "1h"}, "layout": by_n},
        {"topics": [clicks], "format": {"type": "Bytes"}, "layout": by_n, "destination": {"prefix": "each"}},
    ]
    driver = world.driver(source={"topics": [world.topic, pay, clicks]}, routes=routes)
    doc = planned(world, driver)

    found = {p["topic"]: p for p in doc["partitions"]}
    assert [p.get("bucket") for p in found.values()] == [None, None, other]
    assert [p.get("splitBy") for p in found.values()] == [None, None, ["folder", "window"]]
    assert [p["objects"] for p in found.values()] == [1, 12, 1]
    told = plan_text(doc)
    assert f"  s3://{other}/raw/{pay}/0/*/" in told
    assert f"  each/{clicks}/0/*/" in told, "the sink's own bucket goes without saying"
    assert "about 1 objects or more, at least one for each folder and window, size not measured yet" in told
    assert "one flush: 36 offsets of 3 partitions in about 14 objects or more" in told

    world.drain(driver)
    assert len(world.sizes("", other)) >= 3
    assert (len(world.objects()), len(world.objects("each/"))) == (1, 12)


def test_a_plan_of_routes_that_no_driver_would_run_says_so(world: World) -> None:
    by_n = {"partitionBy": [{"type": "Topic"}, {"type": "Partition"}, {"type": "Field", "path": ["n"]}]}
    driver = world.driver(routes=[{"topics": [world.topic], "layout": by_n}])
    error = failure_of(lambda: planned(world, driver))
    assert error.reason == "RoutesClash"


def test_a_plan_names_what_keeps_a_partition_from_being_read(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce(list(range(20)))
    world.drain()
    world.produce(list(range(5)))
    for deleted in world.kafka.admin.delete_records([TopicPartition(world.topic, 0, 23)]).values():
        deleted.result()
    doc = planned(world, world.driver())
    assert [p["reason"] for p in doc["problems"]] == ["DataLoss"]
    assert "DataLoss" in plan_text(doc)


@pytest.mark.parametrize("jump", [3600.0, -3600.0], ids=["forward", "back"])
def test_a_clock_that_jumps_by_an_hour_neither_loses_nor_repeats_nor_delays_records(world: World, jump: float) -> None:
    now = [1_800_000_000.0]
    world.kafka.create_topic(world.topic)
    driver = world.driver(run="Continuous", flush={"interval": "1m"}, clock=lambda: now[0])
    for number, seconds in enumerate((0.0, jump, -jump)):
        now[0] += seconds
        world.produce([number])
        driver.step()
        now[0] += 61
        driver.step()
        assert world.rows() == list(range(number + 1)), "within an interval of each jump"
    flushes = sorted(world.objects(".s3sink/default/sink/flushes/"))
    stamps = [json.loads(world.content(key))["stamp"] for key in flushes]
    assert len(stamps) == 3
    assert stamps == sorted(set(stamps)), "times in names and folders never go back"
    assert world.verify(driver).ok
