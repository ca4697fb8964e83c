"""The Applications that people start from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from deploy.generate import ARGOCD, ROOT
from tests.apiserver.conftest import install
from tools.argocd.program import ArgoCD, applications
from tools.cluster import BareCluster
from tools.cluster.client import Client

FILE = ARGOCD / "application.yaml"
OPERATOR, SINKS = yaml.safe_load_all(FILE.read_text())


def _paths(values: dict[str, Any], at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in values.items():
        yield from _paths(value, (*at, name)) if isinstance(value, dict) else [(*at, name)]


def test_the_chart_is_there_and_knows_the_values() -> None:
    source = OPERATOR["spec"]["source"]
    known = set(_paths(yaml.safe_load((ROOT / source["path"] / "values.yaml").read_text())))
    assert set(_paths(source["helm"]["valuesObject"])) <= known


def test_its_label_is_that_of_the_release() -> None:
    """Argo CD names a release after its Application; with another name it would fight over the label `instance`."""
    assert "releaseName" not in OPERATOR["spec"]["source"]["helm"]


def test_sinks_wait_for_their_definition() -> None:
    assert SINKS["spec"]["syncPolicy"]["retry"]["limit"] > 5


def test_argo_cd_takes_them(cluster: BareCluster, api: Client, argocd: ArgoCD) -> None:
    install(api, yaml.safe_load(applications().read_text()))
    cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", str(FILE))
