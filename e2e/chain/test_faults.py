"""Pods that go in mid-flush, each in another way: every record is in the bucket once, and the sink goes on.

One sink with two executors goes through all of it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from e2e.chain.sinks import until
from e2e.chain.world import SINK, World
from e2e.cluster import ClusterFailed

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]
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
    shared.flow(8_000, instances=2)
    return shared


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
        before = world.executors()
        for name in before:
            world.end(name)
    world.settle()
    world.prove()
    after = until("other executors", world.executors)
    assert not set(after.values()) & set(before.values())


def test_an_executor_out_of_memory_in_mid_flush_costs_nothing(world: World) -> None:
    driver = world.driver()["metadata"]["uid"]
    with world.held(), ThreadPoolExecutor() as pool:
        name = min(world.executors())
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
