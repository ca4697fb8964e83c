"""Topics by pattern, deleted topics, consumer group offsets, hanging transactions, many partitions."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer
from confluent_kafka import TopicPartition as At

from s3sink_job.base.errors import FinalError
from s3sink_job.cli.opened_sink import LOCAL_CLUSTER
from s3sink_job.commit.ledger import Ledger
from s3sink_job.driver.driver import Driver
from s3sink_job.flush.state import Owner
from s3sink_job.flush.topic_changes import GIVEN_UP_AFTER
from s3sink_job.kafka.admin import Admin
from s3sink_job.kafka.topics import LIST_EVERY
from s3sink_job.proof.orphaned_uploads import known_topics, orphaned_uploads
from s3sink_job.proof.preflight import preflight_checks
from tests.harness import PATIENCE, World, failure_of


class Clock:
    """The real time plus what the test adds."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


def by_pattern(world: World, **source: Any) -> dict[str, Any]:
    """The topics whose names begin with the name of the world's topic."""
    return {"topics": [], "topicPattern": re.escape(world.topic).replace("\\-", "-") + "(-.*)?", **source}


def until(driver: Driver, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"{driver.problems} {driver.reporter.status()}"
        driver.step()
        time.sleep(0.05)


def condition(driver: Driver, kind: str) -> dict[str, Any]:
    return next(c for c in driver.reporter.status()["conditions"] if c["type"] == kind)


def group_offsets(world: World, group: str) -> dict[tuple[str, int], int]:
    """What an independent client reads from the group."""
    answer = world.kafka.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    return {(at.topic, at.partition): at.offset for at in answer[group].result().topic_partitions}


@contextmanager
def member(world: World, group: str) -> Iterator[None]:
    consumer = Consumer({"bootstrap.servers": world.kafka.bootstrap, "group.id": group, "client.id": "billing"})
    consumer.subscribe([world.topic])
    deadline = time.monotonic() + PATIENCE
    while not consumer.assignment():
        assert time.monotonic() < deadline
        consumer.poll(0.1)
    try:
        yield
    finally:
        consumer.close()


def test_a_pattern_takes_whole_names_and_picks_up_new_topics_while_running(world: World) -> None:
    clock = Clock()
    world.kafka.create_topic(world.topic)
    world.kafka.create_topic(f"not-{world.topic}")
    world.produce(["first"])
    world.produce(["other"], topic=f"not-{world.topic}")
    latest = {"startingOffsets": {"position": "Latest"}}
    driver = world.driver(
        run="Continuous", flush={"interval": "200ms"}, source=by_pattern(world, **latest), clock=clock
    )
    driver.step()
    late = f"{world.topic}-late"
    world.kafka.create_topic(late, partitions=2)
    world.produce([1, 2], partition=0, topic=late)
    world.produce([3], partition=1, topic=late)
    clock.ahead += LIST_EVERY
    until(driver, lambda: len(world.rows(topic=late)) == 3)
    assert (world.rows(0, late), world.rows(1, late)) == ([1, 2], [3])
    assert world.rows() == []
    assert world.objects(f"raw/not-{world.topic}/") == []
    assert set(world.state()["topics"]) == {world.topic, late}
    assert world.verify(driver).ok


def test_kafkas_own_topics_never_match(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1])
    with member(world, f"{world.topic}-makes-the-offsets-topic"):
        pass
    driver = world.driver(source=by_pattern(world, topicPattern=f"__consumer_offsets|{re.escape(world.topic)}"))
    world.drain(driver)
    assert set(world.state()["topics"]) == {world.topic}


