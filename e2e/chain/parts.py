"""Runs of pytest that make one result."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass, field

import pytest

from e2e.image.host import say
from e2e.parts.processes import die_with_parent


@dataclass
class Parts:
    """One after another. A failed one does not stop the next; Ctrl-C leaves out the rest."""

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


def _wait(command: list[str]) -> int:
    """Ctrl-C is pytest's, too: it takes away what it made, and tells by its code that it was interrupted."""
    child = subprocess.Popen(command, preexec_fn=die_with_parent)  # noqa: PLW1509 - one system call, no lock taken
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:
            continue
