"""Background programs that end with this process, and free ports for them.

A killed test run must not leave a broker behind: the kernel kills each child with its parent.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

LOOPBACK = "127.0.0.1"
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


class PartFailed(Exception):
    """A part did not start or died; the message holds the end of its log."""


def free_ports(count: int, host: str = LOOPBACK) -> list[int]:
    """Free ports below the range that the kernel uses for outgoing connections.

    A port in that range could be taken before a slow program, such as a broker, binds it.
    """
    ports: list[int] = []
    with contextlib.ExitStack() as held:
        while len(ports) < count:
            port = random.SystemRandom().randrange(15_000, 32_000)
            # With SO_REUSEADDR the same port can be bound twice while nothing listens.
            if port in ports:
                continue
            with contextlib.suppress(OSError):
                listener = held.enter_context(socket.socket())
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind((host, port))
                ports.append(port)
    return ports


def taken_ports(ports: Iterable[int], host: str = LOOPBACK) -> list[int]:
    """Those that nothing else can listen on."""
    taken = []
    for port in ports:
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((host, port))
            except OSError:
                taken.append(port)
    return taken


def port_answers(port: int, host: str = LOOPBACK) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=1):
        return True
    return False


class Process:
    """One child process with its output in a file.

    The kernel kills a child when the thread that started it ends: start parts from a thread that lasts.
    """

    def __init__(self, name: str, command: Sequence[str], log: Path, env: Mapping[str, str] | None = None):
        self.name = name
        self.log = log
        with log.open("ab") as output:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                # Its own process group: Ctrl-C goes to the tests only, which then stop their parts in order.
                start_new_session=True,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - one system call, no lock taken
            )

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def alive(self) -> bool:
        return self._child.poll() is None

    def wait_until(self, ready: Callable[[], bool], timeout: float = 60.0) -> None:
        deadline = time.monotonic() + timeout
        while not ready():
            if not self.alive:
                raise PartFailed(f"{self.name} ended with {self._child.returncode}:\n{self.tail()}")
            if time.monotonic() > deadline:
                self.kill()
                raise PartFailed(f"{self.name} did not answer within {timeout:.0f} s:\n{self.tail()}")
            time.sleep(0.05)

    def tail(self, lines: int = 40) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:]) + f"\n(whole log: {self.log})"

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def stop(self, timeout: float = 10.0) -> None:
        if not self.alive:
            return
        self.resume()
        self._child.terminate()
        try:
            self._child.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        if self.alive:
            self._child.kill()
            self._child.wait()


def die_with_parent() -> None:
    """Run in a new child: the kernel kills it when the thread that started it ends."""
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
