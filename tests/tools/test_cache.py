"""The cache of parts: an entry is built once, and complete or missing, also with several processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.parts.cache import build_once

_BUILD_SLOWLY = """
import sys, time
from pathlib import Path
from tools.parts.cache import build_once

def build(folder):
    with open(sys.argv[1], "a") as log:
        log.write("built\\n")
    (folder / "half").touch()
    time.sleep(0.3)
    (folder / "whole").touch()

assert (build_once("part-1.0", build) / "whole").exists()
"""


def test_concurrent_processes_build_a_part_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    log = tmp_path / "log"
    command = [sys.executable, "-c", _BUILD_SLOWLY, str(log)]
    children = [subprocess.Popen(command, env=None) for _ in range(3)]
    assert [child.wait(30) for child in children] == [0, 0, 0]
    assert log.read_text() == "built\n"


def test_a_failed_build_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def half(folder: Path) -> None:
        (folder / "half").touch()
        raise OSError("no network")

    with pytest.raises(OSError, match="no network"):
        build_once("part-1.0", half)
    assert [p.name for p in (tmp_path / "s3sink").iterdir()] == [".part-1.0.lock"]
    assert build_once("part-1.0", lambda folder: (folder / "whole").touch()).joinpath("whole").exists()
