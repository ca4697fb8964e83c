"""Upgrades from every release to this tree with running sinks: no record is lost or written twice."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from e2e.kubernetes.world import SINK, Plant, World
from tools.cluster.namespace import DEFINITION
from tools.operator_harness.helm_release import HelmRelease, values
from tools.polling import until
from tools.releases import FrozenRelease, frozen_releases

pytestmark = [pytest.mark.alone, pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(900)]
CRD = Path(__file__).parents[2] / "crds" / "s3sinks.s3sink.dev.yaml"
COLUMNS = {"type": "Parquet", "compression": {"codec": "Zstd"}}


@pytest.fixture(params=frozen_releases(), ids=lambda release: release.version)
def older(plant: Plant, request: pytest.FixtureRequest) -> Iterator[str]:
    """Installs an older release, and returns its image; afterwards the present one is installed again."""
    release: FrozenRelease = request.param
    image = plant.cluster.load_image(release.image().archive)
    plant.release.remove()
    plant.cluster.kubectl("delete", "customresourcedefinition", DEFINITION, "--timeout=120s")
    plant.release.install(values(image), chart=release.chart)
    yield image
    plant.release.upgrade(values(plant.image))


def test_an_upgrade_during_a_flush_loses_nothing(older: str, world: World, neighbour: World) -> None:
    """With a sink of lines, and one whose inferred columns are in the state that the release wrote."""
    operator, sinks = world.plant.release, [world, neighbour]
    for sink in sinks:
        sink.make_bucket()
        sink.produce(4_000, amount=0.5)
    world.apply()
    neighbour.apply(format=COLUMNS)
    for sink in sinks:
        sink.settle()
        assert image_of(sink) == older
    epochs = [epoch_of(sink) for sink in sinks]
    for sink in sinks:
        sink.produce(4_000, amount=1)
    with world.held():
        operator.upgrade(values(world.plant.image))
    for sink in sinks:
        until_it_runs(sink, world.plant.image)
        sink.settle()
        sink.produce(4_000, amount=2)
    for sink in sinks:
        sink.settle()
    world.prove()
    neighbour.prove(format=COLUMNS)
    # Without the columns in the state, whole numbers would be int64.
    assert types_of(neighbour, "amount") == {"double"}
    assert [epoch_of(sink) for sink in sinks] == [epoch + 1 for epoch in epochs]
    assert served(operator) == yaml.safe_load(CRD.read_text())["spec"]["versions"][0]["schema"]


def epoch_of(world: World) -> int:
    return int(world.namespace.status(SINK)["driver"]["epoch"])


def until_it_runs(world: World, image: str) -> None:
    until("a driver of the present version", lambda: image_of(world) == image, 120)


def image_of(world: World) -> str:
    return str(world.driver()["spec"]["containers"][0]["image"])


def types_of(world: World, column: str) -> set[str]:
    """The types of a column in all objects of a sink."""
    bodies = (world.client.get_object(Bucket=world.bucket, Key=key)["Body"].read() for key in world.objects())
    return {str(pq.read_schema(io.BytesIO(body)).field(column).type) for body in bodies}


def served(operator: HelmRelease) -> object:
    found = operator.cluster.kubectl("get", "customresourcedefinition", DEFINITION, "--output", "yaml")
    return yaml.safe_load(found)["spec"]["versions"][0]["schema"]
