"""Keeps a driver running like Kubernetes: a driver that ended, for any reason, is started again."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.crash.processes import SinkProcess

BACKOFF = 0.5
FENCED = 3


class DriverFailed(Exception):
    """A driver behaved wrongly."""


class Supervisor:
    """`with Supervisor(manifest, folder) as drivers: drivers.current().kill()`."""

    def __init__(self, manifest: Path, folder: Path, say: Callable[[str], None]) -> None:
        self._manifest, self._folder, self._say = manifest, folder, say
        self.exits: Counter[str] = Counter()
        self._all: list[SinkProcess] = []
        self._current: SinkProcess | None = None
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._restarts = True
        # A child dies with the thread that started it: this thread lasts as long as the run.
        self._thread = threading.Thread(target=self._watch, name="supervisor", daemon=True)

    def __enter__(self) -> Supervisor:
        with self._lock:
            self._current = self._start()
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()
        for process in self._all:
            process.kill()

    @property
    def logs(self) -> list[Path]:
        return [process.log for process in self._all]

    def current(self) -> SinkProcess:
        with self._lock:
            assert self._current is not None
            return self._current

    def working(self, timeout: float, did: Callable[[SinkProcess], bool]) -> SinkProcess | None:
        """The driver, after it has taken over the sink or flushed; None on a timeout."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if (process := self.current()).alive and did(process):
                return process
            time.sleep(0.1)
        return None

    def replace(self, former: SinkProcess) -> SinkProcess:
        """Starts a second driver, and from now on supervises only that."""
        with self._lock:
            assert self._current is former
            self._current = self._start()
            return self._current

    def ended(self, process: SinkProcess, code: int) -> None:
        names = {0: "0 (stopped)", 1: "1 (failed)", 2: "2 (final error)", FENCED: "3 (fenced)"}
        self.exits[names.get(code, f"signal {-code}" if code < 0 else str(code))] += 1
        self._say(f"driver {process.log.stem} ended with {code}")

    def stop_driver(self, grace: float) -> None:
        """Ends the restarts and stops the driver, which must end with code 0."""
        process = self.working(grace, has_taken_over)
        if process is None:
            raise DriverFailed(f"no driver took over within {grace:.0f} s:\n{self.current().tail()}")
        self._restarts = False
        process.terminate()
        code = process.wait(grace)
        self.ended(process, code)
        if code != 0:
            raise DriverFailed(f"a driver that was stopped ended with {code}:\n{process.tail()}")

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            process = self.current()
            if process.alive:
                continue
            if not self._restarts:
                break
            self.ended(process, process.wait())
            if self._stop.wait(BACKOFF):
                return
            with self._lock:
                if self._current is process:
                    self._current = self._start()
        # The driver dies with this thread.
        self._stop.wait()

    def _start(self) -> SinkProcess:
        log = self._folder / f"driver-{len(self._all) + 1:03}.log"
        process = SinkProcess(log, "run", "-f", str(self._manifest))
        self._all.append(process)
        return process


def has_taken_over(process: SinkProcess) -> bool:
    return '"took over"' in process.log.read_text(errors="replace")


def has_flushed(process: SinkProcess) -> bool:
    return '"flushed"' in process.log.read_text(errors="replace")
