"""Programs of a cluster: any process can stop them, and no other program is ever stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tools.cluster.daemons import Daemons, Identity
from tools.cluster.interface import ClusterFailed

_START = """
import sys
from pathlib import Path
from tools.cluster.daemons import Daemons
Daemons(Path(sys.argv[1]), tied=False).start("sleep", ["sleep", "60"])
"""


def test_another_process_can_stop_a_program(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", _START, str(tmp_path)], check=True)
    daemons = Daemons(tmp_path, tied=False)
    assert daemons.alive("sleep")
    daemons.stop(daemons.names())
    assert not daemons.alive("sleep")


def test_a_program_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    daemons = Daemons(tmp_path, tied=True)
    daemons.start("deaf", ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"])
    daemons.stop(["deaf"], timeout=0.3)
    assert not daemons.alive("deaf")


def test_a_process_with_a_reused_id_is_not_stopped(tmp_path: Path) -> None:
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        identity = Identity.of(stranger.pid)
        assert identity is not None
        Identity(stranger.pid, identity.started - 1).send(signal.SIGKILL)
        assert stranger.poll() is None
        assert identity.alive
    finally:
        stranger.kill()
        stranger.wait()


def test_a_program_that_dies_at_start_shows_its_log(tmp_path: Path) -> None:
    daemons = Daemons(tmp_path, tied=True)
    daemons.start("broken", ["sh", "-c", "echo no such disk >&2; exit 3"])
    with pytest.raises(ClusterFailed, match="broken ended:\nno such disk"):
        daemons.wait_until("broken", lambda: False, 10)


@pytest.mark.parametrize("text", ["", "12", "x y", "1 2 3"])
def test_an_incomplete_note_names_no_process(text: str) -> None:
    assert Identity.parse(text) is None


def test_a_note_is_read_as_it_was_written() -> None:
    identity = Identity.of(os.getpid())
    assert identity is not None
    assert Identity.parse(str(identity)) == identity
