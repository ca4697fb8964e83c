"""Background programs that another process can stop later, by process id *and* start time.

Process ids are reused. With both in a note, an old note can never stop another program.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.cluster.interface import ClusterFailed
from tools.parts.processes import die_with_parent


@dataclass(frozen=True)
class Identity:
    """A process id with the start time, in ticks of the kernel's clock: together they are never reused."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> Identity | None:
        """None if the process is gone, or a zombie."""
        try:
            # The program's name is in brackets, and may contain spaces and brackets.
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] in "ZX" else cls(pid, int(fields[19]))

    @classmethod
    def parse(cls, text: str) -> Identity | None:
        parts = text.split()
        return cls(int(parts[0]), int(parts[1])) if len(parts) == 2 and all(p.isdigit() for p in parts) else None

    def __str__(self) -> str:
        return f"{self.pid} {self.started}"

    @property
    def alive(self) -> bool:
        return Identity.of(self.pid) == self

    def send(self, number: signal.Signals) -> None:
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


class Daemons:
    """The programs of one cluster: notes in `<folder>/run`, output in `<folder>/log`."""

    def __init__(self, folder: Path, *, tied: bool) -> None:
        """With `tied` the programs die with the thread that starts them, like a test's parts."""
        self._notes = folder / "run"
        self._logs = folder / "log"
        self._tied = tied
        self._children: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        for folder in (self._notes, self._logs):
            folder.mkdir(parents=True, exist_ok=True)
        with (self._logs / f"{name}.log").open("ab") as output:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                start_new_session=True,
                preexec_fn=die_with_parent if self._tied else None,  # noqa: PLW1509 - one system call, no lock taken
            )
        self._children.append(child)
        identity = Identity.of(child.pid)
        if identity is not None:
            (self._notes / f"{name}.pid").write_text(str(identity))

    def alive(self, name: str) -> bool:
        identity = self._identity(name)
        return identity is not None and identity.alive

    def wait_until(self, name: str, ready: Callable[[], bool], timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while not ready():
            if not self.alive(name):
                raise ClusterFailed(f"{name} ended:\n{self.tail(name)}")
            if time.monotonic() > deadline:
                raise ClusterFailed(f"{name} was not ready within {timeout:.0f} s:\n{self.tail(name)}")
            time.sleep(0.1)

    def tail(self, name: str, lines: int = 20) -> str:
        log = self._logs / f"{name}.log"
        text = log.read_text(errors="replace") if log.exists() else ""
        return "\n".join(text.splitlines()[-lines:]) + f"\n(whole log: {log})"

    def names(self) -> list[str]:
        return sorted(note.stem for note in self._notes.glob("*.pid"))

    def stop(self, names: Iterable[str], timeout: float = 10.0) -> None:
        """Stops programs, all at the same time, and returns when all have ended."""
        identities = [identity for name in names if (identity := self._identity(name))]
        end(identities, timeout)
        for child in self._children:
            child.poll()

    def _identity(self, name: str) -> Identity | None:
        try:
            return Identity.parse((self._notes / f"{name}.pid").read_text())
        except FileNotFoundError:
            return None


def end(identities: Iterable[Identity], timeout: float) -> None:
    """Sends SIGTERM, then SIGKILL after the timeout; with a timeout of 0 only SIGKILL."""
    left = list(identities)
    if timeout:
        for identity in left:
            identity.send(signal.SIGTERM)
    deadline = time.monotonic() + timeout
    while (left := [identity for identity in left if identity.alive]) and time.monotonic() < deadline:
        time.sleep(0.05)
    for identity in left:
        identity.send(signal.SIGKILL)
    # A process in a system call ends only after the call, even with SIGKILL.
    deadline = time.monotonic() + 10
    while (left := [identity for identity in left if identity.alive]) and time.monotonic() < deadline:
        time.sleep(0.05)
