"""A real control plane with prometheus-operator's definitions. Ours comes with the chart."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.apiserver.conftest import _NOT_BUILT, pytest_collection_finish
from tools.cluster import BareCluster, ClusterFailed
from tools.cluster.client import Client
from tools.parts.prometheus import monitoring_definitions

__all__ = ["pytest_collection_finish"]


@pytest.fixture(scope="package")
def cluster(request: pytest.FixtureRequest) -> Iterator[BareCluster]:
    failure: ClusterFailed | None = request.config.stash.get(_NOT_BUILT, None)
    if failure:
        raise failure
    with BareCluster("control") as made:
        made.kubectl("create", "-f", str(monitoring_definitions()))
        made.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        yield made


@pytest.fixture(scope="package")
def api(cluster: BareCluster) -> Iterator[Client]:
    made = Client.of(cluster.kubeconfig)
    yield made
    made.close()
