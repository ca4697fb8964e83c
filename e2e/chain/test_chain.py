from __future__ import annotations

import time
from contextlib import nullcontext

import pytest

from e2e.chain.listening import listening
from e2e.chain.moving import MODES, move_every_record_once
from e2e.chain.sinks import until
from e2e.chain.world import PARTITIONS, SINK, World, executors
from e2e.cluster import BareCluster

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.mark.parametrize("mode", MODES)
def test_applied_it_moves_every_record_once_and_says_so(world: World, mode: str) -> None:
    move_every_record_once(world, mode)


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


def test_executors_log_in_by_themselves_and_nobody_can_listen(world: World) -> None:
    world.make_bucket()
    world.produce(4_000)
    secret, source = world.login()
    world.namespace.apply(secret)
    with listening() if isinstance(world.plant.cluster, BareCluster) else nullcontext() as heard:
        world.apply(spark=executors(), source=source)
        world.settle(300)
    world.prove()
    if heard is not None:
        # Class names are in every task and every message between Spark's processes.
        assert heard.size > 100_000
        assert not heard.holds(b"org.apache.spark.rdd")
        assert not heard.holds(b"org.apache.spark.scheduler")
        assert not heard.holds(world.plant.kafka.secure.password.encode())


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
