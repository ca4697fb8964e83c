"""Runs the end-to-end tests on one cluster with one operator: `python -m tools.e2e`.

Three runs of pytest give one result: tests that start clusters themselves, then those that can run two at a time, then
those that must run alone. Options for pytest go into PYTEST_ADDOPTS.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tools.cluster import Cluster
from tools.cluster.interface import choose
from tools.host import SetupFailed, say
from tools.image.build import build_image
from tools.operator_harness.helm_release import INSTALLED, installed
from tools.parts.processes import die_with_parent

_E2E = Path(__file__).parents[1] / "e2e"


@dataclass
class PytestRuns:
    """One after another. A failed run does not stop the next one; Ctrl-C skips the rest."""

    failed: list[str] = field(default_factory=list)
    interrupted: bool = False

    def run(self, name: str, *arguments: str) -> None:
        if self.interrupted:
            return
        began = time.monotonic()
        code = _wait([sys.executable, "-m", "pytest", *arguments])
        say(f"{name}: {(time.monotonic() - began) / 60:.1f} minutes")
        self.interrupted = code == pytest.ExitCode.INTERRUPTED
        if code != pytest.ExitCode.OK:
            self.failed.append(name)


def main() -> int:
    runs = PytestRuns()
    try:
        _run_all(runs, choose())
    except SetupFailed as failure:
        print(f"e2e: {failure}", file=sys.stderr)
        return 1
    say(f"end to end: FAILED, {' and '.join(runs.failed)}" if runs.failed else "end to end: all passed")
    return 1 if runs.failed else 0


def _run_all(runs: PytestRuns, cluster: Cluster) -> None:
    image = build_image()
    runs.run("tests of clusters", str(_E2E / "clusters"))
    with nullcontext() if cluster.is_up else cluster:
        reference = cluster.load_image(image.archive)
        with installed(cluster, reference):
            os.environ[INSTALLED] = reference
            sinks = str(_E2E / "kubernetes")
            runs.run("tests two at a time", sinks, "-m", "not alone", "-n", "2")
            runs.run("tests one by one", sinks, "-m", "alone")


def _wait(command: list[str]) -> int:
    """Ctrl-C reaches pytest, too: it cleans up, and its exit code says that it was interrupted."""
    child = subprocess.Popen(command, preexec_fn=die_with_parent)  # noqa: PLW1509 - one system call, no lock taken
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:
            continue


if __name__ == "__main__":
    sys.exit(main())
