"""A sink from `kubectl apply` to its end: both modes, scaling, logins, states, and a run that completes."""

from __future__ import annotations

import time
from contextlib import nullcontext

import pytest

from e2e.kubernetes.install_check import MODES, copy_every_record_once
from e2e.kubernetes.packet_capture import captured
from e2e.kubernetes.world import PARTITIONS, SINK, World, executors
from tools.cluster import BareCluster
from tools.polling import until

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.mark.parametrize("mode", MODES)
def test_an_applied_sink_copies_every_record_once_and_reports_it(world: World, mode: str) -> None:
    copy_every_record_once(world, mode)


def test_executors_scale_to_zero_between_flushes(world: World) -> None:
    world.make_bucket()
    world.produce(4_000)
    world.apply(spark={"mode": "Cluster"})
    world.settle()
    until("executors to scale to zero", lambda: not world.namespace.pods(SINK, "executor"), 180)
    assert world.namespace.condition(SINK, "Ready")[0] == "True"
    world.produce(4_000)
    world.settle()
    world.prove()


def test_executors_log_in_and_their_traffic_is_encrypted(world: World) -> None:
    world.make_bucket()
    world.produce(4_000)
    secret, source = world.login()
    world.namespace.apply(secret)
    with captured() if isinstance(world.plant.cluster, BareCluster) else nullcontext() as capture:
        world.apply(spark=executors(), source=source)
        world.settle(300)
    world.prove()
    if capture is not None:
        # Without encryption these class names are in every task and message between Spark's processes.
        assert capture.size > 100_000
        assert not capture.holds(b"org.apache.spark.rdd")
        assert not capture.holds(b"org.apache.spark.scheduler")
        assert not capture.holds(world.plant.kafka.secure.password.encode())


def test_a_sink_is_paused_resumed_stopped_and_started(world: World) -> None:
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


def test_a_once_run_completes_and_keeps_its_last_status(world: World) -> None:
    world.make_bucket()
    world.produce(4_000)
    world.apply(run="Once")
    world.namespace.until_reason(SINK, "Ready", "Completed", 180)
    status = world.namespace.status(SINK)
    assert (status["phase"], status["flush"]["totalRecords"], status["lag"]["records"]) == ("Completed", 4_000, 0)
    assert len(status["offsets"]) == PARTITIONS
    world.prove()
