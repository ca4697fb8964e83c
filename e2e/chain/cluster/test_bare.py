"""The bare cluster: a run that was killed costs the next one nothing, and nobody's cluster is taken from them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cluster import BareCluster, ClusterFailed, machine
from e2e.cluster.bare import Note
from e2e.cluster.daemons import Identity

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