def test_a_vanished_topic_is_reported_and_does_not_hold_up_others(world: World) -> None:
    clock = Clock()
    gone = f"{world.topic}-gone"
    world.kafka.create_topic(world.topic)
    world.kafka.create_topic(gone)
    world.produce([1], topic=gone)
    driver = world.driver(run="Continuous", flush={"interval": "200ms"}, source=by_pattern(world), clock=clock)
    until(driver, lambda: world.rows(topic=gone) == [1])
    world.kafka.delete_topic(gone)
    world.produce([2])
    clock.ahead += LIST_EVERY
    until(driver, lambda: world.rows() == [2])
    until(driver, lambda: driver.reporter.status()["phase"] == "Degraded")
    assert driver.problems[gone, 0].reason == "TopicMissing"
    caught_up = condition(driver, "CaughtUp")
    assert (caught_up["reason"], gone in caught_up["message"]) == ("TopicMissing", True)
    world.kafka.create_topic(gone)
    world.produce([3], topic=gone)
    clock.ahead += LIST_EVERY
    until(driver, lambda: sorted(world.rows(topic=gone)) == [1, 3])
    assert any("-g2" in key for key in world.objects(f"raw/{gone}/"))
    assert driver.problems == {}


def test_with_skip_a_deleted_topic_of_a_pattern_is_given_up_after_a_while(world: World) -> None:
    clock = Clock()
    gone = f"{world.topic}-gone"
    world.kafka.create_topic(world.topic)
    world.kafka.create_topic(gone)
    world.produce([1, 2], topic=gone)
    driver = world.driver(run="Continuous", source=by_pattern(world, onDataLoss="Skip"), clock=clock)
    driver.step()
    world.kafka.delete_topic(gone)
    clock.ahead += LIST_EVERY
    driver.step()
    assert driver.problems[gone, 0].reason == "TopicMissing"
    assert ("s3sink_lag_records", gone) in lags(driver)
    clock.ahead += GIVEN_UP_AFTER
    driver.step()
    assert driver.problems == {}
    gaps = driver.reporter.status()["gaps"]
    assert gaps["recent"] == [{"topic": gone, "partition": 0, "from": 0, "to": 2, "reason": "TopicDeleted"}]
    assert ("s3sink_lag_records", gone) not in lags(driver)
    clock.ahead += LIST_EVERY
    driver.step()
    assert driver.reporter.status()["gaps"]["count"] == 1
    assert world.drain(source=by_pattern(world, onDataLoss="Skip")).problems == {}
    assert world.verify(driver).ok


def lags(driver: Driver) -> set[tuple[str, str]]:
    return {
        (sample.name, sample.labels["topic"])
        for family in driver.reporter.metrics.registry.collect()
        for sample in family.samples
        if sample.name == "s3sink_lag_records"
    }


def test_a_topic_that_no_longer_matches_is_no_longer_read_and_not_missed(world: World) -> None:
    other = f"{world.topic}-other"
    world.kafka.create_topic(world.topic)
    world.kafka.create_topic(other)
    world.produce([1], topic=other)
    world.drain(source=by_pattern(world))
    world.kafka.delete_topic(other)
    driver = world.drain(source=by_pattern(world, topicPattern=re.escape(world.topic)))
    assert driver.problems == {}
    assert world.state()["topics"][other]["partitions"]["0"]["offset"] == 1


def test_a_topic_taken_out_of_the_list_is_no_longer_read_and_not_missed(world: World) -> None:
    other = f"{world.topic}-other"
    world.kafka.create_topic(world.topic)
    world.kafka.create_topic(other)
    world.drain(source={"topics": [world.topic, other]})
    world.kafka.delete_topic(other)
    assert world.drain().problems == {}
    assert other in world.state()["topics"]


def test_a_run_once_fails_and_names_the_pattern_if_no_topic_matches(world: World) -> None:
    error = failure_of(world.driver(source=by_pattern(world)).step)
    assert (isinstance(error, FinalError), error.reason) == (True, "NoTopicMatches")
    assert world.topic in str(error)


def test_a_pattern_that_is_not_valid_in_java_is_reported(world: World) -> None:
    error = failure_of(world.driver(source=by_pattern(world, topicPattern="\\pX{")).step)
    assert (isinstance(error, FinalError), error.reason) == (True, "TopicPattern")
    assert "topicPattern" in str(error)


