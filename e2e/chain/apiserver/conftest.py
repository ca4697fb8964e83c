from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from e2e.chain.apiserver.operating import Operator
from e2e.chain.sinks import OPERATOR, Namespace, install_definition, until
from e2e.cluster import BareCluster, Cluster

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with BareCluster("control") as made:
        install_definition(made)
        # All but its Deployment, since no node would run it.
        rights = [d for d in yaml.safe_load_all(OPERATOR.read_text()) if d["kind"] != "Deployment"]
        made.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(rights))
        yield made


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[Namespace]:
    made = Namespace(cluster, f"test-{next(_numbers)}")
    cluster.kubectl("create", "namespace", made.name)
    until("its account", lambda: made.get("serviceaccount", "default"))
    yield made
    cluster.kubectl("delete", "namespace", made.name, "--wait=false")


@pytest.fixture(scope="module")
def operator(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """One for all tests of a module; those that end it start it again."""
    made = Operator(cluster, tmp_path_factory.mktemp("operator"))
    made.start()
    yield made
    made.stop()


@pytest.fixture
def own_operator(cluster: Cluster, tmp_path: Path) -> Iterator[Operator]:
    made = Operator(cluster, tmp_path)
    yield made
    made.stop()
