"""Argo CD's own code on a real API server that has our definition, and Argo CD's settings with our part in them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from deploy.generate import ARGOCD
from tests.apiserver.conftest import api, cluster, namespace
from tests.apiserver.conftest import pytest_collection_finish as build_kubernetes
from tests.apiserver.operator.conftest import busy_operator, granted, node
from tests.argocd.git import Git
from tools.argocd.program import NAMESPACE, ArgoCD, Way, argocd_dir
from tools.cluster import BareCluster
from tools.cluster.client import Client
from tools.parts.processes import PartFailed

__all__ = ["api", "busy_operator", "cluster", "granted", "namespace", "node"]

OTHERS = {"url": "https://argocd.example.com", "resource.customizations.health.batch_Job": "return {}\n"}
SETTINGS = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "argocd-cm", "labels": {"app.kubernetes.io/part-of": "argocd"}},
    "data": OTHERS,
}
_NOT_BUILT = pytest.StashKey[PartFailed]()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Builds where it is not built yet: it takes longer than a test may."""
    build_kubernetes(session)
    asking = (item for item in session.items if "argocd" in getattr(item, "fixturenames", ()))
    if session.config.option.collectonly or next(asking, None) is None:
        return
    with session.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        try:
            argocd_dir()
        except PartFailed as failure:
            session.config.stash[_NOT_BUILT] = failure


@pytest.fixture(scope="package")
def settings(cluster: BareCluster) -> None:
    """Those of a person who had some already, and followed docs/argocd.md."""
    cluster.kubectl("create", "namespace", NAMESPACE)
    cluster.kubectl("apply", "--namespace", NAMESPACE, "-f", "-", stdin=yaml.safe_dump(SETTINGS))
    patch = str(ARGOCD / "argocd-cm.yaml")
    cluster.kubectl("patch", "configmap", "argocd-cm", "--namespace", NAMESPACE, "--patch-file", patch)


@pytest.fixture(scope="package")
def argocd(request: pytest.FixtureRequest, cluster: BareCluster, settings: None) -> Iterator[ArgoCD]:
    """An error where it cannot be had, never a skip."""
    if failure := request.config.stash.get(_NOT_BUILT, None):
        raise failure
    with ArgoCD(cluster.kubeconfig) as made:
        yield made


@pytest.fixture
def git(argocd: ArgoCD, api: Client, namespace: str, way: Way) -> Git:
    return Git(argocd, api, namespace, way)
