"""The chart, installed as in the docs: for the whole cluster, and for one namespace."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from e2e.kubernetes.install_check import MODES, copy_every_record_once
from e2e.kubernetes.world import Plant, World
from tools.operator_harness.helm_release import HelmRelease, values

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]
CLUSTER = "prod-eu"


def test_helm_test_passes(plant: Plant) -> None:
    assert "Phase:          Succeeded" in plant.release.test()
    assert not plant.release.home.get("pod", "s3sink-operator-test")


@pytest.mark.alone
def test_operators_for_one_namespace_each_copy_every_record_and_leave_nothing(world: World, neighbour: World) -> None:
    """Two at once: one sink with a driver only, one with executors."""
    with world.plant.release.away(), ThreadPoolExecutor() as pool:
        list(pool.map(_by_an_operator_of_its_own, (world, neighbour), MODES))


def _by_an_operator_of_its_own(world: World, mode: str) -> None:
    world.plant = replace(world.plant, cluster_id=CLUSTER)
    here = world.namespace.name
    release = HelmRelease(world.plant.cluster, f"{here}-operator")
    only = {"watch": {"namespaces": [here]}, "clusterId": CLUSTER, "crds": {"install": False}}
    release.install(values(world.plant.image) | only)
    assert "Phase:          Succeeded" in release.test()
    copy_every_record_once(world, mode)
    account = f"system:serviceaccount:{release.namespace}:s3sink-operator"
    may = world.plant.cluster.kubectl("auth", "can-i", "--list", f"--as={account}", "--namespace=default")
    assert "s3sinks" not in may
    release.remove()
    assert not world.namespace.kubectl("get", "roles,rolebindings", "--output", "name").split()
