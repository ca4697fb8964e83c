"""Pods end during a flush, each in another way: every record is in the bucket once, and the sink goes on.

All tests use one sink with two executors.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from e2e.kubernetes.world import SINK, World
from tools.cluster import ClusterFailed
from tools.polling import until

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]
# Each process is smaller than the executor's, so that the kernel kills the executor.
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
def test_a_driver_deleted_during_a_flush_loses_nothing(world: World, how: str) -> None:
    epoch = world.namespace.status(SINK)["driver"]["epoch"]
    with world.held():
        world.end(world.driver()["metadata"]["name"], *how.split())
    world.settle()
    world.prove()
    assert world.namespace.status(SINK)["driver"]["epoch"] > epoch


def test_executors_deleted_during_a_flush_lose_nothing(world: World) -> None:
    with world.held():
        before = world.executors()
        for name in before:
            world.end(name)
    world.settle()
    world.prove()
    after = until("other executors", world.executors)
    assert not set(after.values()) & set(before.values())


def test_an_executor_out_of_memory_during_a_flush_loses_nothing(world: World) -> None:
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
