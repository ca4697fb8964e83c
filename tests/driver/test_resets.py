"""`spec.reset`: every topic starts again under new names, once, and existing objects stay."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from s3sink_job.base.errors import FinalError, S3SinkError
from s3sink_job.cli.opened_sink import LOCAL_CLUSTER
from s3sink_job.cli.plan_text import plan_text
from s3sink_job.commit.ledger import Ledger
from s3sink_job.driver.driver import Driver
from s3sink_job.driver.flusher import Flusher
from s3sink_job.flush.state import Owner
from s3sink_job.proof.preflight import preflight_checks
from tests.commit.test_store_faults import bucket_of, committed_but_unpublished
from tests.driver.test_flush_rules import planned
from tests.driver.test_kafka_history import delete_records
from tests.driver.test_topics import group_offsets
from tests.harness import World, failure_of
from tests.proof.test_gc import left_behind

EARLIEST = {"nonce": "2026-11-01"}


def to(position: str, nonce: str = "2026-11-01", **more: Any) -> dict[str, Any]:
    return {"nonce": nonce, "to": {"position": position, **more}}


@pytest.fixture
def copied(world: World) -> World:
    """A sink that has copied three records."""
    world.kafka.create_topic(world.topic)
    world.produce(["a", "b", "c"])
    world.drain()
    return world


def key(world: World, first: int, generation: int = 1, prefix: str = "raw") -> str:
    mark = f"-g{generation}" if generation > 1 else ""
    return f"{prefix}/{world.topic}/0/{first:019d}{mark}.jsonl"


def topic(world: World) -> dict[str, Any]:
    found: dict[str, Any] = world.state()["topics"][world.topic]
    return found


def test_everything_is_copied_once_more_beside_what_was_written(copied: World) -> None:
    before = copied.content(key(copied, 0))
    copied.produce(["d"])

    driver = copied.drain(reset=EARLIEST)

    assert copied.objects() == [key(copied, 0, 2), key(copied, 0)]
    assert [copied.content(k).split() for k in copied.objects()] == [[b'"a"', b'"b"', b'"c"', b'"d"'], before.split()]
    assert (topic(copied)["generation"], copied.state()["formatVersion"]) == (2, 2)
    report = copied.verify(driver)
    assert (report.ok, report.counts.missing, report.counts.duplicates) == (True, 0, 0)
    assert report.unchecked == 1, "of the generation before; its rows were counted"


def test_a_reset_is_carried_out_once_whatever_the_manifest_says_afterwards(copied: World) -> None:
    copied.drain(reset=EARLIEST)
    for later in (EARLIEST, to("Latest"), None):
        copied.drain(**({"reset": later} if later else {}))
    copied.drain(reset=to("Latest", "action"))
    copied.drain(reset=EARLIEST)

    assert [done["nonce"] for done in copied.state()["resets"]] == ["2026-11-01", "action"]
    assert topic(copied)["generation"] == 3
    assert len(copied.rows()) == 6


@pytest.mark.parametrize("position", ["Latest", "Timestamp", "Offsets"])
def test_a_reset_begins_at_its_position(world: World, position: str) -> None:
    world.kafka.create_topic(world.topic)
    for n in range(4):
        world.kafka.produce(world.topic, [(None, b"%d" % n, None, 1_700_000_000_000 + n * 1000)], 0)
    world.drain()
    more: dict[str, Any] = {
        "Latest": {},
        "Timestamp": {"timestamp": datetime.fromtimestamp(1_700_000_002, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")},
        "Offsets": {"offsets": [{"topic": world.topic, "partition": 0, "offset": 3}]},
    }[position]

    driver = world.drain(reset=to(position, **more))

    start = {"Latest": 4, "Timestamp": 2, "Offsets": 3}[position]
    assert topic(world)["partitions"]["0"]["start"] == start
    assert world.rows() == [*range(4), *range(start, 4)]
    assert world.verify(driver).ok


def test_what_was_committed_and_not_published_is_published_before_the_reset(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1, 2])
    committed_but_unpublished(world, monkeypatch)
    assert world.objects() == []

    driver = world.drain(reset=to("Latest"))

    assert world.rows() == [1, 2]
    assert (topic(world)["generation"], world.state()["publishing"]) == (2, None)
    assert world.verify(driver).ok


def test_an_offset_that_kafka_does_not_have_is_named_and_nothing_is_reset(copied: World) -> None:
    wanted = to("Offsets", offsets=[{"topic": copied.topic, "partition": 0, "offset": 9}])

    error = failure_of(copied.driver(reset=wanted).step)

    assert isinstance(error, FinalError)
    assert error.reason == "StartingOffsets"
    assert "spec.reset.to.offsets[0]" in str(error)
    assert (topic(copied)["generation"], copied.state()["resets"]) == (1, [])


def test_a_paused_sink_is_reset_and_copies_nothing_until_it_goes_on(copied: World) -> None:
    driver = copied.driver(reset=EARLIEST, state="Paused", run="Continuous")
    driver.step()

    status = driver.reporter.status()
    assert (topic(copied)["generation"], status["lag"]["records"], status["phase"]) == (2, 3, "Paused")
    assert status["reset"]["nonce"] == "2026-11-01"
    assert datetime.fromisoformat(status["reset"]["time"]) > datetime.now(UTC) - timedelta(minutes=5)
    assert len(copied.rows()) == 3


def test_a_reset_may_take_the_sink_to_another_prefix(copied: World) -> None:
    driver = copied.drain(reset=EARLIEST, destination={"prefix": "cooked"})

    assert copied.objects() == [key(copied, 0)]
    assert copied.objects("cooked/") == [key(copied, 0, 2, "cooked")]
    assert copied.verify(driver).ok


def test_a_reset_may_take_the_sink_to_another_bucket_and_back_again(copied: World) -> None:
    """In the other bucket the first generation begins. Back here, the old state is found and reset."""
    other = f"{copied.bucket}-b"
    copied.client().create_bucket(Bucket=other)
    listed = [{"topic": copied.topic, "partition": 0, "offset": 1}]

    latest = {"startingOffsets": {"position": "Latest"}}
    copied.drain(reset=to("Offsets", offsets=listed), destination={"bucket": other}, source=latest)
    assert list(copied.sizes("raw/", other)) == [key(copied, 1)]
    assert copied.state()["resets"] == []

    driver = copied.drain(reset=to("Earliest", "home"))
    assert copied.objects() == [key(copied, 0, 2), key(copied, 0)]
    assert copied.verify(driver).ok


def test_a_partition_that_stood_still_for_lost_records_goes_on(copied: World) -> None:
    copied.produce(["d", "e"])
    delete_records(copied, before=4)
    assert copied.drain().problems[copied.topic, 0].reason == "DataLoss"

    driver = copied.drain(reset=EARLIEST)

    assert (driver.problems, copied.content(key(copied, 4, 2))) == ({}, b'"e"\n')


def test_a_group_for_lag_tools_goes_back_with_the_reset(copied: World) -> None:
    group = f"{copied.topic}-group"
    copied.drain(source={"publishOffsetsTo": group})
    assert group_offsets(copied, group) == {(copied.topic, 0): 3}

    driver = copied.driver(reset=EARLIEST, state="Paused", run="Continuous", source={"publishOffsetsTo": group})
    driver.step()

    assert group_offsets(copied, group) == {(copied.topic, 0): 0}


def test_a_plan_shows_the_reset_that_is_due_and_carries_nothing_out(copied: World) -> None:
    doc = planned(copied, copied.driver(reset=EARLIEST))

    assert (doc["reset"], doc["state"]) == ("2026-11-01", "at flush 1")
    told = "reset '2026-11-01': every topic begins at Earliest. New objects have the next generation in their names"
    assert told in plan_text(doc)
    assert doc["partitions"][0]["keys"] == [key(copied, 0, 2)]
    assert copied.state()["resets"] == []

    copied.drain(reset=EARLIEST)
    doc = planned(copied, copied.driver(reset=EARLIEST))
    assert (doc["reset"], doc["notes"]) == (None, [])


def test_a_plan_of_a_sink_that_never_ran_starts_where_the_reset_says(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1])
    doc = planned(world, world.driver(reset=to("Latest")))
    assert "has never run; it would start at spec.reset.to" in plan_text(doc)
    assert doc["partitions"][0]["committed"] == 1


def findings(world: World, driver: Driver) -> list[str]:
    def kafka() -> Any:
        raise S3SinkError("not asked")

    owner = Owner(LOCAL_CLUSTER, "default", "sink")
    found = preflight_checks(
        driver.sink,
        lambda: bucket_of(driver),
        lambda bucket: Ledger(bucket, ".s3sink/default/sink", owner, conditional=True),
        kafka,
        driver.secrets,
    )
    return [f"{finding.what}: {finding.text}" for finding in found]


def test_a_check_says_whether_the_reset_is_due_and_where_it_would_begin(world: World) -> None:
    world.kafka.create_topic(world.topic)
    wanted = to("Timestamp", timestamp="2026-01-01")
    start = "none yet; the first run starts at reset.to, Timestamp 2026-01-01T00:00:00Z"
    assert f"state: {start}" in findings(world, world.driver(reset=wanted))
    world.drain()
    (due,) = (text for text in findings(world, world.driver(reset=wanted)) if text.startswith("reset"))
    assert "2026-11-01: the next run starts every topic again at Timestamp 2026-01-01T00:00:00Z" in due
    world.drain(reset=wanted)
    assert "reset: 2026-11-01: already done" in findings(world, world.driver(reset=wanted))


def test_gc_spares_a_flush_to_be_published_before_a_reset_and_finds_older_orphans(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1, 2])
    committed_but_unpublished(world, monkeypatch)
    driver = world.driver(reset=EARLIEST)
    assert left_behind(driver) == set()

    world.drain(driver)
    upload: str = world.client().create_multipart_upload(Bucket=world.bucket, Key=key(world, 2))["UploadId"]
    assert left_behind(driver) == {upload}
    assert len(world.objects()) == 2


ONE_EACH: dict[str, Any] = {"format": {"type": "Bytes"}, "source": {"value": {"format": "Bytes"}}}
"""Objects of one record show at once, before their flush is committed."""


def puts_and_does_not_commit(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("s3sink_job.commit.committer.Committer.commit", lambda *_: None)
        patch.setattr(Flusher, "publish", lambda *_: None)
        driver.step()


def test_verify_during_a_reset_takes_no_object_for_a_foreign_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1, 2])
    driver = world.drain(**ONE_EACH)
    state = ".s3sink/default/sink/state.json"
    before = world.content(state)
    puts_and_does_not_commit(world.driver(reset=EARLIEST, **ONE_EACH), monkeypatch)
    # As verify had read it a moment earlier.
    world.client().put_object(Bucket=world.bucket, Key=state, Body=before)

    report = world.verify(driver)
    assert (report.ok, report.pending, report.unlisted, len(world.objects())) == (True, 2, 0, 4)


def test_uncommitted_objects_of_one_record_from_before_a_reset_do_not_fail_verify(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their generation is over, so they are never committed."""
    world.kafka.create_topic(world.topic)
    world.produce([1, 2])
    world.drain(**ONE_EACH)
    world.produce([3])
    puts_and_does_not_commit(world.driver(**ONE_EACH), monkeypatch)
    assert len(world.objects()) == 3

    driver = world.drain(reset=EARLIEST, **ONE_EACH)

    report = world.verify(driver)
    assert (report.ok, report.pending, report.unlisted, len(world.objects())) == (True, 1, 0, 6)
