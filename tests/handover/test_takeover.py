"""`s3sink takeover`: a scripted connector stops, and S3Sink continues. Objects of both hold every record once."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer, TopicPartition

from tests.harness import World
from tools.parts.cli_process import CliProcess
from tools.parts.processes import PartFailed

pytestmark = [pytest.mark.spark]
GROUP = "connect-shop"


class Connector:
    """Reads a topic as a member of a group and writes objects of a few records, as a Connect sink does."""

    def __init__(self, world: World, size: int = 4) -> None:
        self.world, self.size = world, size
        self.consumer = Consumer(
            {
                "bootstrap.servers": world.kafka.bootstrap,
                "group.id": GROUP,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6000,
            }
        )
        self.consumer.subscribe([world.topic])
        self.buffers: dict[int, list[Any]] = {}

    def read(self, count: int) -> None:
        deadline, done = time.monotonic() + 60, 0
        while done < count:
            assert time.monotonic() < deadline, f"{done} of {count} records"
            message = self.consumer.poll(1.0)
            if message is not None and not message.error():
                self.buffers.setdefault(message.partition(), []).append(message)
                done += 1

    def write(self, name: str, *, commit: bool = True) -> list[str]:
        """Full objects of every partition. `name` has fields for topic, partition, first and last offset."""
        keys = []
        for partition, records in self.buffers.items():
            while len(records) >= self.size:
                batch, self.buffers[partition] = records[: self.size], records[self.size :]
                records = self.buffers[partition]
                first, last = batch[0].offset(), batch[-1].offset()
                key = name.format(topic=self.world.topic, partition=partition, first=first, last=last)
                body = b"".join(record.value() + b"\n" for record in batch)
                self.world.client().put_object(Bucket=self.world.bucket, Key=key, Body=body)
                keys.append(key)
                if commit:
                    position = TopicPartition(self.world.topic, partition, last + 1)
                    self.consumer.commit(offsets=[position], asynchronous=False)
        return keys

    def stop(self) -> None:
        self.consumer.close()


@contextmanager
def connector(world: World) -> Iterator[Connector]:
    running = Connector(world)
    try:
        yield running
    finally:
        running.stop()


CONFLUENT = "raw/{topic}/partition={partition}/{topic}+{partition}+{first:010d}.json"
LENSES = "raw/{topic}/{partition}/{last:012d}.json"


def fill(world: World, records: int = 10, partitions: int = 2) -> None:
    world.kafka.create_topic(world.topic, partitions)
    for partition in range(partitions):
        world.produce([{"id": f"{partition}-{number}"} for number in range(records)], partition)


def manifest(world: World, **spec: Any) -> Path:
    document = world.document(**spec)
    keys = {"AWS_ACCESS_KEY_ID": world.s3.access_key, "AWS_SECRET_ACCESS_KEY": world.s3.secret_key}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s3"}, "stringData": keys}
    file = world.folder / "sink.yaml"
    file.write_text(yaml.safe_dump_all([document, secret]))
    return file


def report_of(s3sink: CliProcess, file: Path, *more: str) -> dict[str, Any]:
    """Of an unclean takeover, too, which ends with exit code 1."""
    try:
        said = s3sink("takeover", "-f", str(file), "--group", GROUP, "--json", *more)
    except PartFailed as failure:
        text = str(failure)
        assert "exit code 1:" in text
        said = json.dumps(json.JSONDecoder().raw_decode(text[text.index("{") :])[0])
    doc: dict[str, Any] = json.loads(said)
    return doc


def all_ids(world: World) -> list[str]:
    """Of every object in the bucket, whoever wrote it."""
    return sorted(
        json.loads(line)["id"] for key in world.objects() for line in world.content(key).decode().splitlines()
    )


CONFLUENT_LAYOUT = {
    "partitionBy": [{"type": "Topic"}, {"type": "Partition"}],
    "hiveStyle": True,
    "objectName": "Confluent",
    "extension": ".json",
}


def test_after_a_clean_stop_nothing_is_lost_or_repeated(world: World, s3sink: CliProcess) -> None:
    fill(world)
    with connector(world) as old:
        old.read(20)
        old.write(CONFLUENT)
    file = manifest(world, layout=CONFLUENT_LAYOUT)
    written = yaml.safe_load(s3sink("takeover", "-f", str(file), "--group", GROUP))
    assert written["spec"]["source"]["startingOffsets"] == {
        "position": "Offsets",
        "offsets": [{"topic": world.topic, "partition": p, "offset": 8} for p in (0, 1)],
    }
    world.produce([{"id": "0-10"}], 0)
    before = world.objects()
    world.drain(layout=CONFLUENT_LAYOUT, source=written["spec"]["source"])
    assert all_ids(world) == sorted([*(f"{p}-{n}" for p in (0, 1) for n in range(10)), "0-10"])
    topic = world.topic
    assert set(world.objects()) - set(before) == {
        f"raw/{topic}/partition=0/{topic}+0+0000000008.json",
        f"raw/{topic}/partition=1/{topic}+1+0000000008.json",
    }


def test_after_a_crash_the_objects_that_would_be_repeated_are_listed(world: World, s3sink: CliProcess) -> None:
    fill(world, partitions=1)
    with connector(world) as old:
        old.read(4)
        old.write(CONFLUENT)
        old.read(4)
        uncommitted = old.write(CONFLUENT, commit=False)
    doc = report_of(s3sink, manifest(world, layout=CONFLUENT_LAYOUT))
    assert not doc["clean"]
    (start,) = doc["partitions"]
    assert (start["offset"], start["repeated"], start["missing"]) == (4, {"from": 4, "to": None}, None)
    assert start["objects"] == uncommitted
    assert start["deletable"]
    for key in start["objects"]:
        world.client().delete_object(Bucket=world.bucket, Key=key)
    world.drain(layout=CONFLUENT_LAYOUT, source={"startingOffsets": doc["startingOffsets"]})
    assert all_ids(world) == sorted(f"0-{number}" for number in range(10))


def test_offsets_that_kafka_removed_are_listed_as_missing(world: World, s3sink: CliProcess) -> None:
    fill(world, partitions=1)
    with connector(world) as old:
        old.read(4)
        old.write(CONFLUENT)
    deleted = world.kafka.admin.delete_records([TopicPartition(world.topic, 0, 7)])
    for future in deleted.values():
        future.result()
    (start,) = report_of(s3sink, manifest(world, layout=CONFLUENT_LAYOUT))["partitions"]
    assert (start["offset"], start["missing"], start["repeated"]) == (7, {"from": 4, "to": 7}, None)


def lock(world: World, partition: int, committed: int | None, **more: Any) -> None:
    key = f".indexes/shop/.locks/{world.topic}/{partition}.lock"
    body = json.dumps({"owner": "task-0", "committedOffset": committed, "pendingState": None, **more})
    world.client().put_object(Bucket=world.bucket, Key=key, Body=body.encode())


def test_index_objects_of_lenses_go_before_the_group(world: World, s3sink: CliProcess) -> None:
    """The connector wrote the object and its index, and died before the group's offset was committed."""
    fill(world, partitions=1)
    with connector(world) as old:
        old.read(4)
        old.write(LENSES)
        old.read(4)
        old.write(LENSES, commit=False)
    lock(world, 0, 7)
    doc = report_of(s3sink, manifest(world))
    assert doc["clean"]
    assert [(start["offset"], start["by"]) for start in doc["partitions"]] == [(8, "index object")]
    world.drain(source={"startingOffsets": doc["startingOffsets"]})
    assert all_ids(world) == sorted(f"0-{number}" for number in range(10))


