"""The bare cluster: nothing is left of it, a killed run costs the next one nothing, and nobody's is taken from them."""

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

from e2e.cluster import BareCluster, ClusterFailed, binaries, machine
from e2e.cluster.bare import Note
from e2e.cluster.daemons import Identity
from e2e.cluster.interface import choose
from e2e.cluster.nodeconfig import PAUSE_IMAGE
from e2e.cluster.traces import traces

_HOLD = """
import signal
from e2e.cluster import BareCluster
with BareCluster("control") as cluster:
    print(cluster.kubeconfig.parent, flush=True)
    signal.pause()
"""


@pytest.fixture
def cluster() -> Iterator[BareCluster]:
    with BareCluster("control") as cluster:
        yield cluster


@pytest.mark.slow
def test_two_control_planes_know_nothing_of_each_other(cluster: BareCluster) -> None:
    with BareCluster("control") as other:
        other.kubectl("create", "namespace", "theirs")
        assert "theirs" not in cluster.kubectl("get", "namespaces")
    assert not other.kubeconfig.parent.exists()
    assert cluster.is_up


@pytest.mark.slow
@pytest.mark.crash
def test_what_a_killed_run_left_is_taken_away_by_the_next(cluster: BareCluster) -> None:
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
    """Not up yet, on a machine that has all the programs: they stay, and are no trace."""
    chosen = choose()
    if not isinstance(chosen, BareCluster):
        pytest.skip("this machine's clusters are kind's")
    if chosen.is_up:
        pytest.skip("a cluster is up, and stays")
    machine.check_node()
    binaries.build_all()
    return chosen


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.parametrize("killed", [False, True], ids=["up", "killed"])
def test_a_node_leaves_the_machine_as_it_was(
    whole: BareCluster, killed: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mark = f"s3sink-trace-{secrets.token_hex(8)}"
    monkeypatch.setenv("S3SINK_TRACE", mark)
    # Programs that leave files for a while shall do so where nobody else does.
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    looked_into = (tmp_path, whole.kubeconfig.parents[1])
    before = traces(mark, *looked_into)
    whole.up()
    try:
        run_a_pod(whole)
        during = traces(mark, *looked_into)
        if killed:
            kill_programs(whole)
    finally:
        whole.down()
    after = traces(mark, *looked_into)
    assert {kind: sorted(found ^ before[kind]) for kind, found in after.items() if found != before[kind]} == {}
    # What shows no difference while a pod runs would show none afterwards, either; settings may suit a node already.
    assert {kind for kind in before if during[kind] == before[kind]} <= {"kernel settings"}


def run_a_pod(node: BareCluster) -> None:
    """With volumes, and with a Service before it."""
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
    """All at once, as when the machine's owner loses patience; what runs in pods lives on."""
    for note in (node.kubeconfig.parent / "run").glob("*.pid"):
        program = Identity.parse(note.read_text())
        assert program is not None
        program.send(signal.SIGKILL)


def test_a_cluster_whose_owner_lives_is_nobodys_to_take_away(tmp_path: Path) -> None:
    Note("control", str(Identity.of(os.getpid())), None).write(tmp_path)
    note = Note.read(tmp_path)
    assert note is not None
    assert not note.orphaned


@pytest.mark.parametrize("owner", ["1 999999999999999", "cut sh"])
def test_a_cluster_whose_owner_is_gone_is_an_orphan(owner: str) -> None:
    assert Note("control", owner, None).orphaned


def test_a_cluster_that_was_brought_up_to_stay_stays() -> None:
    assert not Note("control", None, None).orphaned


def test_without_root_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ClusterFailed, match=r"run as root, or use the tier `control`"):
        machine.check_node()


def test_a_second_node_is_refused() -> None:
    with pytest.raises(ValueError, match="one node"):
        BareCluster("all", name="second")
