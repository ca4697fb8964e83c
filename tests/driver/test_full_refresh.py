"""`mode: FullRefresh` with real Kafka and a real store: what a run writes, replaces and leaves alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from s3sink_job.base.errors import TransientError
from s3sink_job.cli.plan_text import plan_text
from s3sink_job.cli.verify_text import verify_text
from s3sink_job.commit.committer import Committer
from s3sink_job.commit.former_objects import FormerObjects
from s3sink_job.driver.driver import Driver
from s3sink_job.driver.flusher import Flusher
from s3sink_job.driver.preview import preview
from s3sink_job.proof.find import WantedOffset, find
from tests.driver.test_bounded_runs import checked, ledger
from tests.harness import World, failure_of

REFRESH: dict[str, Any] = {"run": "Once", "mode": "FullRefresh"}


def refresh(world: World, run: str, **spec: Any) -> Driver:
    return world.drain(world.driver(run_id=run, **REFRESH, **spec))


def current(world: World) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(world.content("raw/_current.json"))
    return found


def data(world: World) -> list[str]:
    return [key for key in world.objects() if not key.endswith("_current.json")]


def planned(world: World, driver: Driver) -> str:
    return plan_text(preview(driver, ledger(driver)).to_doc())


def break_off(patch: pytest.MonkeyPatch, place: Any, method: str, calls: int = 1) -> None:
    """The call with this number fails, as if the driver had been killed there."""
    whole, left = getattr(place, method), [calls]

    def broken(*arguments: Any, **named: Any) -> Any:
        left[0] -= 1
        if left[0] <= 0:
            raise TransientError("killed here")
        return whole(*arguments, **named)

    patch.setattr(place, method, broken)


def test_each_run_replaces_what_the_sink_wrote_before_and_nothing_else(world: World) -> None:
    world.kafka.create_topic(world.topic, partitions=2)
    world.produce([1, 2], 0)
    world.produce([3], 1)
    world.drain()
    before = data(world)
    foreign = f"raw/{world.topic}/0/by-hand.json"
    world.client().put_object(Bucket=world.bucket, Key=foreign, Body=b"0")
    world.produce([4], 0)
    driver = world.driver(run_id="first", **REFRESH)
    text = planned(world, driver)
    assert "a new full refresh would begin, and replace 2 objects with 3 records" in text
    assert "one flush: 4 offsets of 2 partitions" in text

    world.drain(driver)

    assert sorted(world.rows()) == [0, 1, 2, 3, 4]
    assert not set(before) & set(data(world))
    assert all("-g2" in key for key in data(world) if key != foreign)
    pointer = current(world)
    assert (pointer["sink"], pointer["run"], pointer["generations"]) == ("default/sink", "first", {world.topic: 2})
    assert (pointer["records"], pointer["objects"]) == (4, 2)
    assert pointer["manifests"]["folder"] == f"s3://{world.bucket}/.s3sink/default/sink/flushes/"
    report = world.verify(driver)
    assert (report.ok, report.counts.records, report.objects, report.former) == (True, 4, 2, 0)
    status = driver.reporter.status()["refresh"]
    assert (status["run"], status["phase"], status["records"], status["replacedObjects"]) == ("first", "Done", 4, 2)
    # A pod of the same Job that starts again has nothing to do.
    world.produce([5], 1)
    refresh(world, "first")
    assert sorted(world.rows()) == [0, 1, 2, 3, 4]

    again = refresh(world, "second")

    assert sorted(world.rows()) == [0, 1, 2, 3, 4, 5]
    assert (current(world)["run"], current(world)["number"], current(world)["records"]) == ("second", 2, 5)
    assert world.verify(again).ok
    # What follows is appended to the last run.
    world.produce([6], 0)
    appended = world.drain()
    assert sorted(world.rows()) == [0, 1, 2, 3, 4, 5, 6]
    assert world.verify(appended).ok


def test_nothing_shows_before_everything_is_written_and_a_restart_keeps_the_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.kafka.create_topic(world.topic, partitions=2)
    world.produce([1], 0)
    world.drain()
    before = data(world)
    world.produce([2], 0)
    driver = world.driver(run_id="run", **REFRESH, flush={"records": 1})
    driver.planner.limits = type(driver.planner.limits)(objects=1)
    with monkeypatch.context() as patch:
        break_off(patch, Flusher, "flush", calls=2)
        failure_of(lambda: world.drain(driver))
    assert data(world) == before
    state = world.state()
    assert (state["refresh"]["phase"], state["formatVersion"], state["publishing"]) == ("Writing", 4, None)
    report = world.verify(driver)
    assert (report.ok, report.counts.records) == (True, 1)
    assert "run run is Writing: 1 objects with 1 records" in verify_text(report)
    text = planned(world, world.driver(**REFRESH))
    assert "full refresh run is not finished (Writing): with --run-id run it would go on" in text
    # Above the end of the run.
    world.produce([3], 1)
    with monkeypatch.context() as patch:
        break_off(patch, Committer, "publish", calls=2)
        failure_of(lambda: world.drain(world.driver(run_id="run", **REFRESH)))
    assert world.state()["refresh"]["phase"] == "Publishing"
    assert set(before) < set(data(world))
    assert world.verify(driver).ok

    refresh(world, "run")

    assert world.rows() == [1, 2]
    assert world.verify(driver).ok


def test_a_run_that_was_broken_off_while_it_wrote_is_abandoned_by_the_next_and_gc_removes_its_uploads(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datetime import timedelta

    from s3sink_job.proof.orphaned_uploads import orphaned_uploads

    world.kafka.create_topic(world.topic)
    world.produce([1])
    world.drain()
    before = data(world)
    world.produce([2])
    driver = world.driver(run_id="first", **REFRESH)
    with monkeypatch.context() as patch:
        break_off(patch, type(driver.refresh), "end_writing")
        failure_of(lambda: world.drain(driver))

    def orphans() -> int:
        return len(list(orphaned_uploads(driver.bucket(), driver.routing, [world.topic], timedelta(0))))

    assert orphans() == 0
    # Append goes on from where it was.
    appended = world.drain()
    assert (world.rows(), orphans()) == ([1, 2], 1)
    assert world.verify(appended).ok
    assert set(before) < set(data(world))
    done = refresh(world, "second")
    assert world.rows() == [1, 2]
    assert world.verify(done).ok
    assert current(world)["number"] == 2


def test_an_empty_topic_does_not_replace_a_full_lake_unless_it_may(world: World) -> None:
    other = f"{world.topic}-b"
    topics = {"topics": [world.topic, other]}
    world.kafka.create_topic(world.topic)
    world.kafka.create_topic(other)
    world.produce([1])
    world.produce([2], topic=other)
    world.drain(source=topics)
    before = data(world)
    for deleted in world.kafka.admin.delete_records([TopicPartition(other, 0, 1)]).values():
        deleted.result()
    driver = world.driver(run_id="run", **REFRESH, source=topics)

    error = failure_of(driver.step)

    assert (error.reason, error.retryable) == ("RefreshEmpty", False)
    assert f"no records for the full refresh of {other}" in str(error)
    assert data(world) == before
    assert "refresh" not in world.state()
    refresh(world, "run", source=topics, allowEmpty=True)
    assert (world.rows(), world.rows(topic=other)) == ([1], [])


def test_a_run_with_a_bad_record_or_a_recreated_topic_fails_and_replaces_nothing(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([{"a": 1}])
    world.drain()
    before = data(world)
    world.produce([b"{not json"])
    driver = world.driver(run_id="first", **REFRESH)
    world.drain(driver)
    assert [problem.reason for problem in driver.problems.values()] == ["BadRecord"]
    assert world.state()["refresh"]["phase"] == "Writing"
    assert data(world) == before
    # The next run skips it, and its topic is recreated meanwhile.
    driver = world.driver(run_id="second", **REFRESH, errors={"records": "Skip"})
    driver.step()
    world.kafka.delete_topic(world.topic)
    world.kafka.create_topic(world.topic)
    world.produce([{"a": 2}])

    error = failure_of(lambda: world.drain(driver))

    assert error.reason == "RefreshIncomplete"
    assert "was recreated or its log truncated during the run" in str(error)
    assert data(world) == before
    refresh(world, "third")
    assert world.rows() == [{"a": 2}]


def test_an_object_that_cannot_be_deleted_is_reported_and_does_not_hold_up_the_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a bucket policy or a lock does."""
    from s3sink_job.base.errors import FinalError
    from s3sink_job.stores.bucket import Bucket

    world.kafka.create_topic(world.topic, partitions=2)
    world.produce([1], 0)
    world.produce([2], 1)
    world.drain()
    (kept, removed) = data(world)
    delete = Bucket.delete

    def refuse(self: Bucket, key: str) -> None:
        if key == kept:
            raise FinalError(f"DeleteObject {key}: 403 AccessDenied", reason="AccessDenied")
        delete(self, key)

    monkeypatch.setattr(Bucket, "delete", refuse)
    driver = refresh(world, "run")

    assert kept in data(world)
    assert removed not in data(world)
    assert driver.reporter.status()["refresh"]["unremovedObjects"] == 1
    report = world.verify(driver)
    assert (report.ok, report.former) == (False, 1)
    assert f"{kept}: a full refresh replaced it, and could not remove it" in report.counts.findings[0]


