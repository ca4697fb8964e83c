"""Outages for all sinks of a cluster: the operator is gone, the node is drained. One sink with two executors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from e2e.kubernetes.world import SINK, World
from tools.cluster import Cluster
from tools.polling import until

pytestmark = [pytest.mark.alone, pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def world(shared: World) -> World:
    shared.flow(8_000, instances=2)
    return shared


def test_an_operator_deleted_during_a_flush_loses_nothing(world: World) -> None:
    driver = world.driver()["metadata"]["uid"]
    with world.held():
        world.plant.release.home.kubectl("delete", "pods", "--all", "--grace-period=1")
    world.settle()
    assert world.driver()["metadata"]["uid"] == driver


def test_without_an_operator_records_flow_and_the_status_catches_up(world: World) -> None:
    world.settle()
    until_reported(world)
    driver, before = world.driver()["metadata"]["uid"], world.produced
    with world.plant.release.away():
        world.produce(4_000)
        world.arrive()
        assert total(world) == before
    world.settle()
    until_reported(world)
    world.prove()
    assert world.driver()["metadata"]["uid"] == driver


def test_a_node_drained_during_a_flush_is_reported_and_loses_nothing(world: World) -> None:
    before = {world.driver()["metadata"]["uid"], *world.executors().values()}
    with drained(world.plant.cluster, held=world):
        message = world.namespace.until_reason(SINK, "Ready", "FailedScheduling", 60)
        assert "unschedulable" in message
        assert world.namespace.status(SINK)["phase"] == "Pending"
        assert not world.namespace.running(SINK)
    world.settle(240)
    world.prove()
    assert not before & {world.driver()["metadata"]["uid"], *world.executors().values()}


def until_reported(world: World) -> None:
    """Waits for the figures, which come a little later than the conditions."""
    until("the figures", lambda: total(world) == world.produced, 60)


def total(world: World) -> int:
    return int(world.namespace.status(SINK)["flush"]["totalRecords"])


@contextmanager
def drained(cluster: Cluster, held: World) -> Iterator[None]:
    """Drains the only node during a flush; the operator tolerates that and restarts, as it would on another node."""
    (node,) = cluster.kubectl("get", "nodes", "--output", "name").split()
    flags = ["--force", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=120s"]
    try:
        with held.held():
            cluster.kubectl("drain", node, *flags)
        yield
    finally:
        cluster.kubectl("uncordon", node)