def test_continuous_waits_for_a_first_topic_says_so_and_misses_none_of_its_records(world: World) -> None:
    clock = Clock()
    latest = by_pattern(world, startingOffsets={"position": "Latest"})
    waiting = world.driver(run="Continuous", source=latest, clock=clock)
    assert waiting.step() > 0
    assert waiting.reporter.status()["phase"] == "Running"
    caught_up = condition(waiting, "CaughtUp")
    assert (caught_up["status"], caught_up["reason"]) == ("False", "NoTopicMatches")
    world.kafka.create_topic(world.topic)
    world.produce([1, 2])
    world.drain(source=latest)
    assert world.rows() == [1, 2]


def test_gc_finds_uploads_of_topics_that_only_the_state_names(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1])
    driver = world.drain(source=by_pattern(world))
    client = world.client()
    upload = client.create_multipart_upload(Bucket=world.bucket, Key=f"raw/{world.topic}/0/7.jsonl")["UploadId"]
    assert driver.committer is not None
    bucket = driver.committer.ledger.bucket
    topics = known_topics(bucket, ".s3sink/default/sink", driver.spec.source.topics)
    found = orphaned_uploads(bucket, driver.routing, topics, timedelta(seconds=-5))
    assert [u.upload_id for _, u in found] == [upload]


def test_check_names_the_topics_that_match_and_a_group_that_is_taken(world: World) -> None:
    world.kafka.create_topic(world.topic)
    group = f"{world.topic}-group"
    driver = world.driver(source=by_pattern(world, publishOffsetsTo=group))

    def findings() -> list[tuple[str, bool, str]]:
        owner = Owner(LOCAL_CLUSTER, "default", "sink")
        found = preflight_checks(
            driver.sink,
            driver.bucket,
            lambda bucket: Ledger(bucket, ".s3sink/default/sink", owner, conditional=True),
            driver.kafka.admin,
            driver.secrets,
        )
        return [(f.what, f.ok, f.text) for f in found]

    assert all(ok for _, ok, _ in findings())
    assert ("topic", True, f"{world.topic} has 1 partitions and 0 offsets") in findings()
    with member(world, group):
        what, ok, text = findings()[-1]
    assert (what, ok) == ("kafka", False)
    assert "GroupInUse" in text
    assert "billing" in text


def test_the_group_shows_the_committed_offsets(world: World) -> None:
    world.kafka.create_topic(world.topic, partitions=2)
    group = f"{world.topic}-group"
    world.produce([1, 2, 3], partition=0)
    driver = world.drain(source={"publishOffsetsTo": group})
    assert group_offsets(world, group) == {(world.topic, 0): 3, (world.topic, 1): 0}
    assert condition(driver, "OffsetsPublished")["status"] == "True"
    world.produce([4], partition=1)
    world.drain(source={"publishOffsetsTo": group})
    assert group_offsets(world, group) == {(world.topic, 0): 3, (world.topic, 1): 1}


def test_a_group_that_lost_the_offsets_has_them_again_after_a_restart(world: World) -> None:
    world.kafka.create_topic(world.topic)
    group = f"{world.topic}-group"
    world.produce([1, 2])
    world.drain(source={"publishOffsetsTo": group})
    world.kafka.admin.delete_consumer_groups([group])[group].result()
    world.drain(source={"publishOffsetsTo": group})
    assert group_offsets(world, group) == {(world.topic, 0): 2}


def test_a_group_with_a_member_is_refused_and_named_while_records_are_written(world: World) -> None:
    clock = Clock()
    world.kafka.create_topic(world.topic)
    group = f"{world.topic}-group"
    driver = world.driver(
        run="Continuous", flush={"interval": "200ms"}, source={"publishOffsetsTo": group}, clock=clock
    )
    with member(world, group):
        world.produce([1, 2])
        until(driver, lambda: world.rows() == [1, 2])
        refused = condition(driver, "OffsetsPublished")
        assert (refused["status"], refused["reason"]) == ("False", "GroupInUse")
        assert group in refused["message"]
        assert "billing at 127.0.0.1" in refused["message"]
        assert driver.reporter.status()["phase"] == "Running"
        assert group_offsets(world, group) == {}
    clock.ahead += 60
    until(driver, lambda: group_offsets(world, group) == {(world.topic, 0): 2})
    assert condition(driver, "OffsetsPublished")["status"] == "True"


