"""The provider for people with Docker, as far as it shows without: what it asks of kind, and what kind says to that."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from e2e.cluster.__main__ import _cluster, _parser
from e2e.cluster.bare import BareCluster
from e2e.cluster.interface import ClusterFailed, choose, provider_for
from e2e.cluster.kind import (
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
from e2e.parts.versions import version


@pytest.fixture
def no_daemon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also where Docker runs, these tests must not start anything with it."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    monkeypatch.delenv("S3SINK_CLUSTER_PROVIDER", raising=False)


def create(config: Path, kubeconfig: Path) -> str:
    """What kind says to a configuration: it reads all of it before it asks for Docker."""
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
def test_docker_means_kind_unless_one_asks_for_another(
    wanted: str | None, docker: bool, root: bool, chosen: str
) -> None:
    assert provider_for(wanted, docker=docker, root=root) == chosen


def test_a_machine_that_can_have_none_is_told_what_to_install() -> None:
    with pytest.raises(ClusterFailed, match=r"install Docker .* or run as root on Linux"):
        provider_for(None, docker=False, root=False)


def test_an_unknown_provider_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S3SINK_CLUSTER_PROVIDER", "minikube")
    with pytest.raises(ClusterFailed, match="S3SINK_CLUSTER_PROVIDER=minikube: there are kind and bare"):
        choose()


@pytest.mark.usefixtures("no_daemon")
@pytest.mark.skipif(os.geteuid() != 0, reason="without Docker a cluster needs root")
def test_a_docker_without_its_daemon_is_no_docker() -> None:
    assert not docker_answers()
    assert isinstance(choose(), BareCluster)


@pytest.mark.usefixtures("no_daemon")
def test_the_environment_overrides_what_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S3SINK_CLUSTER_PROVIDER", "kind")
    assert isinstance(choose(), KindCluster)
    assert isinstance(choose("bare"), BareCluster)


@pytest.mark.usefixtures("no_daemon")
def test_a_missing_daemon_is_named_before_anything_is_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cluster = KindCluster()
    with pytest.raises(ClusterFailed, match="no Docker daemon answers"):
        cluster.up()
    assert not cluster.is_up
    cluster.down()
    assert list(tmp_path.iterdir()) == []


def test_the_node_is_pinned_by_digest_and_of_the_version_that_bare_runs() -> None:
    (node,) = yaml.safe_load(CONFIG.read_text())["nodes"]
    name, _, digest = node["image"].partition("@sha256:")
    assert len(digest) == 64
    release = version("kubernetes", "version")
    assert name.startswith(f"kindest/node:v{release.rpartition('.')[0]}.")


@pytest.mark.usefixtures("no_daemon")
def test_kind_reads_our_configuration_to_its_end(tmp_path: Path) -> None:
    assert "failed to get docker info" in create(CONFIG, tmp_path / "kubeconfig")
    assert not (tmp_path / "kubeconfig").exists()


@pytest.mark.usefixtures("no_daemon")
def test_kind_would_have_seen_a_slip_in_it(tmp_path: Path) -> None:
    slip = tmp_path / "kind.yaml"
    slip.write_text(CONFIG.read_text().replace("image:", "imige:"))
    assert "field imige not found" in create(slip, tmp_path / "kubeconfig")


@pytest.mark.usefixtures("no_daemon")
def test_kind_knows_every_option_that_it_is_given(tmp_path: Path) -> None:
    archive = tmp_path / "image.tar"
    archive.touch()
    for command in (delete_command(kind_program(), tmp_path / "it"), load_command(kind_program(), archive)):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "Cannot connect to the Docker daemon" in done.stderr or "executable file not found" in done.stderr


def test_the_kind_that_runs_is_the_one_that_the_node_was_made_for() -> None:
    said = subprocess.run([kind_program(), "--version"], capture_output=True, text=True, check=True).stdout
    assert said.split()[-1] == RELEASE


def test_pods_find_this_machine_at_the_networks_ipv4_gateway() -> None:
    ranges = [{"Subnet": "fc00:f853:ccd:e793::/64", "Gateway": "fc00:f853:ccd:e793::1"}]
    ranges += [{"Subnet": "172.18.0.0/16", "Gateway": "172.18.0.1"}]
    assert gateway([{"IPAM": {"Config": ranges}}]) == "172.18.0.1"


@pytest.mark.parametrize(
    "ranges", [None, [], [{"Subnet": "fc00::/64", "Gateway": "fc00::1"}], [{"Subnet": "1.0.0.0/8"}]]
)
def test_a_network_without_such_a_gateway_is_refused(ranges: list[dict[str, str]] | None) -> None:
    with pytest.raises(ClusterFailed, match="no IPv4 gateway"):
        gateway([{"IPAM": {"Config": ranges}}])


def test_a_docker_on_another_machine_is_refused_with_the_reason() -> None:
    check_listening("127.0.0.1")
    with pytest.raises(ClusterFailed, match=r"cannot listen on 192\.0\.2\.1"):
        check_listening("192.0.2.1")


def test_an_api_server_alone_needs_neither_docker_nor_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """`make test` builds no more than that, for everybody."""
    monkeypatch.setenv("S3SINK_CLUSTER_PROVIDER", "kind")
    chosen = _cluster(_parser().parse_args(["build", "--tier", "control"]))
    assert isinstance(chosen, BareCluster)
    assert chosen.tier == "control"
