"""The bare cluster leaves nothing behind, removes what killed runs left, and never removes a cluster in use."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tools.cluster import BareCluster, ClusterFailed, binaries, preflight
from tools.cluster.bare import Note
from tools.cluster.daemons import Identity
from tools.cluster.interface import choose
from tools.cluster.machine_state import snapshot
from tools.cluster.node_config import PAUSE_IMAGE

_HOLD = """
import signal
from tools.cluster import BareCluster
with BareCluster("control") as cluster:
    print(cluster.kubeconfig.parent, flush=True)
    signal.pause()
"""


@pytest.fixture
def cluster() -> Iterator[BareCluster]:
    with BareCluster("control") as cluster:
        yield cluster


@pytest.mark.slow
def test_two_control_planes_are_independent(cluster: BareCluster) -> None:
    with BareCluster("control") as other:
        other.kubectl("create", "namespace", "theirs")
        assert "theirs" not in cluster.kubectl("get", "namespaces")
    assert not other.kubeconfig.parent.exists()
    assert cluster.is_up


@pytest.mark.slow
@pytest.mark.crash
def test_the_next_run_removes_what_a_killed_run_left(cluster: BareCluster) -> None:
    with subprocess.Popen([sys.executable, "-c", _HOLD], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        left = Path(run.stdout.readline().strip())
        run.send_signal(signal.SIGKILL)
    assert left.is_dir()
    with BareCluster("control"):
        assert not left.exists()
    assert cluster.is_up


@pytest.fixture
def whole() -> BareCluster:
    """A cluster that is not started. Its programs are built before, because they stay."""
    chosen = choose()
    if not isinstance(chosen, BareCluster):
        pytest.skip("this machine's provider is kind")
    if chosen.is_up:
        pytest.skip("a cluster is up, and must stay")
    preflight.check_node()
    binaries.build_all()
    return chosen


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.parametrize("killed", [False, True], ids=["up", "killed"])
def test_a_node_leaves_no_trace_on_the_machine(
    whole: BareCluster, killed: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mark = f"s3sink-trace-{secrets.token_hex(8)}"
    monkeypatch.setenv("S3SINK_TRACE", mark)
    # Temporary files of the programs go where no other program writes.
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    looked_into = (tmp_path, whole.kubeconfig.parents[1])
    before = snapshot(mark, *looked_into)
    whole.up()
    try:
        run_a_pod(whole)
        during = snapshot(mark, *looked_into)
        if killed:
            kill_programs(whole)
    finally:
        whole.down()
    after = snapshot(mark, *looked_into)
    assert {kind: sorted(found ^ before[kind]) for kind, found in after.items() if found != before[kind]} == {}
    # Each kind must differ while a pod runs, or the comparison proves nothing; settings may fit a node already.
    assert {kind for kind in before if during[kind] == before[kind]} <= {"kernel settings"}


def run_a_pod(node: BareCluster) -> None:
    """A pod with volumes, behind a Service."""
    mounts = [{"name": "memory", "mountPath": "/memory"}, {"name": "disk", "mountPath": "/disk"}]
    volumes: list[dict[str, Any]] = [
        {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        {"name": "disk", "emptyDir": {}},
    ]
    container = {"name": "one", "image": PAUSE_IMAGE, "imagePullPolicy": "Never", "volumeMounts": mounts}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "one", "labels": {"app": "one"}},
        "spec": {"containers": [container], "volumes": volumes},
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "one"},
        "spec": {"selector": {"app": "one"}, "ports": [{"port": 80}]},
    }
    node.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod, service]}))
    node.kubectl("wait", "pod/one", "--for=condition=Ready", "--timeout=60s")


def kill_programs(node: BareCluster) -> None:
    """Kills all programs of the node at once; processes in pods go on."""
    for note in (node.kubeconfig.parent / "run").glob("*.pid"):
        program = Identity.parse(note.read_text())
        assert program is not None
        program.send(signal.SIGKILL)


def test_a_cluster_whose_owner_is_alive_is_not_orphaned(tmp_path: Path) -> None:
    Note("control", str(Identity.of(os.getpid())), None).write(tmp_path)
    note = Note.read(tmp_path)
    assert note is not None
    assert not note.orphaned


@pytest.mark.parametrize("owner", ["1 999999999999999", "cut sh"])
def test_a_cluster_whose_owner_is_dead_is_orphaned(owner: str) -> None:
    assert Note("control", owner, None).orphaned


def test_a_cluster_without_an_owner_is_not_orphaned() -> None:
    assert not Note("control", None, None).orphaned


def test_without_root_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ClusterFailed, match=r"run as root, or use the tier `control`"):
        preflight.check_node()


def test_a_second_node_is_refused() -> None:
    with pytest.raises(ValueError, match="one node"):
        BareCluster("all", name="second")
