"""States, resources and objects that are not what they were: put back, of yesterday, or removed by their readers."""

from __future__ import annotations

from typing import Any

import pytest

from s3sink_job.engine.driver import Driver
from s3sink_job.engine.ledger import ADOPT
from s3sink_job.spec import parse
from tests.engine.harness import World, failure_of

STATE = ".s3sink/default/sink/state.json"


def stored(world: World) -> bytes:
    body: bytes = world.client().get_object(Bucket=world.bucket, Key=STATE)["Body"].read()
    return body


def put_back(world: World, body: bytes) -> None:
    world.client().put_object(Bucket=world.bucket, Key=STATE, Body=body)


@pytest.mark.parametrize("flushes", [1, 3])
def test_an_older_state_that_is_put_back_is_refused_and_nothing_is_written_twice(world: World, flushes: int) -> None:
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


def test_a_manifest_that_was_never_committed_is_no_sign_of_an_older_state(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver that dies between manifest and swap leaves one."""
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


def test_a_pod_with_the_manifest_of_yesterday_does_not_take_the_sink_over(world: World) -> None:
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


def test_a_resource_made_anew_or_a_run_by_hand_goes_on_and_an_older_one_can_be_adopted(world: World) -> None:
    world.kafka.create_topic(world.topic)
    resource(world, 7).step()

    resource(world, 1, created="2026-02-01T00:00:00Z").step()
    world.driver(run="Continuous").step()
    assert world.state()["resource"]["generation"] == 1
    assert failure_of(resource(world, 9).step).reason == "OlderResource"
    resource(world, 9, annotations={ADOPT: "local"}).step()

    assert world.state()["resource"] == {"uid": "u", "created": "2026-01-01T00:00:00Z", "generation": 9}


def test_what_readers_load_and_delete_is_not_written_again_by_the_next_driver(world: World) -> None:
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
