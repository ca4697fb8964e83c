"""Objects of one record each: plain PUTs, the same again after a crash, never over a foreign object."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from s3sink_job.base.errors import TransientError
from s3sink_job.commit.committer import Committer
from s3sink_job.flush.manifest import Slice
from s3sink_job.task import record_objects
from s3sink_job.task.task_settings import SliceWork
from tests.harness import World, failure_of

BYTES = {"type": "Bytes"}
VALUES = [b"\x00\xff\x89PNG\r\n", b"", b'{"a": 1}', "grüß\n\n".encode(), random.Random(1).randbytes(100_000)]
SOURCE = {"value": {"format": "Bytes"}}


@pytest.fixture
def topic(world: World) -> World:
    world.kafka.create_topic(world.topic)
    return world


def bodies(world: World) -> dict[str, bytes]:
    return {key.rsplit("/", 1)[1]: world.content(key) for key in world.sizes()}


def wanted(values: list[bytes], extension: str = ".bin") -> dict[str, bytes]:
    return {f"{offset:019d}{extension}": value for offset, value in enumerate(values)}


@pytest.mark.parametrize(("codec", "extension"), [("None", ".bin"), ("Gzip", ".bin.gz"), ("Zstd", ".bin.zst")])
def test_each_object_is_the_value_of_its_record(topic: World, codec: str, extension: str) -> None:
    topic.produce(VALUES)
    driver = topic.drain(source=SOURCE, format={**BYTES, "compression": {"codec": codec}})
    assert bodies(topic) == wanted(VALUES, extension)
    described = [topic.head(key) for key in topic.objects()]
    assert {d["ContentType"] for d in described} == {"application/octet-stream"}
    assert {d.get("ContentEncoding", "") for d in described} == {""}, "the name tells"
    report = topic.verify(driver)
    assert (report.ok, report.objects, report.counts.records) == (True, 5, 5)


def test_an_extension_of_ones_own_leaves_the_codec_to_the_content_encoding(topic: World) -> None:
    topic.produce(VALUES)
    topic.drain(source=SOURCE, format={**BYTES, "compression": {"codec": "Gzip"}}, layout={"extension": ".png"})
    (first, *_) = topic.objects()
    assert first.endswith(".png")
    assert topic.head(first)["ContentEncoding"] == "gzip"
    assert gzip.decompress(topic.content(first)) == VALUES[0]


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_crash_between_the_puts_and_the_commit_leaves_nothing_twice(
    world: World, monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    """The next driver writes the same objects again: they name the flush that was committed."""
    world.kafka.create_topic(world.topic, partitions=partitions)
    for partition in range(partitions):
        world.produce([{"n": n, "p": partition} for n in range(20)], partition=partition)

    def dies(self: Committer, *_: Any) -> None:
        raise TransientError("killed here")

    driver = world.driver(format=BYTES)
    with monkeypatch.context() as patch:
        patch.setattr(Committer, "commit", dies)
        assert "killed here" in str(failure_of(driver.step))
    before = world.sizes()
    assert len(before) == 20 * partitions
    assert world.state()["flush"] == 0
    world.produce([{"n": 20, "p": 0}])

    driver = world.drain(format=BYTES)
    assert len(world.sizes()) == 20 * partitions + 1
    seen = sorted(v for v in world.consumed().values() if v is not None)
    assert sorted(world.content(key) for key in world.sizes()) == seen
    report = world.verify(driver)
    assert report.ok, report.to_doc()
    assert report.counts.records == 20 * partitions + 1


def test_a_foreign_object_is_reported_and_not_overwritten(topic: World) -> None:
    topic.produce([b"0", b"1", b"2"])
    key = f"raw/{topic.topic}/0/{1:019d}.bin"
    topic.client().put_object(Bucket=topic.bucket, Key=key, Body=b"mine", Metadata={"owner": "another"})
    driver = topic.driver(format=BYTES)
    driver.step()
    driver.step()
    problem = driver.problems[topic.topic, 0]
    assert problem.reason == "KeyTaken"
    assert key in problem.message
    assert topic.content(key) == b"mine"
    assert topic.state()["flush"] == 0
    topic.client().delete_object(Bucket=topic.bucket, Key=key)
    driver = topic.drain(format=BYTES)
    assert bodies(topic) == wanted([b"0", b"1", b"2"])
    assert topic.verify(driver).ok


def test_more_records_than_a_flush_may_have_objects_take_several(topic: World) -> None:
    topic.produce([b"%d" % n for n in range(700)])
    driver = topic.driver(format=BYTES, flush={"records": 1_000_000})
    assert driver.planner.limits.objects == 5_000
    driver.planner.limits = replace(driver.planner.limits, objects=300)
    topic.drain(driver)
    assert len(topic.sizes()) == 700
    assert topic.state()["flush"] == 3
    report = topic.verify(driver)
    assert (report.ok, report.counts.records) == (True, 700)


def test_folders_by_field_hold_the_same_bytes(topic: World) -> None:
    values = [{"kind": ["a", "b/c", None][n % 3], "n": n} for n in range(9)]
    topic.produce(values)
    layout = {"partitionBy": [{"type": "Topic"}, {"type": "Partition"}, {"type": "Field", "path": ["kind"]}]}
    driver = topic.drain(format=BYTES, layout=layout)
    folders = {None: "__HIVE_DEFAULT_PARTITION__", "a": "a", "b/c": "b%2Fc"}
    found = {key: json.loads(topic.content(key)) for key in topic.sizes()}
    assert found == {f"raw/{topic.topic}/0/{folders[v['kind']]}/{n:019d}.bin": v for n, v in enumerate(values)}  # type: ignore[index]
    assert topic.verify(driver).ok


def test_a_put_that_stays_refused_commits_nothing_and_loses_nothing(topic: World) -> None:
    """The next flush uses the keys of a flush that failed half-way."""
    assert record_objects.PARALLEL > 1
    topic.produce([b"%d" % n for n in range(50)])
    client, middle = topic.client(), f"raw/{topic.topic}/0/{25:019d}.bin"
    client.put_object(Bucket=topic.bucket, Key=middle, Body=b"in the way")
    driver = topic.driver(format=BYTES)
    driver.step()
    assert topic.state()["flush"] == 0
    client.delete_object(Bucket=topic.bucket, Key=middle)
    driver = topic.drain(format=BYTES)
    assert bodies(topic) == wanted([b"%d" % n for n in range(50)])
    assert topic.verify(driver).ok


def test_a_record_never_overwrites_the_object_of_another_record(topic: World) -> None:
    """With the folders in another order, offset 5 of partition 1 and value 0 gets the key of partition 0, value 1."""
    world = topic
    world.kafka.add_partitions(world.topic, 2)
    values = {0: [{"f": 1, "p": 0}], 1: [{"f": 0, "p": 1}]}
    world.produce(values[0], partition=0)
    partition, field = {"type": "Partition"}, {"type": "Field", "path": ["f"]}
    world.drain(format=BYTES, layout={"partitionBy": [{"type": "Topic"}, partition, field]})
    (key,) = world.sizes()
    world.produce(values[1], partition=1)
    driver = world.driver(format=BYTES, layout={"partitionBy": [{"type": "Topic"}, field, partition]})
    driver.step()
    driver.step()
    problem = driver.problems[world.topic, 1]
    assert (problem.reason, key in problem.message) == ("KeyTaken", True)
    assert json.loads(world.content(key)) == values[0][0]


def test_a_stale_driver_does_not_overwrite_committed_objects(topic: World) -> None:
    """It may read a recreated topic and mistake it for the old one."""
    topic.produce([b"old"])
    driver = topic.drain(format=BYTES)
    (key,) = topic.sizes()
    part = Slice(topic.topic, 1, 0, 0, 1, "Interval")
    task = driver.flush_job.task((part,), "stale", driver.routing.encodings([topic.topic]), {}, conditional=True)
    stale = record_objects.RecordObjects(SliceWork(part, task.settings, task.default), driver.bucket())
    rows = pa.RecordBatch.from_pydict({"value": pa.array([b"new"], pa.binary())})
    assert failure_of(lambda: stale.write(rows, pa.array([0]), None)).reason == "KeyTaken"
    assert topic.content(key) == b"old"


def test_verify_ignores_objects_of_a_flush_that_is_not_committed_yet(
    topic: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`verify` while a driver writes, or after a crash, only checks what is committed."""
    topic.produce([b"0", b"1"])
    topic.drain(format=BYTES)
    topic.produce([b"2", b"3", b"4"])

    def dies(self: Committer, *_: Any) -> None:
        raise TransientError("killed here")

    driver = topic.driver(format=BYTES)
    with monkeypatch.context() as patch:
        patch.setattr(Committer, "commit", dies)
        failure_of(driver.step)
    report = topic.verify(driver)
    assert (report.ok, report.pending, report.unlisted, report.counts.records) == (True, 3, 0, 2), report.to_doc()
    driver = topic.drain(format=BYTES)
    report = topic.verify(driver)
    assert (report.ok, report.pending, report.counts.records) == (True, 0, 5)
