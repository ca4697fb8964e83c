from __future__ import annotations

import time

import pytest

from e2e.chain.sinks import until
from e2e.chain.world import PARTITIONS, SINK, World, executors

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]
MODES = pytest.mark.parametrize("mode", ["Local", "Cluster"])


def told(world: World, *question: str) -> str:
    """What kubectl answers, shown as people would see it: `pytest -s` makes a transcript of it."""
    answer = world.namespace.kubectl(*question)
    print(f"\n$ kubectl {' '.join(question)}\n{answer}")
    return answer


@MODES
def test_applied_it_moves_every_record_once_and_says_so(world: World, mode: str) -> None:
    world.make_bucket()
    world.produce(20_000)
    world.apply(spark=executors() if mode == "Cluster" else {})
    world.settle()
    world.produce(4_000)
    world.settle()
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
        pods = world.namespace.pods(SINK, "executor")
        assert len(pods) == 2
        for pod in pods:
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


def test_executors_go_between_flushes_and_come_back(world: World) -> None:
    world.make_bucket()
    world.produce(4_000)
    world.apply(spark={"mode": "Cluster"})
    world.settle()
    until("executors to go", lambda: not world.namespace.pods(SINK, "executor"), 180)
    assert world.namespace.condition(SINK, "Ready")[0] == "True"
    world.produce(4_000)
    world.settle()
    world.prove()


def test_paused_resumed_stopped_and_started(world: World) -> None:
    world.make_bucket()
    world.produce(2_000)
    world.apply()
    world.settle()
    world.namespace.patch(SINK, {"state": "Paused"})
    world.namespace.until_reason(SINK, "Ready", "Paused", 120)
    world.produce(2_000)
    time.sleep(8)
    assert world.committed() == 2_000
    until("the lag to show", lambda: world.namespace.status(SINK).get("lag", {}).get("records") == 2_000, 90, 1.0)
    world.namespace.patch(SINK, {"state": "Running"})
    world.settle()
    world.namespace.patch(SINK, {"state": "Stopped"})
    until("no pods", lambda: not world.namespace.objects("pods"), 60)
    world.namespace.until_reason(SINK, "Ready", "Stopped")
    world.produce(2_000)
    world.namespace.patch(SINK, {"state": "Running"})
    world.settle()
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
