"""The chart as the docs install it: for the whole cluster, and for one namespace."""

from __future__ import annotations

from dataclasses import replace

import pytest

from e2e.chain.release import Release, values
from e2e.chain.world import SINK, Plant, World

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]
CLUSTER = "prod-eu"


def test_its_own_test_passes(plant: Plant) -> None:
    assert "Phase:          Succeeded" in plant.release.test()
    assert not plant.release.home.get("pod", "s3sink-operator-test")


def test_an_operator_for_one_namespace_moves_every_record_and_leaves_nothing(world: World) -> None:
    world.plant = replace(world.plant, cluster_id=CLUSTER)
    world.make_bucket()
    world.produce(4_000)
    here = world.namespace.name
    release = Release(world.plant.cluster, f"{here}-operator")
    only = {"watch": {"namespaces": [here]}, "clusterId": CLUSTER, "crds": {"install": False}}
    with world.plant.release.away():
        release.install(values(world.plant.image) | only)
        assert "Phase:          Succeeded" in release.test()
        world.apply()
        world.settle()
        world.prove()
        account = f"system:serviceaccount:{release.namespace}:s3sink-operator"
        may = world.plant.cluster.kubectl("auth", "can-i", "--list", f"--as={account}", "--namespace=default")
        assert "s3sinks" not in may
        world.namespace.kubectl("delete", "s3sink", SINK, "--timeout=60s")
        release.remove()
        assert not world.namespace.kubectl("get", "roles,rolebindings", "--output", "name").split()
