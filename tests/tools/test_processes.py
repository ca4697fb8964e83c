"""Programs that tests start never outlive the tests."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools.parts.processes import PartFailed, Process

_START_AND_WAIT = """
import sys, time
from pathlib import Path
from tools.parts.processes import Process
print(Process("sleep", ["sleep", "60"], Path(sys.argv[1])).pid, flush=True)
time.sleep(60)
"""


def state_of(pid: int) -> str:
    """The kernel's state of a process: S asleep, T stopped; empty if it is gone or a zombie."""
    try:
        letter = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if letter in "ZX" else letter


def becomes(pid: int, *letters: str) -> bool:
    deadline = time.monotonic() + 10
    while state_of(pid) not in letters:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_a_part_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _START_AND_WAIT, str(tmp_path / "log")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        part = int(parent.stdout.readline())
        assert state_of(part) != ""
        parent.kill()
    assert becomes(part, "")


def test_a_paused_part_goes_on_or_stops(tmp_path: Path) -> None:
    part = Process("sleep", ["sleep", "60"], tmp_path / "log")
    part.pause()
    assert becomes(part.pid, "T")
    part.resume()
    assert becomes(part.pid, "S")
    part.pause()
    part.stop()
    assert not part.alive


def test_a_part_that_dies_at_start_shows_its_log(tmp_path: Path) -> None:
    part = Process("broken", ["sh", "-c", "echo no such disk >&2; exit 3"], tmp_path / "log")
    with pytest.raises(PartFailed, match=r"broken ended with 3:\nno such disk"):
        part.wait_until(lambda: False)
