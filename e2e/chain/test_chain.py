from __future__ import annotations

import json
import time
from typing import Any

import pytest

from e2e.chain.sinks import SYSTEM, until
from e2e.chain.world import PARTITIONS, SINK, World

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]
MODES = pytest.mark.parametrize("mode", ["Local", "Cluster"])


def spark(mode: str, **executor: Any) -> dict[str, Any]:
    # Executors that stay, where a test must find them between two flushes.
    return {"mode": mode, "executor": {"scaleToZero": False, **executor}}


def told(world: World, *question: str) -> str:
    """What kubectl answers, shown as people would see it: `pytest -s` makes a transcript of it."""
    answer = world.namespace.kubectl(*question)
    print(f"\n$ kubectl {' '.join(question)}\n{answer}")
    return answer


@MODES
def test_applied_it_moves_every_record_once_and_says_so(world: World, mode: str) -> None:
    world.make_bucket()
    world.produce(20_000)
    world.apply(spark=spark(mode))
    world.settle(20_000)
    world.produce(4_000)
    world.settle(24_000)
    world.prove()
    status = world.namespace.status(SINK)
    assert (status["phase"], status["flush"]["totalRecords"]) == ("Running", 24_000)
    header, row = told(world, "get", "s3s").splitlines()
    for question in (["get", "s3s", "--output", "wide"], ["get", "pods"], ["get", "events"], ["describe", "s3s", SINK]):
        told(world, *question)
    assert header.split() == ["NAME", "STATE", "READY", "LAG", "LAST", "FLUSH", "RETRIES", "RESTARTS", "AGE"]
    assert row.split()[:4] == [SINK, "Running", "True", "0"]
    driver = world.driver()
    if mode == "Cluster":
        executors = world.namespace.pods(SINK, "executor")
        assert len(executors) == 2
        for pod in executors:
            (owner,) = pod["metadata"]["ownerReferences"]
            assert owner["uid"] == driver["metadata"]["uid"]
            assert pod["spec"]["serviceAccountName"] == f"{SINK}-s3sink-executor"
            assert pod["spec"]["automountServiceAccountToken"] is False
            assert pod["spec"]["containers"][0]["resources"]["limits"]["memory"] in {"2Gi", "2048Mi"}
        assert status["executors"]["replicas"] == 2
    assert "finalizers" not in (world.namespace.get("s3sink", SINK) or {})["metadata"]
    secret = world.plant.s3.secret_key
    everything = world.namespace.kubectl("get", "s3sinks,configmaps,pods,events,deployments", "--output", "yaml")
    assert secret not in everything
    assert secret not in world.namespace.kubectl("logs", driver["metadata"]["name"])
    world.namespace.kubectl("delete", "s3sink", SINK, "--timeout=60s")
    until("nothing to be left", lambda: not world.namespace.left_behind(), 90)


@MODES
def test_a_driver_deleted_in_mid_flush_costs_nothing(world: World, mode: str) -> None:
    world.make_bucket()
    world.apply(spark=spark(mode))
    world.produce(20_000)
    with world.held():
        world.end(world.driver()["metadata"]["name"])
    world.settle(20_000)
    world.prove()
    assert world.namespace.status(SINK)["driver"]["epoch"] >= 2


def test_an_executor_deleted_in_mid_flush_costs_nothing(world: World) -> None:
    world.make_bucket()
    world.apply(spark=spark("Cluster"))
    world.produce(20_000)
    with world.held():
        before = until("executors", lambda: world.namespace.pods(SINK, "executor"))
        for pod in before:
            world.end(pod["metadata"]["name"])
    world.settle(20_000)
    world.prove()
    after = {pod["metadata"]["name"] for pod in world.namespace.pods(SINK, "executor")}
    assert after
    assert not after & {pod["metadata"]["name"] for pod in before}


def test_an_operator_deleted_in_mid_flush_costs_nothing(world: World) -> None:
    world.make_bucket()
    world.apply()
    world.produce(20_000)
    with world.held():
        driver = world.driver()["metadata"]["uid"]
        world.plant.cluster.kubectl("-n", SYSTEM, "delete", "pods", "--all", "--grace-period=1")
    world.settle(20_000)
    world.prove()
    assert world.driver()["metadata"]["uid"] == driver


