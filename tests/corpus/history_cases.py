"""Sinks with a past: recreated topics, gaps, resets, lost uploads, states of older releases."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition

from s3sink_job.base.errors import S3SinkError
from tests.corpus.format_cases import KAFKA
from tests.corpus.layout_cases import BY_CITY, GROUPS, by, field
from tests.corpus.recording import STATE_FOLDER, Play, Stage
from tests.corpus.records import START, json_record, orders, values
from tools.parts.proxy import FaultProxy, Status, request_is

PARQUET = {"type": "Parquet"}
SKIP_LOST = {"onDataLoss": "Skip"}
SINCE_0_1 = ("stamp", "resets", "resource", "lost", "truncations", "leader_epochs", "cuts")
"""What 0.1.0 does not have in a state."""
MANIFEST_SINCE_0_1 = ("routed", "stamp", "logs", "mends")


def delete_records(stage: Stage, before: int) -> None:
    """What retention does, at once."""
    asked = stage.world.kafka.admin.delete_records([TopicPartition(stage.topic(), 0, before)])
    for future in asked.values():
        future.result()


def recreate(stage: Stage) -> None:
    stage.world.kafka.delete_topic(stage.topic())
    stage.make()


def commit_only(stage: Stage, **spec: Any) -> None:
    """A driver commits, and the store lets it publish nothing."""
    world = stage.world
    with FaultProxy("127.0.0.1", world.s3.port) as proxy:
        # Data only: the driver tries the store out beside its state.
        proxy.on(request_is("POST", path="/raw/", query="uploadId"), Status(503, "SlowDown"))
        world.endpoint = proxy.endpoint
        driver = stage.driver(**spec)
        with pytest.raises(S3SinkError):
            driver.step()
        driver.close()
        world.endpoint = ""
    stage.states.append(stage.stored_state())
    assert json.loads(stage.states[-1])["publishing"]
    stage.clock.pass_time(3600)


def commit_and_lose(stage: Stage, **spec: Any) -> None:
    """The same, and somebody aborts all uploads."""
    commit_only(stage, **spec)
    client, bucket = stage.world.client(), stage.world.bucket
    for upload in client.list_multipart_uploads(Bucket=bucket)["Uploads"]:
        client.abort_multipart_upload(Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])


def recreated_topic(stage: Stage) -> None:
    stage.make()
    stage.produce(orders(10))
    stage.drain(format={**PARQUET, "columns": {"meta": "Airbyte"}})
    recreate(stage)
    stage.produce(orders(7, 100))
    stage.drain(format={**PARQUET, "columns": {"meta": "Airbyte"}})


def recreated_with_unwritten(stage: Stage) -> None:
    """What the old topic had unwritten becomes a gap."""
    stage.make()
    stage.produce(orders(10))
    driver = stage.driver(run="Continuous", source=SKIP_LOST, flush={"records": 6})
    for _ in range(2):
        driver.step()
    recreate(stage)
    stage.produce(orders(8, 100))
    for _ in range(4):
        driver.step()
    stage.note(driver)


def gap(stage: Stage) -> None:
    stage.make()
    stage.produce(orders(5))
    stage.drain()
    stage.produce(orders(15, 5))
    delete_records(stage, before=12)
    stage.drain()
    stage.drain(source=SKIP_LOST)


def deleted_topic(stage: Stage) -> None:
    """One of a pattern. It is given up after a minute, and what it had unwritten is a gap."""
    stage.make("kept", "deleted")
    for part in ("kept", "deleted"):
        stage.produce(orders(10), part)
    source = {"topics": [], "topicPattern": f"{stage.topic()}-.*", **SKIP_LOST}
    driver = stage.driver(run="Continuous", source=source, flush={"records": 6})
    for _ in range(2):
        driver.step()
    stage.world.kafka.delete_topic(stage.topic("deleted"))
    for _ in range(3):
        stage.clock.pass_time(40)
        driver.step()
    stage.note(driver)


def added_partitions(stage: Stage) -> None:
    (topic,) = stage.make()
    stage.produce(orders(5))
    stage.drain(source={"startingOffsets": {"position": "Latest"}})
    stage.world.kafka.add_partitions(topic, 3)
    for partition in range(3):
        stage.produce(orders(4, 10), "", partition)
    stage.drain()


def kubernetes_resource(stage: Stage) -> None:
    """The state tells which generation of the resource a driver ran for."""
    stage.make()
    stage.produce(orders(5))
    metadata = {"uid": "u-1", "generation": 7, "creationTimestamp": "2026-01-01T00:00:00Z"}
    stage.drain(metadata=metadata)
    stage.drain()


def transactions(stage: Stage) -> None:
    """Offsets of aborted records and of markers are in no object."""
    stage.make()
    settings = {"bootstrap.servers": stage.world.kafka.bootstrap, "transactional.id": stage.topic(), "log_level": 0}
    for number, commit in enumerate((True, False, True)):
        producer = Producer(settings)
        producer.init_transactions()
        producer.begin_transaction()
        for n in range(6):
            producer.produce(stage.topic(), b'{"t": %d, "n": %d}' % (number, n), partition=0, timestamp=START + n)
        producer.flush()  # else those that are aborted are never sent
        if commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    Producer(settings).init_transactions()  # waits until the last one's marker is there
    stage.drain(format=KAFKA)
    stage.drain(format=KAFKA, source={"isolation": "ReadUncommitted"}, reset={"nonce": "all"})


def starting_offsets(stage: Stage) -> None:
    stage.make(partitions=2)
    for partition in range(2):
        stage.produce(orders(20 + partition), "", partition)
    stage.drain(
        source={"startingOffsets": {"position": "Timestamp", "timestamp": "2026-01-01T00:12:00Z"}}, format=PARQUET
    )


def reset(stage: Stage) -> None:
    """To another prefix, then to offsets, with a nonce that counts once."""
    stage.make()
    stage.produce(orders(10))
    stage.drain(format=PARQUET)
    stage.produce(orders(5, 10))
    for _ in range(2):
        stage.drain(format=PARQUET, destination={"prefix": "cooked"}, reset={"nonce": "first"})
    offsets = [{"topic": stage.topic(), "partition": 0, "offset": 12}]
    stage.drain(reset={"nonce": "second", "to": {"position": "Offsets", "offsets": offsets}})


def lost_objects(stage: Stage) -> None:
    stage.make()
    stage.produce(orders(50))
    spec: dict[str, Any] = {"format": {**PARQUET, **KAFKA}, "flush": {"records": 20}}
    commit_and_lose(stage, **spec)
    stage.produce(orders(5, 50))
    # Each as it was meant when it was committed, whatever the spec says by now.
    stage.drain(format={"type": "Json"}, flush={"records": 1000})


def lost_objects_in_folders(stage: Stage) -> None:
    """Of more groups than are open at a time."""
    stage.make()
    stage.produce(GROUPS[:400])
    spec: dict[str, Any] = {"layout": BY_CITY, "flush": {"records": 20}, "format": {"type": "Avro"}}
    commit_and_lose(stage, **spec)
    stage.drain(**spec)


def lost_objects_with_bad_records(stage: Stage) -> None:
    """Skipped records and tombstones stay out of what is written again."""
    stage.make()
    stage.produce(values({"v": 1}, b"bad", {"v": 2}, None, {"v": 1.5}, b"{", {"v": "x"}))
    spec: dict[str, Any] = {
        "errors": {"records": "Skip"},
        "nullValues": "Skip",
        "format": {"type": "Csv"},
        "layout": by(field("v")),
    }
    commit_and_lose(stage, **spec)
    stage.drain(**spec)


def lost_records(stage: Stage) -> None:
    """Gone from Kafka, too: first that waits for a decision, then it is a gap."""
    stage.make()
    stage.produce(orders(10))
    commit_and_lose(stage, flush={"records": 5})
    delete_records(stage, before=7)
    stage.drain(flush={"records": 5})
    stage.drain(flush={"records": 5}, source=SKIP_LOST)


def interrupted(stage: Stage) -> None:
    """The next driver publishes what was committed."""
    stage.make()
    stage.produce(orders(10))
    commit_only(stage, format=PARQUET)
    stage.drain(format=PARQUET)


def at_least_once(stage: Stage) -> None:
    """A store that refuses the right ETag keeps no conditions: names hold the flush."""
    stage.make()
    stage.produce(orders(10))
    with FaultProxy("127.0.0.1", stage.world.s3.port) as proxy:
        proxy.on(request_is("PUT", header="if-match"), Status(412, "PreconditionFailed"))
        stage.world.endpoint = proxy.endpoint
        stage.drain(delivery="AtLeastOnce", flush={"records": 4})
        stage.produce(orders(3, 10))
        stage.drain(delivery="AtLeastOnce", flush={"records": 4}, format={"type": "Bytes"})
        stage.world.endpoint = ""


def older(document: dict[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in fields}


def state_of_0_1(stage: Stage) -> None:
    """A state and a manifest as 0.1.0 writes them."""
    stage.make()
    stage.produce(values({"n": 1, "a": {"b": 1}}, {"n": 2}))
    stage.drain(format=PARQUET)
    state = older(json.loads(stage.stored_state()), SINCE_0_1)
    assert state["formatVersion"] == 1
    stage.put(f"{STATE_FOLDER}state.json", state)
    key = f"{STATE_FOLDER}flushes/{state['last']}.json"
    manifest = json.loads(stage.read(key))
    stage.put(key, older(manifest, MANIFEST_SINCE_0_1))
    stage.produce(values({"n": 1.5, "a": {"c": 1}}))
    stage.drain(format=PARQUET)


def publishing_state_of_0_1(stage: Stage) -> None:
    """0.1.0 committed, died, and its uploads were aborted: they are written again by its manifest."""
    stage.make()
    stage.produce(orders(10))
    commit_and_lose(stage, format={"type": "Json", **KAFKA}, flush={"records": 4})
    state = older(json.loads(stage.stored_state()), SINCE_0_1)
    stage.put(f"{STATE_FOLDER}state.json", state)
    key = f"{STATE_FOLDER}flushes/{state['publishing']}.json"
    stage.put(key, older(json.loads(stage.read(key)), MANIFEST_SINCE_0_1))
    stage.drain()


def state_of_format_2(stage: Stage) -> None:
    """With a reset, and without what came after it."""
    stage.make()
    stage.produce(orders(4))
    stage.drain(format=PARQUET)
    stage.drain(format=PARQUET, reset={"nonce": "first"})
    state = older(json.loads(stage.stored_state()), ("lost", "truncations", "leader_epochs", "cuts"))
    assert state["formatVersion"] == 2
    stage.put(f"{STATE_FOLDER}state.json", state)
    stage.produce([json_record({"id": "text"}, at=9)])
    stage.drain(format=PARQUET, reset={"nonce": "first"})


def changing_spec(stage: Stage) -> None:
    """Format, layout and rules differ from run to run."""
    stage.make()
    runs: list[dict[str, Any]] = [
        {},
        {"layout": by(field("country"), hiveStyle=True)},
        {"layout": {"objectName": "Lenses"}, "format": PARQUET},
        {"format": {"type": "Csv", "compression": {"codec": "Gzip"}}, "destination": {"prefix": "moved"}},
        {"format": {"type": "Avro"}, "nullValues": "Skip"},
    ]
    for number, run in enumerate(runs):
        stage.produce(orders(6, number * 6))
        stage.drain(**run)


CASES: dict[str, Play] = {
    "recreated-topic": recreated_topic,
    "recreated-topic-with-a-gap": recreated_with_unwritten,
    "gap": gap,
    "deleted-topic": deleted_topic,
    "added-partitions": added_partitions,
    "kubernetes-resource": kubernetes_resource,
    "transactions": transactions,
    "starting-offsets": starting_offsets,
    "reset": reset,
    "lost-objects": lost_objects,
    "lost-objects-in-folders": lost_objects_in_folders,
    "lost-objects-with-bad-records": lost_objects_with_bad_records,
    "lost-records": lost_records,
    "interrupted": interrupted,
    "at-least-once": at_least_once,
    "older-state-1": state_of_0_1,
    "older-state-1-publishing": publishing_state_of_0_1,
    "older-state-2": state_of_format_2,
    "changing-spec": changing_spec,
}