def test_an_upload_under_way_and_folders_that_are_ahead_are_told(world: World, s3sink: CliProcess) -> None:
    fill(world, partitions=1)
    with connector(world) as old:
        old.read(8)
        old.write(LENSES)
    lock(world, 0, 3, pendingState={"pendingOffset": 7, "pendingOperations": []})
    of_folder = f".indexes/shop/.locks/{world.topic}/0/country=DE.lock"
    body = json.dumps({"owner": "task-0", "committedOffset": 7, "pendingState": None})
    world.client().put_object(Bucket=world.bucket, Key=of_folder, Body=body.encode())
    (start,) = report_of(s3sink, manifest(world))["partitions"]
    assert (start["offset"], start["repeated"]) == (4, {"from": 4, "to": 8})
    assert not start["deletable"]
    assert re.search("upload is under way", start["notes"][0])
    assert re.search("consumer group is at 8, beyond the index object at 4", start["notes"][1])


def test_a_group_with_members_or_without_offsets_is_refused(world: World, s3sink: CliProcess) -> None:
    fill(world, partitions=1)
    file = manifest(world)
    with pytest.raises(PartFailed, match=r"exit code 2:\n.*has no offsets of these topics"):
        s3sink("takeover", "-f", str(file), "--group", "connect-nobody")
    with connector(world) as old:
        old.read(4)
        old.write(LENSES)
        with pytest.raises(PartFailed, match=r"(?s)exit code 2:.*has active members.*Stop the other sink first"):
            s3sink("takeover", "-f", str(file), "--group", GROUP)


def test_a_sink_that_has_run_is_refused(world: World, s3sink: CliProcess) -> None:
    fill(world, partitions=1)
    world.drain()
    with pytest.raises(PartFailed, match="has run already"):
        s3sink("takeover", "-f", str(manifest(world)), "--group", GROUP)