def test_executors_go_between_flushes_and_come_back(world: World) -> None:
    world.make_bucket()
    world.produce(4_000)
    world.apply(spark={"mode": "Cluster"})
    world.settle(4_000)
    until("executors to go", lambda: not world.namespace.pods(SINK, "executor"), 180)
    assert world.namespace.condition(SINK, "Ready")[0] == "True"
    world.produce(4_000)
    world.settle(8_000)
    world.prove()


def test_paused_resumed_stopped_and_started(world: World) -> None:
    world.make_bucket()
    world.produce(2_000)
    world.apply()
    world.settle(2_000)
    world.namespace.patch(SINK, {"state": "Paused"})
    world.namespace.until_reason(SINK, "Ready", "Paused", 120)
    world.produce(2_000)
    time.sleep(8)
    assert world.committed() == 2_000
    until("the lag to show", lambda: world.namespace.status(SINK).get("lag", {}).get("records") == 2_000, 90, 1.0)
    world.namespace.patch(SINK, {"state": "Running"})
    world.settle(4_000)
    world.namespace.patch(SINK, {"state": "Stopped"})
    until("no pods", lambda: not world.namespace.objects("pods"), 60)
    world.namespace.until_reason(SINK, "Ready", "Stopped")
    world.produce(2_000)
    world.namespace.patch(SINK, {"state": "Running"})
    world.settle(6_000)
    world.prove()


def test_once_completes_and_keeps_its_last_words(world: World) -> None:
    world.make_bucket()
    world.produce(4_000)
    world.apply(run="Once")
    world.namespace.until_reason(SINK, "Ready", "Completed", 180)
    status = world.namespace.status(SINK)
    assert (status["phase"], status["flush"]["totalRecords"], status["lag"]["records"]) == ("Completed", 4_000, 0)
    assert len(status["offsets"]) == PARTITIONS
    world.prove()


def named_within_a_minute(world: World, reason: str) -> str:
    """A minute from when the driver is up; how long Spark takes to start is another matter."""
    pod = world.driver()["metadata"]["name"]

    def started() -> Any:
        found = world.namespace.get("pod", pod) or {}
        return [c for c in found.get("status", {}).get("containerStatuses", []) if c.get("ready")]

    until("the driver to be up", started, 120)
    return world.namespace.until_reason(SINK, "LastFlushSucceeded", reason, 60)


def test_a_missing_bucket_is_named_and_heals(world: World) -> None:
    world.produce(2_000)
    world.apply()
    assert world.bucket in named_within_a_minute(world, "BucketMissing")
    assert world.namespace.status(SINK)["phase"] == "Failed"
    world.make_bucket()
    world.settle(2_000)
    world.prove()


def test_a_wrong_secret_is_named_and_heals(world: World) -> None:
    world.make_bucket()
    world.produce(2_000)
    world.namespace.apply(world.secret(AWS_SECRET_ACCESS_KEY="wrong-secret-key"), world.sink())
    named_within_a_minute(world, "AccessDenied")
    assert "wrong-secret-key" not in json.dumps(world.namespace.status(SINK))
    world.namespace.apply(world.secret())
    # The kubelet takes up to a minute to renew mounted Secrets.
    world.settle(2_000, 240)
    world.prove()


def test_a_missing_secret_is_named_and_heals(world: World) -> None:
    world.make_bucket()
    world.produce(2_000)
    world.namespace.apply(world.sink())
    message = named_within_a_minute(world, "SecretMissing")
    assert "'s3'" in message
    world.namespace.apply(world.secret())
    world.settle(2_000, 240)
    world.prove()


def test_an_image_that_is_not_there_is_named(world: World) -> None:
    world.make_bucket()
    world.apply(spark={"image": "localhost/no-such-image:1"})
    assert "no-such-image" in world.namespace.until_reason(SINK, "Ready", "ImagePullBackOff", 60)
