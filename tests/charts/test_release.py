"""Helm installs, upgrades and uninstalls the chart on a real API server."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.operator.samples import SPEC
from tools.cluster import BareCluster
from tools.cluster.client import CRDS, NAMESPACES, Client, sinks
from tools.operator_harness import Operator
from tools.parts.helm import CHART, helm
from tools.parts.processes import PartFailed
from tools.polling import until
from tools.product_version import product_version

SYSTEM = "s3sink-release"
DEFINITION = f"{CRDS}/s3sinks.s3sink.dev"
SINK: dict[str, Any] = {
    "apiVersion": "s3sink.dev/v1alpha1",
    "kind": "S3Sink",
    "metadata": {"name": "orders"},
    "spec": SPEC,
}
LARGEST_SECRET = 1 << 20


@dataclass(frozen=True)
class Release:
    cluster: BareCluster
    api: Client

    def helm(self, verb: str, *arguments: str, values: dict[str, Any] | None = None) -> str:
        place = ["--kubeconfig", str(self.cluster.kubeconfig), "--namespace", SYSTEM]
        return helm(verb, "s3sink-operator", *arguments, *place, values=values)

    def install(self, *flags: str, chart: Path = CHART, values: dict[str, Any] | None = None) -> str:
        said = self.helm("install", str(chart), "--create-namespace", *flags, values=values)
        self.until_served()
        return said

    def upgrade(self, *flags: str, values: dict[str, Any] | None = None) -> str:
        return self.helm("upgrade", str(CHART), *flags, values=values)

    def until_served(self) -> None:
        until("S3Sink to be served", lambda: self.api.exists("/apis/s3sink.dev/v1alpha1"), 30, 0.1)

    def columns(self) -> list[str]:
        (version,) = self.api.get(DEFINITION)["spec"]["versions"]
        return [column["name"] for column in version["additionalPrinterColumns"]]

    def add_sink(self) -> None:
        self.until_served()
        self.api.post(sinks(SYSTEM), SINK)

    def remove_everything(self) -> None:
        if self.api.exists(f"{NAMESPACES}/{SYSTEM}"):
            if "s3sink-operator" in helm("list", "--short", "--kubeconfig", str(self.cluster.kubeconfig), "-n", SYSTEM):
                self.helm("uninstall")
            self.api.delete(f"{NAMESPACES}/{SYSTEM}")
        if self.api.exists(DEFINITION):
            self.api.delete(DEFINITION)
        until("the definition to go", lambda: not self.api.exists(DEFINITION), 60, 0.2)
        until("the namespace to go", lambda: not self.api.exists(f"{NAMESPACES}/{SYSTEM}"), 60, 0.2)


@pytest.fixture
def release(cluster: BareCluster, api: Client) -> Iterator[Release]:
    made = Release(cluster, api)
    yield made
    made.remove_everything()


@pytest.fixture
def older_chart(tmp_path: Path) -> Path:
    """One whose definition lacks the last column of `kubectl get --output wide`."""
    folder = Path(shutil.copytree(CHART, tmp_path / "older"))
    file = folder / "files" / "s3sinks.s3sink.dev.yaml"
    definition = yaml.safe_load(file.read_text())
    del definition["spec"]["versions"][0]["additionalPrinterColumns"][-1]
    file.write_text(yaml.safe_dump(definition, sort_keys=False))
    about = folder / "Chart.yaml"
    about.write_text(about.read_text().replace(f"ersion: {product_version()}", "ersion: 0.0.9"))
    return folder


def test_an_upgrade_brings_the_new_definition_and_keeps_the_sinks(release: Release, older_chart: Path) -> None:
    release.install(chart=older_chart)
    assert "Format" not in release.columns()
    release.add_sink()
    before = release.api.get(sinks(SYSTEM, "orders"))
    release.upgrade()
    assert release.columns()[-1] == "Format"
    assert release.api.get(sinks(SYSTEM, "orders")) == before


def test_an_uninstall_keeps_definition_and_sinks_for_the_next_install(release: Release) -> None:
    release.install()
    release.add_sink()
    uid = release.api.get(sinks(SYSTEM, "orders"))["metadata"]["uid"]
    said = release.helm("uninstall")
    assert "CustomResourceDefinition] s3sinks.s3sink.dev" in said
    assert release.api.get(sinks(SYSTEM, "orders"))["metadata"]["uid"] == uid
    left = release.cluster.kubectl(
        *("--namespace", SYSTEM, "get", "deployments,services,roles,rolebindings,networkpolicies", "--output", "name")
    )
    assert left == ""
    release.install()
    assert release.api.get(sinks(SYSTEM, "orders"))["metadata"]["uid"] == uid


def test_without_keep_the_definition_is_uninstalled(release: Release) -> None:
    release.install(values={"crds": {"keep": False}})
    release.helm("uninstall")
    until("the definition to go", lambda: not release.api.exists(DEFINITION), 30, 0.1)


def test_a_definition_of_kubectl_is_taken_over_only_on_request(release: Release) -> None:
    release.cluster.kubectl("apply", "-f", str(CHART / "files" / "s3sinks.s3sink.dev.yaml"))
    with pytest.raises(PartFailed, match="cannot be imported into the current release"):
        release.install()
    release.install("--take-ownership")
    assert release.api.get(DEFINITION)["metadata"]["annotations"]["meta.helm.sh/release-name"] == "s3sink-operator"


def test_a_release_fits_into_its_secret(release: Release) -> None:
    release.install(values={"dashboard": {"enabled": True}, "alerts": {"configMap": {"enabled": True}}})
    (secret,) = release.api.list(f"{NAMESPACES}/{SYSTEM}/secrets", labelSelector="owner=helm")
    assert len(base64.b64decode(secret["data"]["release"])) < LARGEST_SECRET / 4


def test_settings_change_with_an_upgrade(release: Release) -> None:
    release.install()
    release.upgrade(values={"workers": 9})
    deployment = release.api.get(f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/s3sink-operator")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert {"name": "S3SINK_OPERATOR_WORKERS", "value": "9"} in container["env"]
    assert deployment["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"


def test_the_notes_name_the_next_steps(release: Release) -> None:
    notes = release.install().partition("NOTES:")[2]
    for command in ("rollout status deployment/s3sink-operator", "apply -f sink.yaml", "get s3sinks --watch"):
        assert command in notes
    assert "is not installed yet" not in notes


def test_helm_test_fails_for_a_bad_install_only(release: Release, tmp_path: Path) -> None:
    """The operator runs here with the rights of the release, and so does the check."""
    release.install()
    operator = Operator(release.cluster, tmp_path, system=SYSTEM)

    def check(address: str) -> tuple[int, str]:
        command = [sys.executable, "-c", (CHART / "files" / "check.py").read_text(), address]
        env = {**os.environ, "KUBECONFIG": str(tmp_path / "operator.kubeconfig"), "no_proxy": "*"}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    try:
        operator.start()
        assert check(f"127.0.0.1:{operator.port}") == (0, "")
        assert check("") == (0, "")
    finally:
        operator.stop()
    code, words = check(f"127.0.0.1:{operator.port}")
    assert (code, "Connection refused" in words) == (1, True)
    release.api.delete(DEFINITION)
    until("the definition to go", lambda: not release.api.exists("/apis/s3sink.dev/v1alpha1"), 30, 0.1)
    assert check("") == (1, "the API server does not serve S3Sink: its CustomResourceDefinition is missing\n")
