"""What a restore sends, where to, and what it refuses."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from typing import Any

import pytest

from s3sink_job.base.errors import S3SinkError
from s3sink_job.flush.state import Owner
from s3sink_job.restore import sending
from s3sink_job.restore.plan import Selection
from tests.harness import World, failure_of
from tests.replay.test_replay import replay_of
from tests.restore.worlds import NOW, contents, fill, restore, restored, restoring, unfinished

pytestmark = pytest.mark.spark

BACKUP = {
    "source": {"key": {"format": "Bytes"}, "value": {"format": "Bytes"}},
    "format": {"type": "Parquet", "columns": {"meta": "Kafka"}},
}
PLAIN = [(f"key {n % 5}".encode(), f"value {n}".encode(), [("h", b"1")], NOW + n) for n in range(40)]


def reason(world: World, driver: Any, **options: Any) -> tuple[str, str]:
    error = failure_of(lambda: restore(world, driver, **options))
    return error.reason, str(error)


def test_interleaved_objects_and_dead_letters_are_sent_in_the_order_of_their_offsets(world: World) -> None:
    bad = [(b"key 1", b"\xff\xfe" + bytes([n]), None, NOW) for n in range(3)]
    fill(world, [record for n in range(3) for record in (*PLAIN[n * 10 :][:10], bad[n])], partitions=1)
    driver = world.drain(
        source={"key": {"format": "String"}, "value": {"format": "String"}},
        format={"type": "Parquet", "columns": {"meta": "Kafka"}},
        layout={"partitionBy": [{"type": "Topic"}, {"type": "Partition"}, {"type": "Key"}]},
        errors={"records": "DeadLetter", "deadLetter": {"prefix": "_dead_letter"}},
        flush={"records": 8},
    )
    assert any("_dead_letter" in key for key in world.objects("_dead_letter/"))
    # Some of them are replayed as well: those are not sent twice.
    again = world.driver(
        source={"key": {"format": "String"}, "value": {"format": "Bytes"}},
        format={"type": "Parquet", "columns": {"meta": "Kafka"}},
        errors={"records": "DeadLetter", "deadLetter": {"prefix": "_dead_letter"}},
    )
    assert replay_of(again).run().replayed == 3
    report = restore(world, driver)
    assert report.ok, report.findings
    assert restored(world) == contents(world.messages())


def test_a_restore_broken_off_again_and_again_sends_each_record_once_in_order(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "CHUNK_RECORDS", 50)
    monkeypatch.setattr(sending, "POLL_SECONDS", 0.05)
    world.kafka.create_topic(world.topic, 3)
    for partition in range(3):
        world.kafka.produce(world.topic, PLAIN * 30, partition)
    driver = world.drain(**BACKUP, flush={"records": 100})
    chance = random.Random(21)
    for _ in range(2):
        assert unfinished(world, driver, after=chance.randrange(1, 900), rate=60_000) < 3600
    # The sink goes on meanwhile. A restore that resumes sends what it began with.
    world.produce([b"later"])
    assert world.drain(**BACKUP).finished
    report = restore(world, driver)
    assert report.ok, report.findings
    assert 0 < report.sent_before < 3600
    before = [message for message in world.messages() if message.value != b"later"]
    assert restored(world) == contents(before)
    done = restore(world, driver)
    assert done.finished_before
    assert len(restored(world)) == 3600


def test_what_would_change_or_lose_records_is_refused_with_the_reason(world: World) -> None:
    fill(world, PLAIN, partitions=2)
    driver = world.drain(**BACKUP)
    target = f"{world.topic}-restored"

    def refused(settings: dict[str, str], partitions: int = 2, **options: Any) -> tuple[str, str]:
        world.kafka.create_topic(target, partitions, settings)
        try:
            return reason(world, driver, **options)
        finally:
            world.kafka.delete_topic(target)

    kind, text = refused({"message.timestamp.type": "LogAppendTime"})
    assert (kind, "LogAppendTime" in text) == ("LogAppendTime", True)
    kind, text = refused({"retention.ms": "3600000"}, selection=Selection(until=NOW + 5))
    assert (kind, "retention.ms is 3600000" in text) == ("TooOld", True), text
    assert refused({"retention.bytes": "100"})[0] == "RetentionTooShort"
    assert refused({"message.timestamp.before.max.ms": "1000"})[0] == "TooOld"
    assert refused({}, partitions=1)[0] == "TooFewPartitions"

    kind, text = reason(world, driver, targets={world.topic: world.topic})
    assert (kind, "--append" in text) == ("TargetNotEmpty", True)
    assert reason(world, driver, selection=Selection(topics=("other",)))[0] == "NotRead"
    other = Owner("elsewhere", "default", "sink")
    kind, text = reason(world, driver, owner=other)
    assert (kind, "--from local/default/sink" in text) == ("ForeignState", True)

    key = next(key for key in world.objects() if "/1/" in key)
    world.client().delete_object(Bucket=world.bucket, Key=key)
    kind, text = reason(world, driver)
    assert (kind, key in text) == ("ObjectMissing", True)
    report = restore(world, driver, selection=Selection(partitions=(0,)))
    assert report.ok
    assert restored(world) == contents([m for m in world.messages() if m.partition == 0])


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"format": {"type": "Json"}}, ["keys are not in", "headers are not in", "timestamps are not in"]),
        ({"format": {"type": "Parquet"}, "source": {"value": {"format": "String"}}}, ["keys are not in"]),
    ],
    ids=["Json", "Parquet"],
)
def test_what_would_be_lost_is_said_before_anything_is_sent(
    world: World, spec: dict[str, Any], words: list[str]
) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([{"a": 1}])
    driver = world.drain(**spec)
    kind, text = reason(world, driver)
    assert kind == "RestoreLosses"
    for word in words:
        assert word in text
    assert f"{world.topic}-restored" not in world.kafka.admin.list_topics(timeout=10).topics


def test_a_filter_by_key_and_append_choose_what_is_sent_and_where(world: World) -> None:
    fill(world, [(b"old", b"old", None, 5), *PLAIN], partitions=3)
    driver = world.drain(**BACKUP)
    target = f"{world.topic}-restored"
    world.kafka.create_topic(target, 2)
    world.kafka.produce(target, [(b"other", b"record", None, NOW)], 1)
    assert reason(world, driver, by_key=True)[0] == "TargetNotEmpty"
    chosen = Selection(since=NOW + 10, until=NOW + 20)
    report = restore(world, driver, selection=chosen, by_key=True, append=True, run_id="by-key")
    assert report.ok, report.findings
    wanted = [m for m in world.messages() if NOW + 10 <= m.timestamp < NOW + 20]
    found = [m for m in restored(world) if m.key != b"other"]
    assert sorted((m.key, m.value, m.headers, m.timestamp) for m in found) == sorted(
        (m.key, m.value, m.headers, m.timestamp) for m in wanted
    )
    places: dict[Any, set[int]] = defaultdict(set)
    for message in found:
        places[message.key].add(message.partition)
    assert all(len(partitions) == 1 for partitions in places.values())

    offsets = Selection(partitions=(1,), first=5, end=9)
    assert restore(world, driver, selection=offsets, append=True).records == 4
    # Old records that are not chosen are no reason to refuse.
    world.kafka.create_topic(f"{target}-new", 3, {"retention.ms": str(round(time.time() * 1000) - NOW + 3_600_000)})
    old = Selection(since=NOW + 1)
    assert restore(world, driver, selection=old, targets={world.topic: f"{target}-new"}).ok
    assert reason(world, driver, selection=chosen, run_id="by-key", append=True)[0] == "RunDiffers"


def test_a_topic_that_differs_from_what_was_sent_is_found(world: World) -> None:
    fill(world, PLAIN, partitions=1)
    driver = world.drain(**BACKUP)
    target = f"{world.topic}-restored"
    with restoring(world, driver, targets={world.topic: target}) as work:
        work.say = lambda text: world.kafka.produce(target, [(b"foreign", b"record", None, NOW)], 0)
        report = work.run()
    assert not report.ok
    assert "does somebody else write to it?" in report.findings[0]


def test_a_recreated_topic_begins_anew_and_lost_positions_are_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "CHUNK_RECORDS", 20)
    monkeypatch.setattr(sending, "POLL_SECONDS", 0.05)
    fill(world, PLAIN * 20, partitions=1)
    driver = world.drain(**BACKUP)
    target = f"{world.topic}-restored"
    unfinished(world, driver, after=20, rate=20_000)
    groups = [g.group_id for g in world.kafka.admin.list_consumer_groups().result().valid if "restore" in g.group_id]
    for future in world.kafka.admin.delete_consumer_groups(groups).values():
        future.result()
    kind, text = reason(world, driver)
    assert (kind, "Delete the topic" in text) == ("ProgressLost", True)
    world.kafka.delete_topic(target)
    report = restore(world, driver)
    assert (report.ok, report.sent_before) == (True, 0), report.findings
    assert restored(world) == contents(world.messages())


def test_a_full_refresh_is_restored_as_the_one_generation_that_is_current(world: World) -> None:
    fill(world, PLAIN, partitions=1)
    world.drain(mode="FullRefresh", run_id="first", **BACKUP)
    world.produce([b"later"])
    driver = world.drain(mode="FullRefresh", run_id="second", **BACKUP)
    report = restore(world, driver)
    assert report.ok, report.findings
    assert restored(world) == contents(world.messages())


def test_the_rate_is_kept(world: World) -> None:
    world.kafka.create_topic(world.topic, 1)
    world.kafka.produce(world.topic, [(b"", b"x" * 1000, None, NOW)] * 300, 0)
    driver = world.drain(**BACKUP)
    began = time.monotonic()
    assert restore(world, driver, rate=100_000).ok
    assert time.monotonic() - began > 2.9


def test_values_of_a_registry_cannot_be_restored_and_the_reason_says_what_can(world: World) -> None:
    schema = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}'
    world.kafka.create_topic(world.topic)
    world.kafka.produce(world.topic, [(None, b"\x02", None, NOW)], 0)
    driver = world.drain(
        source={"value": {"format": "Avro", "schema": schema}}, format={"type": "Parquet", "columns": {"meta": "Kafka"}}
    )
    kind, text = reason(world, driver, accept_losses=True)
    assert (kind, "source.value.format to Bytes" in text) == ("NotRestorable", True)
    assert isinstance(failure_of(lambda: restore(world, driver)), S3SinkError)
