"""The node, the image, the operator from its chart, and Kafka and an S3 server that pods can reach.

A cluster that is up already (`python -m e2e.cluster up`) is used and left up, and so is a release of the chart on it.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e.chain.release import Release, values
from e2e.chain.sinks import DEFINITION, Namespace, until
from e2e.chain.world import Plant, World
from e2e.cluster import Cluster
from e2e.cluster.interface import choose
from e2e.image.build import build_image
from e2e.parts.commands import Commands
from e2e.parts.kafka import KafkaBroker
from e2e.parts.proxy import FaultProxy
from e2e.parts.s3 import Versitygw

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def node() -> Iterator[Cluster]:
    cluster = choose()
    if cluster.is_up:
        yield cluster
        return
    with cluster:
        yield cluster


@pytest.fixture(scope="session")
def plant(node: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plant]:
    reference = node.load_image(build_image().archive)
    release = Release(node)
    # One that stands already may look after other people's sinks: it gets this image, and stays.
    stays = release.there
    print(release.upgrade(values(reference)) if stays else release.install(values(reference)))
    with (
        KafkaBroker(host=node.node_ip) as kafka,
        Versitygw(host=node.node_ip) as s3,
        FaultProxy(node.node_ip, s3.port, host=node.node_ip) as proxy,
        Commands(tmp_path_factory.mktemp("s3sink") / "log") as s3sink,
    ):
        uid = node.kubectl("get", "namespace", "kube-system", "--output", "jsonpath={.metadata.uid}")
        yield Plant(node, release, kafka, s3, proxy, s3sink, reference, uid)
    if stays:
        return
    node.kubectl("delete", "s3sinks", "--all", "--all-namespaces", "--timeout=120s")
    release.remove()
    node.kubectl("delete", "customresourcedefinition", DEFINITION, "--timeout=120s")


@contextmanager
def made_world(plant: Plant, folder: Path) -> Iterator[World]:
    number = f"{os.getpid()}-{next(_numbers)}"
    namespace = Namespace(plant.cluster, f"chain-{number}")
    plant.cluster.kubectl("create", "namespace", namespace.name)
    plant.cluster.kubectl("label", "namespace", namespace.name, "pod-security.kubernetes.io/enforce=restricted")
    until("its account", lambda: namespace.get("serviceaccount", "default"))
    plant.proxy.clear()
    try:
        yield World(plant, namespace, f"lake-{number}", f"orders-{number}", folder)
    finally:
        plant.proxy.clear()
        plant.cluster.kubectl("delete", "namespace", namespace.name, "--wait=false", "--ignore-not-found")


@pytest.fixture
def world(plant: Plant, tmp_path: Path) -> Iterator[World]:
    with made_world(plant, tmp_path) as made:
        yield made


@pytest.fixture
def neighbour(plant: Plant, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Another one beside `world`, for what happens to all sinks of a cluster at once."""
    with made_world(plant, tmp_path_factory.mktemp("neighbour")) as made:
        yield made


@pytest.fixture(scope="module")
def shared(plant: Plant, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """For all tests of a module: each start of Spark takes a good part of a minute."""
    with made_world(plant, tmp_path_factory.mktemp("shared")) as made:
        made.make_bucket()
        yield made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and report.when == "call":
        worlds = [one for one in getattr(item, "funcargs", {}).values() if isinstance(one, World)]
        report.sections += [("What a person would look at first", one.story()) for one in worlds]
    return report
