"""Replayed dead letters are in the sink's output once, whatever is broken off, and beside a running driver."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from s3sink_job.cli.find_text import find_text
from s3sink_job.cli.replay_text import replay_text
from s3sink_job.commit.committer import Committer
from s3sink_job.commit.ledger import Ledger
from s3sink_job.driver.driver import Driver
from s3sink_job.flush.state import Owner
from s3sink_job.proof.find import WantedKey, WantedOffset, find
from s3sink_job.proof.kafka_records import KafkaAccess
from s3sink_job.replay.letters import Selection
from s3sink_job.replay.replay import Replay
from s3sink_job.replay.report import ReplayReport
from tests.commit.test_store_faults import abort_all
from tests.driver.test_letter_topics import to_topic
from tests.harness import World, failure_of

PREFIX = {"records": "DeadLetter", "deadLetter": {"prefix": "_dead_letter"}}
LINES = {"records": "DeadLetter", "deadLetter": {"prefix": "_dead_letter", "format": "Json"}}
AS_TEXT = {"type": "Text"}
HEADERS = [("trace", b"\x00\xff"), ("trace", None)]
ENVELOPE = {"type": "Json", "envelope": {"enabled": True}}


def access(driver: Driver) -> Callable[[], KafkaAccess]:
    return lambda: KafkaAccess(driver.spark, driver.kafka.admin(), dict(driver.kafka.properties))


def replay_of(driver: Driver, **more: Any) -> Replay:
    bucket = driver.bucket()
    ledger = Ledger(bucket, ".s3sink/default/sink", Owner(driver.cluster, "default", "sink"), conditional=True)
    return Replay(driver.sink, driver.secrets, bucket, ledger, more.pop("kafka", access(driver)), **more)


def replayed(world: World, *, spec: dict[str, Any], **more: Any) -> ReplayReport:
    return replay_of(world.driver(**spec), **more).run()


def proved(world: World, driver: Driver, *, records: int, replays: int) -> None:
    report = world.verify(driver)
    assert (report.ok, report.counts.records, report.replayed) == (True, records, replays), report


def mended(value: str = "String") -> dict[str, Any]:
    """A spec that takes any bytes, where the first one wanted JSON."""
    return {"source": {"value": {"format": value}}, "format": ENVELOPE}


def lines_by_offset(world: World, topic: str | None = None) -> dict[int, Any]:
    found = [json.loads(line) for line in world.lines(topic=topic)]
    assert len(found) == len({row["metadata"]["offset"] for row in found}), "a record is there twice"
    return {row["metadata"]["offset"]: row for row in found}


@pytest.mark.parametrize("errors", [PREFIX, LINES], ids=["Parquet", "Json"])
def test_dead_letters_are_written_once_by_the_present_spec(world: World, errors: dict[str, Any]) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([{"n": 0}])
    world.kafka.produce(world.topic, [(b"k", b"{broken", HEADERS, 1_700_000_000_123)], 0)
    world.produce([{"n": 2}, b"NaN"])
    driver = world.drain(errors=errors, format=ENVELOPE)
    before = world.state()
    first = replayed(world, spec={**mended(), "errors": errors}, kafka=None)
    assert (first.outstanding, first.replayed, first.complete) == (2, 2, True)
    assert f"{before['owner']['namespace']}/sink: 2 dead letters, 2 replayed into 1 objects" in replay_text(first)
    rows = lines_by_offset(world)
    assert sorted(rows) == [0, 1, 2, 3]
    assert (rows[1]["key"], rows[1]["value"], rows[1]["metadata"]["timestamp"]) == ("k", "{broken", 1_700_000_000_123)
    assert [header["key"] for header in rows[1]["headers"]] == ["trace", "trace"]
    assert world.state() == before, "the sink's own state is not touched"
    again = replayed(world, spec={**mended(), "errors": errors}, kafka=None)
    assert (again.outstanding, again.replayed) == (0, 0)
    assert "no dead letters to replay" in replay_text(again)
    proved(world, driver, records=4, replays=2)
    # The driver that was there before goes on: it was not fenced.
    world.produce([{"n": 4}])
    driver = world.drain(world.driver(errors=errors, format=ENVELOPE))
    assert sorted(lines_by_offset(world)) == [0, 1, 2, 3, 4]
    proved(world, driver, records=5, replays=2)


def test_a_record_that_fails_again_stays_the_same_dead_letter(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([{"c": "a"}, {}, b"{broken", {"c": "b"}, {"c": None}])
    layout = {"partitionBy": [{"type": "Topic"}, {"type": "Partition"}, {"type": "Field", "path": ["c"]}]}
    spec: dict[str, Any] = {"errors": PREFIX, "layout": {**layout, "onMissingValue": "Fail"}}
    driver = world.drain(**spec)
    letters = world.sizes("_dead_letter/")
    same = replayed(world, spec=spec)
    assert (same.replayed, len(same.staying), world.objects(".s3sink/default/sink/replay/flushes/")) == (0, 3, [])
    spec["layout"] = {**layout, "onMissingValue": "Default"}
    preview = replay_of(world.driver(**spec)).preview()
    assert [one.offset for one in preview.writable] == [1, 4]
    assert preview.writable[0].url.endswith("/__HIVE_DEFAULT_PARTITION__/0000000000000000001.jsonl")
    assert "offset 2: would stay a dead letter: NotJson: value is not JSON" in replay_text(preview)
    assert len(world.objects()) == 2, "nothing was written"
    report = replayed(world, spec=spec)
    assert (report.replayed, [(one.offset, one.fault.reason) for one in report.staying]) == (2, [(2, "NotJson")])
    assert sorted(preview.writable[0].url.split("/")[-2:]) == sorted(report.objects[0].split("/")[-2:])
    assert world.sizes("_dead_letter/") == letters, "it is the same dead letter"
    report = replayed(world, spec=spec)
    assert (report.outstanding, report.replayed, len(report.staying)) == (1, 0, 1)
    # Its object begins between the offsets of the one that was replayed before.
    report = replayed(world, spec={**spec, "source": {"value": {"format": "String"}}, "layout": {}})
    assert report.complete
    proved(world, driver, records=5, replays=3)


def test_filters_select_by_topic_reason_and_time(world: World) -> None:
    world.kafka.create_topic(world.topic)
    times = [1_000_000, 2_000_000, 3_000_000]
    world.kafka.produce(world.topic, [(None, b"{broken", None, at) for at in times], 0)
    world.kafka.produce(world.topic, [(None, b"\xff", None, 2_500_000)], 0)
    driver = world.drain(errors=PREFIX, format=ENVELOPE)
    spec = {**mended("Bytes"), "errors": PREFIX}
    assert replayed(world, spec=spec, selection=Selection(topics=("other",))).filtered == 4
    assert replayed(world, spec=spec, selection=Selection(reasons=("NotUtf8",))).replayed == 1
    report = replayed(world, spec=spec, selection=Selection(since=2_000_000, until=3_000_000))
    assert (report.replayed, report.filtered) == (1, 2)
    assert sorted(lines_by_offset(world)) == [1, 3]
    assert replayed(world, spec=spec).replayed == 2
    proved(world, driver, records=4, replays=4)


@pytest.mark.parametrize("step", ["before the commit", "before it is published", "after it is published"])
def test_a_replay_that_was_broken_off_goes_on(world: World, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([b"{broken", {"n": 1}, b"NaN"])
    driver = world.drain(errors=PREFIX, format=ENVELOPE)
    method = "commit" if step == "before the commit" else "publish"
    original = getattr(Committer, method)

    def dies(self: Committer, *arguments: Any) -> Any:
        if step == "after it is published":
            original(self, *arguments)
        raise KeyboardInterrupt

    spec = {**mended(), "errors": PREFIX}
    with monkeypatch.context() as patch:
        patch.setattr(Committer, method, dies)
        with pytest.raises(KeyboardInterrupt):
            replayed(world, spec=spec)
    assert sorted(lines_by_offset(world)) == ([0, 1, 2] if step == "after it is published" else [1])
    report = replayed(world, spec=spec)
    assert report.replayed == (2 if step == "before the commit" else 0)
    assert report.finished == (2 if step == "before it is published" else 0)
    assert sorted(lines_by_offset(world)) == [0, 1, 2]
    proved(world, driver, records=3, replays=2)


def test_dead_letters_of_a_lost_upload_are_replayed_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([b"{broken", {"n": 1}, b"NaN"])
    driver = world.drain(errors=PREFIX, format=ENVELOPE)
    commit = Committer.commit

    def then_aborted(self: Committer, *arguments: Any) -> Any:
        state = commit(self, *arguments)
        abort_all(world)
        return state

    spec = {**mended(), "errors": PREFIX}
    with monkeypatch.context() as patch:
        patch.setattr(Committer, "commit", then_aborted)
        report = replayed(world, spec=spec)
    assert (report.replayed, report.lost, report.complete) == (0, 2, False)
    assert "run it again" in replay_text(report)
    assert replayed(world, spec=spec).replayed == 2
    proved(world, driver, records=3, replays=2)


def test_the_later_of_two_replays_fences_the_other(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([b"{broken", {"n": 1}])
    driver = world.drain(errors=PREFIX, format=ENVELOPE)
    spec = {**mended(), "errors": PREFIX}
    manifest = Committer.manifest

    def overtaken(self: Committer, *arguments: Any, **named: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(Committer, "manifest", manifest)
            assert replayed(world, spec=spec).replayed == 1
        return manifest(self, *arguments, **named)

    monkeypatch.setattr(Committer, "manifest", overtaken)
    assert failure_of(replay_of(world.driver(**spec)).run).reason == "Fenced"
    monkeypatch.undo()
    assert sorted(lines_by_offset(world)) == [0, 1]
    proved(world, driver, records=2, replays=1)


def test_dead_letters_in_a_topic_are_replayed_byte_for_byte(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.kafka.produce(world.topic, [(b"k", b"{broken", HEADERS, 1_700_000_000_123)], 0)
    world.produce([{"n": 1}, b"NaN"])
    errors = to_topic(world)
    driver = world.drain(errors=errors, format=ENVELOPE)
    spec = {**mended(), "errors": errors}
    dlq = f"{world.topic}-dlq"
    world.kafka.produce(dlq, [(None, b"not ours", None, None)], 0)
    error = failure_of(replay_of(world.driver(**spec)).run)
    assert error.reason == "ForeignLetters"
    assert f"{dlq}-0 offset" in str(error)
    assert "--ignore-others" in str(error)
    assert world.objects(".s3sink/default/sink/replay/flushes/") == []
    # A sink of the same name in another cluster, or before this one, has flushes of other names.
    letter = world.messages(dlq)[0]
    for number in (1, 99):
        flush = f"{number:012d}-0123456789ab".encode()
        headers = [(name, flush if name == "s3sink.flush" else value) for name, value in letter.headers]
        world.kafka.produce(dlq, [(b"k", b"not this one", headers, None)], 0)
    report = replayed(world, spec=spec, ignore_others=True)
    assert (report.replayed, report.others, report.complete) == (2, 2, True)
    row = lines_by_offset(world)[0]
    assert (row["key"], row["value"], row["metadata"]["timestamp"]) == ("k", "{broken", 1_700_000_000_123)
    assert [header["key"] for header in row["headers"]] == ["trace", "trace"]
    assert replayed(world, spec=spec, ignore_others=True).outstanding == 0
    proved(world, driver, records=3, replays=2)


def test_letters_of_a_deleted_topic_are_gone_and_stop_no_others(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([b"{broken"])
    world.drain(errors=to_topic(world), format=ENVELOPE)
    world.produce([b"NaN"])
    world.drain(errors=PREFIX, format=ENVELOPE)
    world.kafka.delete_topic(f"{world.topic}-dlq")
    report = replayed(world, spec={**mended(), "errors": PREFIX})
    assert (report.replayed, report.gone, report.complete) == (1, 1, False)
    assert "1 are gone" in replay_text(report)
    assert sorted(lines_by_offset(world)) == [1]


def test_objects_that_the_sink_did_not_write_are_refused_and_missing_ones_named(world: World) -> None:
    world.kafka.create_topic(world.topic, partitions=2)
    world.produce([b"{broken"], 0)
    world.produce([b"{broken"], 1)
    world.drain(errors=PREFIX, format=ENVELOPE)
    one, other = world.objects("_dead_letter/")
    body = world.client().get_object(Bucket=world.bucket, Key=one)["Body"].read()
    world.client().put_object(Bucket=world.bucket, Key=one, Body=body, Metadata={"s3sink-sink": "default/another"})
    spec = {**mended(), "errors": PREFIX}
    error = failure_of(replay_of(world.driver(**spec)).run)
    assert (error.reason, one in str(error)) == ("ForeignLetters", True)
    assert world.objects(".s3sink/default/sink/replay/flushes/") == []
    world.client().delete_object(Bucket=world.bucket, Key=one)
    report = replayed(world, spec=spec)
    assert (report.replayed, report.complete) == (1, False)
    assert [url.endswith(one) for url in report.missing] == [True]
    assert other


def test_names_by_time_never_meet_those_of_a_running_sink(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([{"n": 0}, b"{broken"])
    layout = {"objectName": "Upload", "partitionBy": [{"type": "Topic"}]}
    now = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    driver = world.drain(world.driver(errors=PREFIX, layout=layout, clock=lambda: now))
    spec = {"errors": PREFIX, "layout": layout, "format": AS_TEXT, "source": {"value": {"format": "String"}}}
    report = replayed(world, spec=spec, clock=lambda: now)
    assert report.replayed == 1
    assert len(world.objects()) == 2
    proved(world, driver, records=2, replays=1)


def test_objects_of_one_record_are_replayed_under_the_name_of_their_record(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([b"one", None, b"three"])
    spec: dict[str, Any] = {"source": {"value": {"format": "Bytes"}}, "format": {"type": "Bytes"}, "errors": PREFIX}
    driver = world.drain(**spec, nullValues="Fail")
    assert replayed(world, spec={**spec, "nullValues": "Skip"}).replayed == 0, "a tombstone that is left out stays"
    report = replayed(world, spec={**spec, "nullValues": "Write"})
    assert report.replayed == 1
    assert report.objects[0].endswith("/0000000000000000001.bin")
    proved(world, driver, records=3, replays=1)


def test_find_shows_the_object_that_a_dead_letter_was_replayed_to(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.kafka.produce(world.topic, [(b"k", b"{broken", None, None), (b"k", b'{"n": 1}', None, None)], 0)
    driver = world.drain(errors=PREFIX, format=ENVELOPE)
    spec = {**mended(), "errors": PREFIX}
    replayed(world, spec=spec)
    ledger = replay_of(driver).ledger
    arguments = (driver.sink, driver.secrets, ledger.bucket, ledger, access(driver))
    doc = find(*arguments, WantedOffset(world.topic, 0, 0))
    assert (doc["outcome"], doc["records"][0]["row"]) == ("InObject", 0)
    assert "Replayed since" in find_text(doc)
    assert doc["records"][0]["object"]["url"].startswith(f"s3://{world.bucket}/raw/")
    found = find(*arguments, WantedKey(world.topic, "k"))
    assert [record["offset"] for record in found["records"]] == [0, 1]


def test_dead_letters_without_headers_are_counted_and_not_replayed(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([b"{broken", {"n": 1}])
    errors = to_topic(world, headers=False)
    world.drain(errors=errors, format=ENVELOPE)
    report = replayed(world, spec={**mended(), "errors": errors}, kafka=None)
    assert (report.replayed, report.without_headers, report.complete) == (0, 1, False)
    assert "headers: false" in replay_text(report)
