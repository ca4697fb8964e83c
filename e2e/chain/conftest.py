"""The node, the image, the operator from its chart, and Kafka and an S3 server that pods can reach.

A cluster that is up already (`python -m e2e.cluster up`) is used and left up, and so is a release of the chart on it.
So several processes can share them (`python -m e2e.chain`); each has a broker, a store and a proxy of its own.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from e2e.chain.release import STANDING, Release, standing
from e2e.chain.sinks import Namespace, until
from e2e.chain.world import Plant, World
from e2e.cluster import Cluster
from e2e.cluster.interface import choose
from e2e.image.build import build_image
from e2e.parts.classes import class_archive
from e2e.parts.commands import Commands
from e2e.parts.kafka import KafkaBroker
from e2e.parts.processes import die_with_parent
from e2e.parts.proxy import FaultProxy
from e2e.parts.s3 import Versitygw

_numbers = itertools.count(1)
_ONE_SINK = ("test_faults.py", "test_lifecycle.py", "test_metrics.py", "test_outages.py")
"""Modules whose tests share a sink; those of all others can be shared out one by one."""


def pytest_configure(config: pytest.Config) -> None:
    # Proofs start with half of the CPU time where `make test` has seen to it.
    if (archive := class_archive()).exists():
        os.environ["S3SINK_CLASSES"] = str(archive)
    if hasattr(config, "workerinput"):
        # A worker whose run was killed would go on for a while, and in the cluster of the next run.
        die_with_parent()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Clusters before there is one. Then the longest, so that no process is left alone with one of them at the end."""
    items.sort(key=lambda item: (item.path.parent.name != "cluster", item.path.name not in _ONE_SINK))


class BySink(LoadScopeScheduling):
    """Where several processes share the tests, those of a sink stay together."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return file if file.endswith(_ONE_SINK) else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> BySink:
    config.option.loadscopereorder = False
    return BySink(config, log)


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
    shared = os.environ.get(STANDING)
    reference = shared or node.load_image(build_image().archive)
    with (
        nullcontext(Release(node)) if shared else standing(node, reference) as release,
        KafkaBroker(host=node.node_ip, secure=True) as kafka,
        Versitygw(host=node.node_ip) as s3,
        FaultProxy(node.node_ip, s3.port, host=node.node_ip) as proxy,
        Commands(tmp_path_factory.mktemp("s3sink") / "log") as s3sink,
    ):
        uid = node.kubectl("get", "namespace", "kube-system", "--output", "jsonpath={.metadata.uid}")
        yield Plant(node, release, kafka, s3, proxy, s3sink, reference, uid)


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
