"""A store that fails, loses uploads or has no conditional writes: no record is lost or written twice."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from s3sink_job.base.retry import RetryPolicy
from s3sink_job.driver.driver import Driver
from s3sink_job.driver.flusher import Flusher
from s3sink_job.proof.orphaned_uploads import orphaned_uploads
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.factory import open_bucket
from tests.driver.test_kafka_history import delete_records
from tests.harness import World, failure_of
from tools.parts.proxy import FaultProxy, Status, StripHeaders, request_is
from tools.parts.s3 import Moto

CONDITIONS = {"if-match", "if-none-match"}


@pytest.fixture
def forgetful(world: World) -> Iterator[World]:
    """The same world on a store that ignores conditional headers."""
    with Moto() as moto, FaultProxy("127.0.0.1", moto.port) as proxy:
        proxy.on(lambda request: True, StripHeaders(CONDITIONS))
        moto.create_bucket(world.bucket)
        other = World(world.kafka, moto, world.spark, world.bucket, world.topic, world.folder)
        other.endpoint = proxy.endpoint
        yield other


def committed_but_unpublished(world: World, monkeypatch: pytest.MonkeyPatch, **spec: Any) -> Driver:
    """A driver that crashes between commit and publish."""
    driver = world.driver(**spec)
    with monkeypatch.context() as patch:
        patch.setattr(Flusher, "publish", lambda self, committer, manifest: None)
        driver.step()
    assert world.state()["publishing"] is not None
    return driver


def abort_all(world: World) -> int:
    client = world.client()
    uploads = client.list_multipart_uploads(Bucket=world.bucket).get("Uploads", [])
    for upload in uploads:
        client.abort_multipart_upload(Bucket=world.bucket, Key=upload["Key"], UploadId=upload["UploadId"])
    return len(uploads)


def bucket_of(driver: Driver) -> Bucket:
    return open_bucket(driver.spec.destination, driver.secrets, RetryPolicy(1, 0.01))


def test_passing_errors_of_the_store_are_retried_request_by_request(world: World, proxy: FaultProxy) -> None:
    world.kafka.create_topic(world.topic)
    world.produce(list(range(2500)))
    world.endpoint = proxy.endpoint
    slow = Status(503, "SlowDown")
    rules = [
        proxy.on(request_is("PUT", query="partNumber"), slow, times=2),
        proxy.on(request_is("POST", query="uploadId"), slow, times=2),
        proxy.on(request_is("PUT", path="flushes/"), slow, times=1),
        proxy.on(request_is("PUT", path="state.json"), slow, times=1),
    ]
    driver = world.drain()
    assert [rule.hits for rule in rules] == [2, 2, 1, 1]
    assert world.rows() == list(range(2500))
    assert world.verify(driver).ok
    assert driver.reporter.metrics.registry.get_sample_value("s3sink_request_retries_total") >= 5


def test_a_partition_that_cannot_be_written_does_not_block_the_others(world: World, proxy: FaultProxy) -> None:
    world.kafka.create_topic(world.topic, partitions=2)
    world.produce(["kept"], partition=0)
    world.produce(["delayed"], partition=1)
    world.endpoint = proxy.endpoint
    rule = proxy.on(request_is("POST", path=f"{world.topic}/1/", query="uploads"), Status(503, "SlowDown"))
    driver = world.driver(errors={"retries": {"backoff": "100ms"}})
    driver.step()
    assert (world.rows(0), world.rows(1)) == (["kept"], [])
    driver.step()
    assert driver.problems[world.topic, 1].reason == "StoreUnavailable"
    assert not driver.finished
    proxy.remove(rule)
    world.drain(driver)
    assert world.rows(1) == ["delayed"]
    assert not driver.problems
    assert world.verify(driver).ok


def test_a_store_that_is_down_fails_the_flush_and_commits_nothing(world: World, proxy: FaultProxy) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1])
    world.endpoint = proxy.endpoint
    driver = world.driver(errors={"retries": {"backoff": "100ms"}})
    proxy.on(request_is("POST", query="uploads", path="raw/"), Status(500))
    driver.step()
    driver.step()
    assert driver.problems[world.topic, 0].reason == "StoreUnavailable"
    assert world.state()["flush"] == 0
    proxy.clear()
    world.drain(driver)
    assert world.rows() == [1]


def test_exactly_once_is_refused_on_a_store_without_conditional_writes(forgetful: World) -> None:
    forgetful.kafka.create_topic(forgetful.topic)
    error = failure_of(forgetful.driver().step)
    assert (error.reason, error.retryable) == ("NoConditionalWrites", False)
    assert "If-None-Match" in str(error)
    assert "AtLeastOnce" in str(error)


def test_at_least_once_without_conditions_names_objects_so_that_none_is_overwritten(forgetful: World) -> None:
    forgetful.kafka.create_topic(forgetful.topic)
    forgetful.produce([1, 2])
    driver = forgetful.drain(delivery="AtLeastOnce")
    assert forgetful.rows() == [1, 2]
    (key,) = forgetful.objects()
    assert driver.committer is not None
    assert driver.committer.ledger.writer in key
    conditions = {c["type"]: c for c in driver.reporter.status()["conditions"]}
    assert conditions["ExactlyOnce"]["status"] == "False"
    assert forgetful.verify(driver).ok


def test_a_stale_driver_without_conditions_never_moves_offsets_back(forgetful: World) -> None:
    forgetful.kafka.create_topic(forgetful.topic)
    old = forgetful.driver(delivery="AtLeastOnce", run="Continuous", flush={"records": 1, "interval": "1h"})
    old.step()
    forgetful.produce([1, 2, 3])
    forgetful.drain(delivery="AtLeastOnce")
    assert failure_of(old.step).reason == "Fenced"
    assert forgetful.state()["topics"][forgetful.topic]["partitions"]["0"]["offset"] == 3
    assert sorted(forgetful.rows()) == [1, 2, 3]


def test_an_upload_lost_after_the_commit_is_written_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.kafka.create_topic(world.topic, partitions=2)
    world.produce(list(range(2500)), partition=0)
    world.produce(["x"], partition=1)
    committed_but_unpublished(world, monkeypatch)
    assert abort_all(world) == 4
    driver = world.drain(format={"type": "Json", "compression": {"codec": "Gzip"}})
    assert world.rows(0) == list(range(2500))
    assert world.rows(1) == ["x"]
    assert all(key.endswith(".jsonl") for key in world.objects()), "as it was meant when it was committed"
    report = world.verify(driver)
    assert (report.ok, report.counts.records) == (True, 2501)


def test_a_lost_object_is_repaired_though_its_folder_would_be_too_long_now(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The prefix is longer now than when the key was chosen."""
    world.kafka.create_topic(world.topic)
    fields = {name: name * 200 for name in "abcd"}
    world.produce([{**fields, "n": n} for n in range(10)])
    layout = {"partitionBy": [{"type": "Topic"}, *({"type": "Field", "path": [name]} for name in fields)]}
    committed_but_unpublished(world, monkeypatch, layout=layout, destination={"prefix": "p"})
    assert abort_all(world) == 1
    driver = world.drain(layout=layout, destination={"prefix": "raw/" + "q" * 200})
    (key,) = world.objects("p/")
    assert [json.loads(line)["n"] for line in world.content(key).splitlines()] == list(range(10))
    assert world.verify(driver).ok


