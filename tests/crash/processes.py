"""A real `s3sink` process and its children: to watch, kill and freeze, all or in part."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.parts.jars import connector_dir
from tools.parts.processes import Process

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0


@dataclass(frozen=True)
class Member:
    """One process of a session, as the kernel describes it."""

    pid: int
    parent: int
    state: str
    ticks: int
    command: str


def session(leader: int) -> list[Member]:
    """All living descendants of a session leader. Spark's Python daemon leaves the process group, but nothing leaves
    the session."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader and fields[0] not in "ZX":
                ticks = int(fields[11]) + int(fields[12])
                found.append(Member(int(entry.name), int(fields[1]), fields[0], ticks, command))
    return found


class SinkProcess(Process):
    """`s3sink <arguments>` in a session of its own, its output in a log file."""

    def __init__(self, log: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "s3sink_job", *arguments]
        super().__init__("s3sink", command, log, _environment(log.with_suffix(".tmp")))

    def wait(self, timeout: float = PATIENCE) -> int:
        """The exit code; negative for a signal."""
        try:
            return self._child.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"s3sink still runs after {timeout:.0f} s:\n{self.tail()}") from None

    def lines(self) -> Iterator[dict[str, Any]]:
        """Its log so far, without lines that are not JSON."""
        for line in self.log.read_text().splitlines():
            if line.startswith("{"):
                with suppress(ValueError):
                    yield json.loads(line)

    def logged(self, message: str) -> list[dict[str, Any]]:
        return [line for line in self.lines() if message in line["message"]]

    def until(self, condition: Callable[[], object], what: str, timeout: float = PATIENCE) -> None:
        deadline = time.monotonic() + timeout
        while not condition():
            assert self.alive, f"s3sink ended while waiting for {what}:\n{self.tail()}"
            assert time.monotonic() < deadline, f"waited {timeout:.0f} s for {what}:\n{self.tail()}"
            time.sleep(0.05)

    @property
    def java(self) -> list[Member]:
        return [m for m in session(self.pid) if "SparkSubmit" in m.command]

    @property
    def workers(self) -> list[Member]:
        """The Python processes that run Spark's tasks: children of the daemon that forks them."""
        family = [m for m in session(self.pid) if "pyspark.worker" in m.command]
        return [m for m in family if m.parent in {daemon.pid for daemon in family}]

    def kill(self) -> None:
        """`kill -9` for all of it at once, as when a node dies."""
        self.pause()
        self._signal(signal.SIGKILL, done=lambda m: False)
        self._child.wait()

    def kill_driver(self) -> None:
        """`kill -9` for the driver only: its JVM and workers go on for a moment."""
        os.kill(self.pid, signal.SIGKILL)

    def pause(self) -> None:
        self._signal(signal.SIGSTOP, done=lambda m: m.state == "T")

    def resume(self) -> None:
        for member in session(self.pid):
            with suppress(ProcessLookupError):
                os.kill(member.pid, signal.SIGCONT)

    def interrupt(self) -> None:
        """Like Ctrl-C in a terminal."""
        os.killpg(self.pid, signal.SIGINT)

    def terminate(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    def _signal(self, number: signal.Signals, done: Callable[[Member], bool]) -> None:
        """Repeats until all are stopped: one may have started another meanwhile."""
        while left := [m for m in session(self.pid) if not done(m)]:
            for member in left:
                with suppress(ProcessLookupError):
                    os.kill(member.pid, number)
            time.sleep(0.01)


def kill(members: list[Member]) -> None:
    assert members, "nobody to kill"
    for member in members:
        with suppress(ProcessLookupError):
            os.kill(member.pid, signal.SIGKILL)


def _environment(scratch: Path) -> dict[str, str]:
    """A killed process leaves temporary files: they go to a folder that pytest removes."""
    scratch.mkdir()
    return {
        "TMPDIR": str(scratch),
        "SPARK_LOCAL_DIRS": str(scratch),
        "PYTHONPATH": str(ROOT / "sinkjob"),
        "S3SINK_JARS": str(connector_dir()),
        # For a short life, less compilation halves the cost of a start.
        "JAVA_TOOL_OPTIONS": f"-XX:TieredStopAtLevel=1 -Xshare:auto -Djava.io.tmpdir={scratch}",
    }
