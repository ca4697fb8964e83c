"""From every release to the present one, with sinks that run: nothing is lost on the way, and nothing comes twice."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from e2e.chain.release import Release, values
from e2e.chain.sinks import DEFINITION, until
from e2e.chain.world import SINK, Plant, World
from e2e.released import Published, published

pytestmark = [pytest.mark.alone, pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(900)]
CRD = Path(__file__).parents[2] / "crds" / "s3sinks.s3sink.dev.yaml"
COLUMNS = {"type": "Parquet", "compression": {"codec": "Zstd"}}


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


def test_an_upgrade_in_mid_flush_costs_nothing(older: str, world: World, neighbour: World) -> None:
    """Of a sink of lines, and of one whose columns were inferred by the release and lie in its state."""
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
    # Whole numbers alone would be int64 to a sink that knows nothing of the ones before.
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
    """As the objects have them that a sink wrote, all of them."""
    bodies = (world.client.get_object(Bucket=world.bucket, Key=key)["Body"].read() for key in world.objects())
    return {str(pq.read_schema(io.BytesIO(body)).field(column).type) for body in bodies}


def served(operator: Release) -> object:
    found = operator.cluster.kubectl("get", "customresourcedefinition", DEFINITION, "--output", "yaml")
    return yaml.safe_load(found)["spec"]["versions"][0]["schema"]
