"""A node with the image, the operator installed by its chart, and Kafka and an S3 server that pods can reach.

Tests use a cluster that is up already (`python -m tools.cluster up`), and the operator on it, and leave both up. So
several processes can share them (`python -m tools.e2e`); each has its own broker, S3 server and proxy.
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

from e2e.kubernetes.world import Plant, World
from tools.cluster import Cluster
from tools.cluster.interface import choose
from tools.cluster.namespace import Namespace
from tools.image.build import build_image
from tools.operator_harness.helm_release import INSTALLED, HelmRelease, installed
from tools.parts.class_archive import class_archive
from tools.parts.cli_process import CliProcess
from tools.parts.kafka import KafkaBroker
from tools.parts.processes import die_with_parent
from tools.parts.proxy import FaultProxy
from tools.parts.s3 import Versitygw
from tools.polling import until

_numbers = itertools.count(1)
ONE_SINK = ("test_faults.py", "test_lifecycle.py", "test_metrics.py", "test_outages.py")
"""Modules whose tests share a sink; tests of all others can go to any process."""


def pytest_configure(config: pytest.Config) -> None:
    # With this archive, which `make test` makes, `s3sink verify` starts in half of the CPU time.
    if (archive := class_archive()).exists():
        os.environ["S3SINK_CLASSES"] = str(archive)
    if hasattr(config, "workerinput"):
        # Otherwise the worker of a killed run would go on for a while, in the cluster of the next run.
        die_with_parent()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first, so that no process is left alone with one of them at the end."""
    items.sort(key=lambda item: item.path.name not in ONE_SINK)


class BySink(LoadScopeScheduling):
    """Keeps the tests of one sink in one process."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return file if file.endswith(ONE_SINK) else nodeid


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
    shared = os.environ.get(INSTALLED)
    reference = shared or node.load_image(build_image().archive)
    with (
        nullcontext(HelmRelease(node)) if shared else installed(node, reference) as release,
        KafkaBroker(host=node.node_ip, secure=True) as kafka,
        Versitygw(host=node.node_ip) as s3,
        FaultProxy(node.node_ip, s3.port, host=node.node_ip) as proxy,
        CliProcess(tmp_path_factory.mktemp("s3sink") / "log") as s3sink,
    ):
        uid = node.kubectl("get", "namespace", "kube-system", "--output", "jsonpath={.metadata.uid}")
        yield Plant(node, release, kafka, s3, proxy, s3sink, reference, uid)


@contextmanager
def made_world(plant: Plant, folder: Path) -> Iterator[World]:
    number = f"{os.getpid()}-{next(_numbers)}"
    namespace = Namespace(plant.cluster, f"chain-{number}")
    plant.cluster.kubectl("create", "namespace", namespace.name)
    plant.cluster.kubectl("label", "namespace", namespace.name, "pod-security.kubernetes.io/enforce=restricted")
    until("the namespace's ServiceAccount", lambda: namespace.get("serviceaccount", "default"))
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
    """A second one, for what happens to all sinks of a cluster at once."""
    with made_world(plant, tmp_path_factory.mktemp("neighbour")) as made:
        yield made


@pytest.fixture(scope="module")
def shared(plant: Plant, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One for all tests of a module, because each start of Spark takes most of a minute."""
    with made_world(plant, tmp_path_factory.mktemp("shared")) as made:
        made.make_bucket()
        yield made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and report.when == "call":
        worlds = [one for one in getattr(item, "funcargs", {}).values() if isinstance(one, World)]
        report.sections += [("State of the sink", one.story()) for one in worlds]
    return report
