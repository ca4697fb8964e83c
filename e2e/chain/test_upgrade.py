"""From every release to the present one, with a sink that runs: nothing is lost on the way, and nothing comes twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from e2e.chain.release import Release, values
from e2e.chain.sinks import DEFINITION, until
from e2e.chain.world import SINK, Plant, World
from e2e.released import Published, published

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]
CRD = Path(__file__).parents[2] / "crds" / "s3sinks.s3sink.dev.yaml"


@pytest.fixture(params=published(), ids=lambda release: release.version)
def older(plant: Plant, request: pytest.FixtureRequest) -> Iterator[str]:
    """The operator and its definition are those of the release, whose image this is; afterwards the present ones."""
    release: Published = request.param
    image = plant.cluster.load_image(release.image().archive)
    plant.release.remove()
    plant.cluster.kubectl("delete", "customresourcedefinition", DEFINITION, "--timeout=120s")
    plant.release.install(values(image), chart=release.chart)
    yield image
    plant.release.upgrade(values(plant.image))


def test_an_upgrade_in_mid_flush_costs_nothing(older: str, world: World) -> None:
    operator = world.plant.release
    world.make_bucket()
    world.produce(4_000)
    world.apply()
    world.settle()
    assert image_of(world) == older
    epoch = world.namespace.status(SINK)["driver"]["epoch"]
    world.produce(4_000)
    with world.held():
        operator.upgrade(values(world.plant.image))
    until("a driver of the present version", lambda: image_of(world) == world.plant.image, 120)
    world.settle()
    world.prove()
    assert world.namespace.status(SINK)["driver"]["epoch"] == epoch + 1
    assert served(operator) == yaml.safe_load(CRD.read_text())["spec"]["versions"][0]["schema"]


def image_of(world: World) -> str:
    return str(world.driver()["spec"]["containers"][0]["image"])


def served(operator: Release) -> object:
    found = operator.cluster.kubectl("get", "customresourcedefinition", DEFINITION, "--output", "yaml")
    return yaml.safe_load(found)["spec"]["versions"][0]["schema"]
