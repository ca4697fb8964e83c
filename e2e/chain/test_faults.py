"""Pods that go in mid-flush, each in another way: every record is in the bucket once, and the sink goes on.

One sink with two executors goes through all of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest

from e2e.chain.sinks import until
from e2e.chain.world import SINK, World, executors
from e2e.cluster import Cluster, ClusterFailed

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]
EXECUTORS = 2
# Processes that are smaller than the executor's, so that the kernel chooses that one.
HUNGRY = """
import os, time
for _ in range(40):
    if os.fork() == 0:
        held = bytearray(64 << 20)
        time.sleep(60)
time.sleep(60)
"""


@pytest.fixture
def world(shared: World) -> World:
    """In good health, with records that the next flush takes."""
    if shared.produced == 0:
        shared.apply(spark=executors(instances=EXECUTORS))
    shared.namespace.until_ready(SINK, 180)
    shared.settle()
    until("executors", lambda: len(running(shared)) == EXECUTORS, 120)
    shared.produce(8_000)
    return shared


def running(world: World) -> dict[str, str]:
    """Executors with their uids."""
    pods = world.namespace.pods(SINK, "executor")
    return {p["metadata"]["name"]: p["metadata"]["uid"] for p in pods if p["status"]["phase"] == "Running"}


@pytest.mark.parametrize("how", ["--grace-period=1", "--force --grace-period=0"])
def test_a_driver_deleted_in_mid_flush_costs_nothing(world: World, how: str) -> None:
    epoch = world.namespace.status(SINK)["driver"]["epoch"]
    with world.held():
        world.end(world.driver()["metadata"]["name"], *how.split())
    world.settle()
    world.prove()
    assert world.namespace.status(SINK)["driver"]["epoch"] > epoch


def test_executors_deleted_in_mid_flush_cost_nothing(world: World) -> None:
    with world.held():
        before = running(world)
        for name in before:
            world.end(name)
    world.settle()
    world.prove()
    after = until("other executors", lambda: running(world))
    assert not set(after.values()) & set(before.values())


def test_an_executor_out_of_memory_in_mid_flush_costs_nothing(world: World) -> None:
    driver = world.driver()["metadata"]["uid"]
    with world.held(), ThreadPoolExecutor() as pool:
        name = min(running(world))
        reason = "{.status.containerStatuses[0].state.terminated.reason}"
        # Spark deletes the pod a moment later.
        seen = pool.submit(
            world.namespace.kubectl, "wait", f"pod/{name}", f"--for=jsonpath={reason}=OOMKilled", "--timeout=90s"
        )
        with suppress(ClusterFailed):
            world.namespace.kubectl("exec", name, "--", "python", "-c", HUNGRY)
        assert "condition met" in seen.result()
    world.settle()
    world.prove()
    assert world.driver()["metadata"]["uid"] == driver


def test_a_node_drained_in_mid_flush_is_named_and_costs_nothing(world: World) -> None:
    before = {world.driver()["metadata"]["uid"], *running(world).values()}
    with drained(world.plant.cluster, held=world):
        message = world.namespace.until_reason(SINK, "Ready", "FailedScheduling", 60)
        assert "unschedulable" in message
        assert world.namespace.status(SINK)["phase"] == "Pending"
        assert not world.namespace.running(SINK)
    world.settle(240)
    world.prove()
    assert not before & {world.driver()["metadata"]["uid"], *running(world).values()}


@contextmanager
def drained(cluster: Cluster, held: World) -> Iterator[None]:
    """The one node, in mid-flush; the operator tolerates it and comes back, as it would on another node."""
    (node,) = cluster.kubectl("get", "nodes", "--output", "name").split()
    flags = ["--force", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=120s"]
    try:
        with held.held():
            cluster.kubectl("drain", node, *flags)
        yield
    finally:
        cluster.kubectl("uncordon", node)