def test_a_lost_upload_whose_records_expired_is_a_recorded_gap(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.kafka.create_topic(world.topic)
    world.produce(list(range(10)))
    committed_but_unpublished(world, monkeypatch, flush={"records": 5})
    abort_all(world)
    delete_records(world, before=7)
    stopped = world.drain()
    assert {problem.reason for problem in stopped.problems.values()} == {"DataLoss"}
    assert world.rows() == []
    driver = world.drain(source={"onDataLoss": "Skip"})
    assert world.rows() == [7, 8, 9]
    gaps = driver.reporter.status()["gaps"]
    assert gaps["records"] == 7
    assert {g["reason"] for g in gaps["recent"]} == {"UploadLost"}
    report = world.verify(driver)
    assert report.ok, report.counts.findings
    assert report.to_doc()["gaps"] == 7


def test_what_was_committed_is_published_by_the_next_driver(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1])
    committed_but_unpublished(world, monkeypatch)
    assert world.objects() == []
    driver = world.drain()
    assert world.rows() == [1]
    assert world.state()["publishing"] is None
    assert world.verify(driver).ok


def test_gc_aborts_old_orphans_and_spares_what_a_state_is_about_to_complete(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1])
    driver = committed_but_unpublished(world, monkeypatch)
    client = world.client()
    orphan = client.create_multipart_upload(Bucket=world.bucket, Key=f"raw/{world.topic}/0/123.jsonl")["UploadId"]
    foreign = client.create_multipart_upload(Bucket=world.bucket, Key=f"raw/{world.topic}/notes.txt")["UploadId"]
    elsewhere = client.create_multipart_upload(Bucket=world.bucket, Key="other/app")["UploadId"]
    bucket = bucket_of(driver)
    assert list(orphaned_uploads(bucket, driver.routing, [world.topic], timedelta(days=1))) == []
    time.sleep(1.1)
    found = [u.upload_id for _, u in orphaned_uploads(bucket, driver.routing, [world.topic], timedelta(seconds=0))]
    assert found == [orphan]
    assert not {elsewhere, foreign} & set(found)
    world.drain()
    assert world.rows() == [1]


def test_a_missing_manifest_that_the_state_refers_to_stops_the_sink(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1])
    committed_but_unpublished(world, monkeypatch)
    name = world.state()["publishing"]
    world.client().delete_object(Bucket=world.bucket, Key=f".s3sink/default/sink/flushes/{name}.json")
    error = failure_of(world.driver().step)
    assert (error.reason, error.retryable) == ("StateLost", False)


def test_the_state_is_never_touched_by_check_or_verify(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1])
    driver = world.drain()
    before = world.state()
    world.verify(driver)
    assert world.state() == before
