"""The operator as a process with the rights of its ServiceAccount, on the API server of these tests."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from e2e.chain.sinks import until
from e2e.cluster import BareCluster
from e2e.cluster.client import NAMESPACES, Client
from e2e.standin import Operator, StandInNode, grant
from tests.apiserver.operator.drivers import PORT
from tests.apiserver.operator.places import Neighbour, Place, sink

QUICK = ("--poll-interval", "1", "--stale-after", "4")
"""So that tests need not wait as long as people do."""


@pytest.fixture(scope="package")
def granted(cluster: BareCluster) -> BareCluster:
    grant(cluster)
    return cluster


@pytest.fixture(scope="module")
def new_place(granted: BareCluster, api: Client) -> Iterator[Callable[[], Place]]:
    """Makes namespaces that last as long as the module."""
    made: list[Place] = []

    def make() -> Place:
        made.append(Place(granted, f"test-{secrets.token_hex(4)}", api))
        api.post(NAMESPACES, {"metadata": {"name": made[-1].name}})
        until("its account", lambda: made[-1].get("serviceaccount", "default"), every=0.05)
        return made[-1]

    yield make
    for place in made:
        place.remove()


@pytest.fixture
def namespace(granted: BareCluster, api: Client, namespace: str) -> Place:
    made = Place(granted, namespace, api)
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
def own_operator(namespace: Place, tmp_path: Path) -> Iterator[Operator]:
    """For this test and its namespace alone; started by the test."""
    flags = (*QUICK, "--driver-port", str(PORT), "--namespaces", namespace.name)
    made = Operator(namespace.cluster, tmp_path, *flags)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def node(granted: BareCluster) -> Iterator[StandInNode]:
    """Starts every pod, and answers for every driver."""
    with StandInNode(granted.kubeconfig) as made:
        yield made


@pytest.fixture(scope="module")
def busy_operator(
    granted: BareCluster, node: StandInNode, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    """One for all tests of a module, whose drivers are those of `node`."""
    made = Operator(granted, tmp_path_factory.mktemp("operator"), *QUICK, "--driver-port", str(node.port))
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def neighbour(new_place: Callable[[], Place]) -> Neighbour:
    """A sink in a namespace of its own that is well, and must stay so."""
    place = new_place()
    place.apply(sink("neighbour"))
    return Neighbour(place)