def test_a_group_that_holds_offsets_of_somebody_else_is_left_alone(world: World) -> None:
    world.kafka.create_topic(world.topic)
    group = f"{world.topic}-group"
    world.produce([1, 2])
    theirs = ConsumerGroupTopicPartitions(group, [At(world.topic, 0, 1)])
    world.kafka.admin.alter_consumer_group_offsets([theirs])[group].result()
    driver = world.drain(source={"publishOffsetsTo": group})
    assert world.rows() == [1, 2]
    assert condition(driver, "OffsetsPublished")["reason"] == "GroupInUse"
    assert group_offsets(world, group) == {(world.topic, 0): 1}


def test_a_transaction_that_never_ends_is_named_with_its_transactional_id(world: World) -> None:
    clock = Clock()
    world.kafka.create_topic(world.topic)
    world.produce([1])
    producer = Producer({"bootstrap.servers": world.kafka.bootstrap, "transactional.id": f"{world.topic}-app"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(world.topic, json.dumps(2).encode(), partition=0)
    producer.flush()
    world.produce([3])
    world.drain()
    driver = world.driver(run="Continuous", clock=clock)
    driver.step()
    assert "still open" in condition(driver, "CaughtUp")["message"]
    clock.ahead += 15
    driver.step()
    named = condition(driver, "CaughtUp")
    assert named["reason"] == "OpenTransaction"
    for words in (f"{world.topic}-0", f"transactional id {world.topic}-app", "producer id", "since 20", "offset 1 "):
        assert words in named["message"]
    assert f"abort --topic {world.topic} --partition 0 --start-offset 1`" in named["message"]
    producer.abort_transaction()
    until(driver, lambda: condition(driver, "CaughtUp")["reason"] == "Waiting")


def test_records_written_between_two_offset_requests_are_no_open_transaction(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.kafka.create_topic(world.topic)
    listed = Admin._list

    def slowly(admin: Admin, *question: Any, committed: bool, **options: Any) -> Any:
        found = listed(admin, *question, committed=committed, **options)
        if committed and not written:
            written.append(True)
            world.produce([1])
        return found

    written: list[bool] = []
    monkeypatch.setattr(Admin, "_list", slowly)
    driver = world.driver(run="Continuous")
    driver.step()
    assert written
    assert condition(driver, "CaughtUp")["reason"] == "Waiting"


@pytest.mark.slow
def test_a_thousand_partitions_most_of_them_empty(world: World) -> None:
    world.kafka.create_topic(world.topic, partitions=1000)
    full = (0, 499, 999)
    for partition in full:
        world.produce([partition, "a"], partition=partition)
    driver = world.driver(run="Continuous", flush={"interval": "500ms"})
    until(driver, lambda: len(world.objects()) == 3)
    assert driver.committer is not None
    began = time.monotonic()
    driver.observer.observe(driver.committer)
    assert time.monotonic() - began < 5, "measured 0.4 s on a busy machine; partition by partition it was 6 s"
    for partition in full:
        world.produce(["b"], partition=partition)
    until(driver, lambda: len(world.objects()) == 6)
    for partition in full:
        assert world.rows(partition) == [partition, "a", "b"]
    driver.step()
    status = driver.reporter.status()
    assert (status["lag"]["records"], status["flush"]["totalRecords"], len(status["offsets"])) == (0, 9, 50)
    assert driver.reporter.metrics.flushes.labels("Interval")._value.get() == 6
    assert len(world.state()["topics"][world.topic]["partitions"]) == 1000
    assert world.verify(driver).ok
