"""Starting offsets, gaps, transactions, compaction and recreated topics."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as At
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from s3sink_job.base.errors import FinalError
from tests.harness import World, failure_of


def delete_records(world: World, before: int, partition: int = 0, topic: str | None = None) -> None:
    """As retention does, but at once."""
    for future in world.kafka.admin.delete_records([At(topic or world.topic, partition, before)]).values():
        future.result()


def transaction(world: World, values: list[Any], *, commit: bool | None, name: str = "t") -> Producer:
    producer = Producer({"bootstrap.servers": world.kafka.bootstrap, "transactional.id": f"{world.topic}-{name}"})
    producer.init_transactions()
    producer.begin_transaction()
    for value in values:
        producer.produce(world.topic, json.dumps(value).encode(), partition=0)
    producer.flush()
    if commit is True:
        producer.commit_transaction()
    elif commit is False:
        producer.abort_transaction()
    return producer


def test_latest_means_the_first_start_even_if_nothing_was_flushed_before_a_restart(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce(["old"])
    latest = {"startingOffsets": {"position": "Latest"}}
    world.driver(source=latest, run="Continuous").step()
    world.produce(["new"])
    world.drain(source=latest)
    assert world.rows() == ["new"]


def test_a_timestamp_starts_at_the_first_record_that_is_not_older(world: World) -> None:
    world.kafka.create_topic(world.topic, partitions=2)
    for n in range(4):
        world.kafka.produce(world.topic, [(None, b"%d" % n, None, 1_700_000_000_000 + n * 1000)], 0)
    world.kafka.produce(world.topic, [(None, b'"too old"', None, 1_600_000_000_000)], 1)
    moment = datetime.fromtimestamp(1_700_000_002, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    world.drain(source={"startingOffsets": {"position": "Timestamp", "timestamp": moment}})
    assert world.rows() == [2, 3]


def test_named_offsets_start_there_and_other_partitions_at_their_beginning(world: World) -> None:
    world.kafka.create_topic(world.topic, partitions=2)
    world.produce([0, 1, 2], partition=0)
    world.produce([10], partition=1)
    listed = [{"topic": world.topic, "partition": 0, "offset": 2}]
    driver = world.drain(source={"startingOffsets": {"position": "Offsets", "offsets": listed}})
    assert (world.rows(0), world.rows(1)) == ([2], [10])
    assert world.verify(driver).ok


def test_a_starting_offset_outside_the_log_is_refused_and_named(world: World) -> None:
    world.kafka.create_topic(world.topic)
    listed = [{"topic": world.topic, "partition": 0, "offset": 7}]
    driver = world.driver(source={"startingOffsets": {"position": "Offsets", "offsets": listed}})
    error = failure_of(driver.step)
    assert isinstance(error, FinalError)
    assert "spec.source.startingOffsets.offsets[0]" in str(error)
    assert "offsets 0 to 0, got 7" in str(error)


def test_records_that_expired_unwritten_stop_their_partition_only_and_are_named(world: World) -> None:
    world.kafka.create_topic(world.topic, partitions=2)
    world.produce([0], partition=0)
    world.drain()
    world.produce([1, 2, 3], partition=0)
    world.produce(["other"], partition=1)
    delete_records(world, before=3)
    driver = world.drain()
    assert (world.rows(0), world.rows(1)) == ([0], ["other"])
    problem = driver.problems[world.topic, 0]
    assert problem.reason == "DataLoss"
    assert "Kafka deleted offsets 1 to 2" in problem.message
    caught_up = next(c for c in driver.reporter.status()["conditions"] if c["type"] == "CaughtUp")
    assert (caught_up["status"], caught_up["reason"]) == ("False", "DataLoss")


def test_skipping_lost_records_records_the_gap_and_goes_on(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([0])
    world.drain()
    world.produce([1, 2, 3])
    delete_records(world, before=3)
    driver = world.drain(source={"onDataLoss": "Skip"})
    assert world.rows() == [0, 3]
    gaps = driver.reporter.status()["gaps"]
    assert (gaps["count"], gaps["records"]) == (1, 2)
    assert gaps["recent"] == [{"topic": world.topic, "partition": 0, "from": 1, "to": 3, "reason": "Retention"}]
    report = world.verify(driver)
    assert (report.ok, report.to_doc()["gaps"]) == (True, 2)


def test_a_recreated_topic_is_read_from_its_start_under_new_names(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce(["a", "b"])
    world.drain()
    world.kafka.delete_topic(world.topic)
    world.kafka.create_topic(world.topic)
    world.produce(["c"])
    driver = world.drain()
    folder = f"raw/{world.topic}/0"
    assert world.objects() == [f"{folder}/{0:019d}-g2.jsonl", f"{folder}/{0:019d}.jsonl"]
    assert sorted(world.rows()) == ["a", "b", "c"]
    assert world.verify(driver).ok


def test_a_topic_made_again_while_the_driver_runs_is_noticed(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce(["a", "b", "c"])
    driver = world.driver(run="Continuous", flush={"interval": "1s"})
    deadline = time.monotonic() + 60
    while not world.lines():
        assert time.monotonic() < deadline
        driver.step()
    world.produce(["never written"])
    held = world.driver(state="Paused", run="Continuous")
    held.step()
    world.kafka.delete_topic(world.topic)
    world.kafka.create_topic(world.topic)
    world.produce(["x", "y", "z", "w"])
    held.step()
    assert held.reporter.status()["gaps"]["recent"][0]["reason"] == "TopicRemade"
    driver = world.drain()
    assert sorted(world.rows()) == ["a", "b", "c", "w", "x", "y", "z"]
    report = world.verify(driver)
    assert (report.ok, report.to_doc()["gaps"]) == (True, 1)


def test_a_missing_topic_is_refused_at_first_and_blocks_no_other_later(world: World) -> None:
    other = world.topic + "-gone"
    world.kafka.create_topic(world.topic)
    both = {"topics": [world.topic, other]}
    error = failure_of(world.driver(source=both).step)
    assert (error.reason, error.retryable) == ("TopicMissing", False)
    assert other in str(error)
    world.drain()
    world.produce([1])
    driver = world.drain(source=both)
    assert world.rows() == [1]
    assert driver.problems[other, 0].reason == "TopicMissing"


def test_aborted_transactions_are_not_written_and_markers_do_not_count_as_lag(world: World) -> None:
    world.kafka.create_topic(world.topic)
    transaction(world, [1, 2], commit=True)
    transaction(world, ["aborted"] * 3, commit=False)
    driver = world.drain()
    assert world.rows() == [1, 2]
    assert driver.reporter.status()["lag"]["records"] == 0
    assert world.verify(driver).ok


def test_a_slice_of_only_aborted_records_moves_on_without_an_object(world: World) -> None:
    world.kafka.create_topic(world.topic)
    transaction(world, ["aborted"] * 3, commit=False)
    driver = world.drain()
    assert world.objects() == []
    assert world.state()["topics"][world.topic]["partitions"]["0"]["offset"] == 4
    assert world.verify(driver).ok


def test_an_open_transaction_holds_records_back_and_is_named_as_the_cause(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1])
    producer = transaction(world, [2], commit=None)
    world.produce([3])
    driver = world.drain()
    assert world.rows() == [1]
    driver = world.driver(run="Continuous")
    driver.step()
    caught_up = next(c for c in driver.reporter.status()["conditions"] if c["type"] == "CaughtUp")
    assert caught_up["reason"] == "OpenTransaction"
    producer.commit_transaction()
    driver = world.drain()
    assert world.rows() == [1, 2, 3]
    assert world.verify(driver).ok


def test_uncommitted_records_are_written_when_asked_for(world: World) -> None:
    world.kafka.create_topic(world.topic)
    producer = transaction(world, [1], commit=None)
    world.drain(source={"isolation": "ReadUncommitted"})
    producer.abort_transaction()
    assert world.rows() == [1]


@pytest.mark.slow
def test_compacted_topics_have_holes_and_lose_nothing_that_is_left(world: World) -> None:
    config = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "max.compaction.lag.ms": "100",
        "delete.retention.ms": "100",
    }
    world.kafka.create_topic(world.topic, config=config)
    for n in range(300):
        world.kafka.produce(world.topic, [(b"k%d" % (n % 3), b"%d" % n, None, None)], 0)
    deadline = time.monotonic() + 60
    while len(left := world.consumed()) > 50:
        assert time.monotonic() < deadline, f"compaction left {len(left)} records"
        time.sleep(0.5)
        world.kafka.produce(world.topic, [(b"tick", b"0", None, None)], 0)
    driver = world.drain()
    written = set(world.rows())
    assert {json.loads(v) for v in world.consumed().values() if v} <= written
    assert world.verify(driver).ok


def test_compaction_after_writing_is_no_duplicate(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.kafka.produce(world.topic, [(b"k", b"%d" % n, None, None) for n in range(5)], 0)
    driver = world.drain()
    policy = ConfigEntry("cleanup.policy", "compact,delete", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, world.topic, incremental_configs=[policy])
    for future in world.kafka.admin.incremental_alter_configs([resource]).values():
        future.result()
    delete_records(world, before=2)
    report = world.verify(driver)
    assert report.ok, report.counts.findings
    assert report.unchecked == 1


def test_a_topic_that_was_missing_before_it_was_recreated_still_shows_its_gap(world: World) -> None:
    other = world.topic + "-other"
    world.kafka.create_topic(world.topic)
    world.kafka.create_topic(other)
    world.produce([1, 2])
    driver = world.driver(state="Paused", run="Continuous", source={"topics": [world.topic, other]})
    driver.step()
    world.kafka.delete_topic(world.topic)
    driver.step()
    assert driver.problems[world.topic, 0].reason == "TopicMissing"
    world.kafka.create_topic(world.topic)
    driver.step()
    assert driver.reporter.status()["gaps"]["records"] == 2


def test_a_topic_recreated_with_fewer_partitions_while_draining_ends_the_run(world: World) -> None:
    world.kafka.create_topic(world.topic, partitions=2)
    world.produce([1, 2, 3], partition=1)
    driver = world.driver(flush={"records": 1}, errors={"records": "Skip"})
    committer = driver.open()
    observation = driver.observer.observe(committer)
    driver.planner.plan(committer.state, observation)  # the ends as they were at the start
    world.kafka.delete_topic(world.topic)
    world.kafka.create_topic(world.topic, partitions=1)
    driver.step()
    assert driver.finished


def test_a_partition_blocked_by_data_loss_still_counts_as_lag(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([0])
    world.drain()
    world.produce([1, 2, 3])
    delete_records(world, before=3)
    driver = world.drain()
    assert driver.reporter.status()["lag"]["records"] == 3
