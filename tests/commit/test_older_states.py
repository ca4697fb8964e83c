"""Rolled back states, old resources, and objects that readers removed."""

from __future__ import annotations

from typing import Any

import pytest

from s3sink_api.labels import ADOPT_FROM
from s3sink_api.spec import parse
from s3sink_job.driver.driver import Driver
from tests.harness import World, failure_of

STATE = ".s3sink/default/sink/state.json"


def stored(world: World) -> bytes:
    body: bytes = world.client().get_object(Bucket=world.bucket, Key=STATE)["Body"].read()
    return body


def put_back(world: World, body: bytes) -> None:
    world.client().put_object(Bucket=world.bucket, Key=STATE, Body=body)


@pytest.mark.parametrize("flushes", [1, 3])
def test_a_rolled_back_state_is_refused_and_nothing_is_written_twice(world: World, flushes: int) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([0])
    world.drain()
    older = stored(world)
    for number in range(1, flushes + 1):
        world.produce([number])
        newest = world.drain()
    latest, written = stored(world), world.sizes()
    put_back(world, older)

    error = failure_of(world.driver().step)

    assert error.reason == "StateRolledBack"
    assert not error.retryable
    assert f"s3://{world.bucket}/{STATE} is at flush 1" in str(error)
    assert "Restore" in str(error)
    assert (stored(world), world.sizes()) == (older, written)
    put_back(world, latest)
    world.produce(["more"])
    assert world.verify(world.drain()).ok
    assert newest.problems == {}
    assert world.rows() == [*range(flushes + 1), "more"]


def test_an_uncommitted_manifest_is_no_sign_of_a_rolled_back_state(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver that crashes between manifest and swap leaves one."""
    world.kafka.create_topic(world.topic)
    world.produce([1])
    driver = world.driver()
    books = driver.open()

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    manifest = books.manifest(books.state, driver.routing.encodings([]))
    with monkeypatch.context() as patch:
        patch.setattr(type(books), "swap", die)
        with pytest.raises(KeyboardInterrupt):
            books.commit(books.state, manifest)

    world.drain()
    assert world.rows() == [1]


def resource(world: World, generation: int, created: str = "2026-01-01T00:00:00Z", **metadata: Any) -> Driver:
    document = world.document(run="Continuous", flush={"records": 1})
    document["metadata"] |= {"uid": "u", "generation": generation, "creationTimestamp": created, **metadata}
    driver = world.driver(run="Continuous", flush={"records": 1})
    driver.sink = parse(document)
    return driver


def test_a_pod_with_an_old_spec_does_not_take_over(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1])
    newer = resource(world, 7)
    newer.step()
    zombie = resource(world, 6)

    error = failure_of(zombie.step)

    assert error.reason == "OlderResource"
    assert "generation 7" in str(error)
    assert "generation 6" in str(error)
    world.produce([2])
    newer.step()
    assert world.rows() == [1, 2]


def test_a_recreated_resource_or_a_manual_run_takes_over_an_older_one_if_adopted(world: World) -> None:
    world.kafka.create_topic(world.topic)
    resource(world, 7).step()

    resource(world, 1, created="2026-02-01T00:00:00Z").step()
    world.driver(run="Continuous").step()
    assert world.state()["resource"]["generation"] == 1
    assert failure_of(resource(world, 9).step).reason == "OlderResource"
    resource(world, 9, annotations={ADOPT_FROM: "local"}).step()

    assert world.state()["resource"] == {"uid": "u", "created": "2026-01-01T00:00:00Z", "generation": 9}


def test_objects_that_readers_deleted_are_not_written_again_by_the_next_driver(world: World) -> None:
    """COPY … PURGE. The driver before it was stopped right after its flush."""
    world.kafka.create_topic(world.topic)
    world.produce([1, 2])
    driver = world.driver(run="Continuous", flush={"records": 1})
    driver.step()
    assert world.state()["publishing"] is None
    for key in world.objects():
        world.client().delete_object(Bucket=world.bucket, Key=key)

    world.produce([3])
    world.drain()

    assert world.rows() == [3]


def test_files_that_people_put_beside_the_manifests_do_not_stop_a_sink(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1])
    world.drain()
    for name in ("zzz.json", "999999999999-notes.txt"):
        world.client().put_object(Bucket=world.bucket, Key=f".s3sink/default/sink/flushes/{name}", Body=b"mine")
    world.produce([2])

    world.drain()

    assert world.rows() == [1, 2]
