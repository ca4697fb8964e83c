"""CPU time and memory of a process and all its descendants, from /proc.

A sink is a Python driver, its JVM, a daemon and workers; the figure of one of them says little. Memory is the
proportional set size, if the kernel has it: forked workers share most of their pages with the daemon, and a sum of
resident sizes would count them several times.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections import defaultdict
from pathlib import Path
from types import TracebackType
from typing import Self

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
GONE = (FileNotFoundError, ProcessLookupError)
# Counted from the state, which follows the name: the parent, and four times in ticks.
PARENT, TIMES = 1, slice(11, 15)


class Tree:
    """The living processes at and below `root`."""

    def __init__(self, root: int) -> None:
        self.root = root

    def pids(self) -> list[int]:
        children: dict[int, list[int]] = defaultdict(list)
        for entry in PROC.iterdir():
            if entry.name.isdecimal() and (fields := _stat(int(entry.name))):
                children[int(fields[PARENT])].append(int(entry.name))
        found = [self.root] if _stat(self.root) else []
        for pid in found:
            found.extend(children[pid])
        return found

    def cpu_seconds(self) -> float:
        """User and system time so far, including descendants that have ended."""
        ticks = 0
        for pid in self.pids():
            if fields := _stat(pid):
                ticks += sum(int(time) for time in fields[TIMES])
        return ticks / TICKS

    def memory(self) -> int:
        """Memory in bytes."""
        return sum(_memory(pid) for pid in self.pids())


class Watch:
    """Measures a tree while the `with` block runs."""

    def __init__(self, tree: Tree, every: float = 0.25) -> None:
        self._tree, self._every = tree, every
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="memory", daemon=True)
        self.seconds = self.cpu_seconds = 0.0
        self.peak = 0

    def __enter__(self) -> Self:
        self._cpu = self._tree.cpu_seconds()
        self._began = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seconds = time.monotonic() - self._began
        self.cpu_seconds = self._tree.cpu_seconds() - self._cpu
        self._over.set()
        self._thread.join()
        self._look()

    def _sample(self) -> None:
        self._look()
        while not self._over.wait(self._every):
            self._look()

    def _look(self) -> None:
        self.peak = max(self.peak, self._tree.memory())


def _stat(pid: int) -> list[str]:
    """The fields from the state on; the name before them may contain brackets. Empty if the process is gone."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except GONE:
        return []


def _memory(pid: int) -> int:
    folder = PROC / str(pid)
    try:
        if found := re.search(r"^Pss:\s+(\d+) kB", (folder / "smaps_rollup").read_text(), re.M):
            return int(found[1]) * 1024
    except (*GONE, PermissionError):
        pass
    try:
        return int((folder / "statm").read_text().split()[1]) * PAGE
    except GONE:
        return 0
