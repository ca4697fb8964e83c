"""The operator as a process with the rights of its ServiceAccount, on the API server of these tests."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.apiserver.operator.drivers import PORT
from tests.apiserver.operator.namespaces import Neighbour, SinkNamespace, sink
from tools.cluster import BareCluster
from tools.cluster.client import NAMESPACES, Client
from tools.operator_harness import FakeNode, Operator, grant
from tools.polling import until

QUICK = ("--poll-interval", "1", "--stale-after", "4")
"""Short intervals, so that tests need not wait."""


@pytest.fixture(scope="package")
def granted(cluster: BareCluster) -> BareCluster:
    grant(cluster)
    return cluster


@pytest.fixture(scope="module")
def new_namespace(granted: BareCluster, api: Client) -> Iterator[Callable[[], SinkNamespace]]:
    """Creates namespaces for the time of the module."""
    made: list[SinkNamespace] = []

    def make() -> SinkNamespace:
        made.append(SinkNamespace(granted, f"test-{secrets.token_hex(4)}", api))
        api.post(NAMESPACES, {"metadata": {"name": made[-1].name}})
        until("its account", lambda: made[-1].get("serviceaccount", "default"), every=0.05)
        return made[-1]

    yield make
    for shop in made:
        shop.remove()


@pytest.fixture
def namespace(granted: BareCluster, api: Client, namespace: str) -> SinkNamespace:
    made = SinkNamespace(granted, namespace, api)
    until("its account", lambda: made.get("serviceaccount", "default"), every=0.05)
    return made


@pytest.fixture(scope="module")
def operator(granted: BareCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """One for all tests of a module, whose drivers are those of `drivers.py`; tests that end it start their own."""
    made = Operator(granted, tmp_path_factory.mktemp("operator"), *QUICK, "--driver-port", str(PORT))
    made.start()
    yield made
    made.stop()


@pytest.fixture
def own_operator(namespace: SinkNamespace, tmp_path: Path) -> Iterator[Operator]:
    """For this test and its namespace alone; started by the test."""
    flags = (*QUICK, "--driver-port", str(PORT), "--namespaces", namespace.name)
    made = Operator(namespace.cluster, tmp_path, *flags)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def node(granted: BareCluster) -> Iterator[FakeNode]:
    """Starts every pod, and answers for every driver."""
    with FakeNode(granted.kubeconfig) as made:
        yield made


@pytest.fixture(scope="module")
def busy_operator(granted: BareCluster, node: FakeNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """One for all tests of a module, whose drivers are those of `node`."""
    made = Operator(granted, tmp_path_factory.mktemp("operator"), *QUICK, "--driver-port", str(node.port))
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def neighbour(new_namespace: Callable[[], SinkNamespace]) -> Neighbour:
    """A healthy sink in its own namespace, which must stay healthy."""
    shop = new_namespace()
    shop.apply(sink("neighbour"))
    return Neighbour(shop)