def test_dead_letters_belong_to_their_generation_and_find_says_what_was_removed(world: World) -> None:
    letters = {"records": "DeadLetter", "deadLetter": {"prefix": "_dead", "format": "Json"}}
    world.kafka.create_topic(world.topic)
    world.produce([b"{not json", 1])
    world.drain(errors=letters)
    (former,) = world.objects("_dead/")

    driver = refresh(world, "run", errors=letters)

    (letter,) = world.objects("_dead/")
    assert letter != former
    report = world.verify(driver)
    assert (report.ok, report.counts.records, report.counts.dead_lettered) == (True, 1, 1)
    kafka: Any = lambda: pytest.fail("not needed")  # noqa: E731
    wanted = WantedOffset(world.topic, 0, 1, generation=1)
    found = find(driver.sink, driver.secrets, driver.bucket(), ledger(driver), kafka, wanted)
    assert (found["outcome"], found["records"]) == ("Removed", [])
    assert "A full refresh has replaced and removed it" in found["text"]
    now = find(driver.sink, driver.secrets, driver.bucket(), ledger(driver), kafka, WantedOffset(world.topic, 0, 1))
    assert (now["outcome"], now["generation"]) == ("InObject", 2)


def test_the_removal_of_many_flushes_goes_on_where_it_was_broken_off(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("s3sink_job.commit.former_objects.OBJECTS_PER_SWAP", 1)
    world.kafka.create_topic(world.topic)
    for number in range(3):
        world.produce([number])
        world.drain()
    with monkeypatch.context() as patch:
        break_off(patch, FormerObjects, "_remove", calls=3)
        failure_of(lambda: refresh(world, "run"))
    state = world.state()["refresh"]
    assert (state["phase"], state["cursor"][:12]) == ("Removing", "000000000001")
    assert current(world)["run"] == "run"

    driver = refresh(world, "another")

    assert world.rows() == [0, 1, 2]
    assert world.verify(driver).ok
    assert current(world)["number"] == 2


def test_a_pointer_of_another_sink_is_not_overwritten(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1])
    world.client().put_object(Bucket=world.bucket, Key="raw/_current.json", Body=b'{"sink": "other/sink"}')

    error = failure_of(world.driver(run_id="run", **REFRESH).step)

    assert error.reason == "KeyTaken"
    assert "raw/_current.json is not the pointer of the sink default/sink" in str(error)
    assert world.rows() == []


def test_check_works_for_a_full_refresh_before_and_after_its_first_run(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1])
    driver = world.driver(run_id="run", **REFRESH)
    assert checked(driver)["refresh"] == "True the next run is the first one"
    world.drain(driver)
    found = checked(world.driver(**REFRESH))
    assert found["refresh"].startswith("True the next run replaces 1 objects with 1 records")
    assert all(text.startswith("True") for text in found.values())
