"""One real control plane for all tests here: etcd, the API server and its controllers, with RBAC on, and no node."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tools.cluster import BareCluster, ClusterFailed, binaries
from tools.cluster.client import CRDS, NAMESPACES, Client, Document
from tools.polling import until

DEFINITION = Path(__file__).parents[2] / "crds" / "s3sinks.s3sink.dev.yaml"
_NOT_BUILT = pytest.StashKey[ClusterFailed]()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Builds Kubernetes where it is not built yet: it takes longer than any test may, and people want to see it."""
    if session.config.option.collectonly or not any("cluster" in _fixtures(item) for item in session.items):
        return
    with session.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        try:
            binaries.kubernetes_dir()
        except ClusterFailed as failure:
            session.config.stash[_NOT_BUILT] = failure


def _fixtures(item: pytest.Item) -> list[str]:
    return getattr(item, "fixturenames", [])


@pytest.fixture(scope="package")
def cluster(request: pytest.FixtureRequest) -> Iterator[BareCluster]:
    """The control plane with our definition; an error where it cannot be had, never a skip."""
    if failure := request.config.stash.get(_NOT_BUILT, None):
        raise failure
    with BareCluster("control") as made:
        administrator = Client.of(made.kubeconfig)
        install(administrator, yaml.safe_load(DEFINITION.read_text()))
        administrator.close()
        yield made


@pytest.fixture(scope="package")
def api(cluster: BareCluster) -> Iterator[Client]:
    """The administrator's connection."""
    made = Client.of(cluster.kubeconfig)
    yield made
    made.close()


@pytest.fixture
def namespace(api: Client) -> Iterator[str]:
    """A fresh namespace; the controllers empty it in their own time afterwards."""
    name = f"test-{secrets.token_hex(4)}"
    api.post(NAMESPACES, {"metadata": {"name": name}})
    yield name
    api.delete(f"{NAMESPACES}/{name}")


def install(api: Client, definition: Document) -> None:
    """Applies a CustomResourceDefinition and waits until it is served."""
    path = f"{CRDS}/{definition['metadata']['name']}"
    api.patch(path, definition, "apply", fieldManager="tests", force="true")
    until("the definition to be served", lambda: _established(api.get(path)), seconds=30, every=0.05)


def _established(definition: Document) -> bool:
    conditions = definition.get("status", {}).get("conditions") or []
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)
