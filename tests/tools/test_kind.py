"""The provider `kind`, as far as it can be tested without Docker: its commands, and kind's answers to them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from tools.cluster.__main__ import _cluster, _parser
from tools.cluster.bare import BareCluster
from tools.cluster.interface import ClusterFailed, choose, provider_for
from tools.cluster.kind import (
    CONFIG,
    RELEASE,
    KindCluster,
    check_listening,
    create_command,
    delete_command,
    docker_answers,
    gateway,
    kind_program,
    load_command,
)
from tools.parts.versions import version


@pytest.fixture
def no_daemon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """These tests must start nothing with Docker, even if it runs."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    monkeypatch.delenv("S3SINK_CLUSTER_PROVIDER", raising=False)


def create(config: Path, kubeconfig: Path) -> str:
    """kind's answer to a configuration, which it reads completely before it needs Docker."""
    command = create_command(kind_program(), kubeconfig)
    command[command.index(str(CONFIG))] = str(config)
    env = {**os.environ, "KIND_EXPERIMENTAL_PROVIDER": "docker"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    return done.stderr


@pytest.mark.parametrize(
    ("wanted", "docker", "root", "chosen"),
    [
        (None, True, True, "kind"),
        (None, True, False, "kind"),
        (None, False, True, "bare"),
        ("", False, True, "bare"),
        ("bare", True, True, "bare"),
        ("kind", False, True, "kind"),
    ],
)
def test_kind_is_chosen_with_docker_unless_bare_is_wanted(
    wanted: str | None, docker: bool, root: bool, chosen: str
) -> None:
    assert provider_for(wanted, docker=docker, root=root) == chosen


def test_without_docker_and_root_the_error_says_what_to_install() -> None:
    with pytest.raises(ClusterFailed, match=r"install Docker .* or run as root on Linux"):
        provider_for(None, docker=False, root=False)


def test_an_unknown_provider_is_refused_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S3SINK_CLUSTER_PROVIDER", "minikube")
    with pytest.raises(
        ClusterFailed, match="S3SINK_CLUSTER_PROVIDER=minikube is unknown: the providers are kind and bare"
    ):
        choose()


@pytest.mark.usefixtures("no_daemon")
@pytest.mark.skipif(os.geteuid() != 0, reason="without Docker a cluster needs root")
def test_docker_without_a_daemon_does_not_count() -> None:
    assert not docker_answers()
    assert isinstance(choose(), BareCluster)


@pytest.mark.usefixtures("no_daemon")
def test_the_environment_overrides_what_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S3SINK_CLUSTER_PROVIDER", "kind")
    assert isinstance(choose(), KindCluster)
    assert isinstance(choose("bare"), BareCluster)


@pytest.mark.usefixtures("no_daemon")
def test_a_missing_daemon_is_reported_before_anything_is_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cluster = KindCluster()
    with pytest.raises(ClusterFailed, match="no Docker daemon answers"):
        cluster.up()
    assert not cluster.is_up
    cluster.down()
    assert list(tmp_path.iterdir()) == []


def test_the_node_is_pinned_and_has_the_minor_version_of_bare() -> None:
    (node,) = yaml.safe_load(CONFIG.read_text())["nodes"]
    name, _, digest = node["image"].partition("@sha256:")
    assert len(digest) == 64
    release = version("kubernetes", "version")
    assert name.startswith(f"kindest/node:v{release.rpartition('.')[0]}.")


@pytest.mark.usefixtures("no_daemon")
def test_kind_accepts_our_configuration(tmp_path: Path) -> None:
    assert "failed to get docker info" in create(CONFIG, tmp_path / "kubeconfig")
    assert not (tmp_path / "kubeconfig").exists()


@pytest.mark.usefixtures("no_daemon")
def test_kind_refuses_a_wrong_configuration(tmp_path: Path) -> None:
    slip = tmp_path / "kind.yaml"
    slip.write_text(CONFIG.read_text().replace("image:", "imige:"))
    assert "field imige not found" in create(slip, tmp_path / "kubeconfig")


@pytest.mark.usefixtures("no_daemon")
def test_kind_accepts_every_option_of_ours(tmp_path: Path) -> None:
    archive = tmp_path / "image.tar"
    archive.touch()
    for command in (delete_command(kind_program(), tmp_path / "it"), load_command(kind_program(), archive)):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "Cannot connect to the Docker daemon" in done.stderr or "executable file not found" in done.stderr


def test_the_release_of_kind_matches_the_node() -> None:
    said = subprocess.run([kind_program(), "--version"], capture_output=True, text=True, check=True).stdout
    assert said.split()[-1] == RELEASE


def test_this_machine_s_address_for_pods_is_the_ipv4_gateway() -> None:
    ranges = [{"Subnet": "fc00:f853:ccd:e793::/64", "Gateway": "fc00:f853:ccd:e793::1"}]
    ranges += [{"Subnet": "172.18.0.0/16", "Gateway": "172.18.0.1"}]
    assert gateway([{"IPAM": {"Config": ranges}}]) == "172.18.0.1"


@pytest.mark.parametrize(
    "ranges", [None, [], [{"Subnet": "fc00::/64", "Gateway": "fc00::1"}], [{"Subnet": "1.0.0.0/8"}]]
)
def test_a_network_without_an_ipv4_gateway_is_refused(ranges: list[dict[str, str]] | None) -> None:
    with pytest.raises(ClusterFailed, match="no IPv4 gateway"):
        gateway([{"IPAM": {"Config": ranges}}])


def test_a_docker_on_another_machine_is_refused_with_a_reason() -> None:
    check_listening("127.0.0.1")
    with pytest.raises(ClusterFailed, match=r"cannot listen on 192\.0\.2\.1"):
        check_listening("192.0.2.1")


def test_an_api_server_alone_needs_neither_docker_nor_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """`make test` builds only that."""
    monkeypatch.setenv("S3SINK_CLUSTER_PROVIDER", "kind")
    chosen = _cluster(_parser().parse_args(["build", "--tier", "control"]))
    assert isinstance(chosen, BareCluster)
    assert chosen.tier == "control"
