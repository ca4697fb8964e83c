"""The proxy itself: a server on a free port, its faults and its log of requests."""

from __future__ import annotations

import threading
from http.server import ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from tools.parts.processes import LOOPBACK
from tools.parts.proxy.faults import Action, Faults, Logged, Predicate, Rule
from tools.parts.proxy.handler import Handler


class FaultProxy:
    """Listens on a free port, on loopback by default, and forwards to `target_host:target_port`."""

    def __init__(self, target_host: str, target_port: int, host: str = LOOPBACK) -> None:
        self._faults = Faults()
        faults = self._faults

        class Connection(Handler):
            target = (target_host, target_port)
            shared = faults

        self.host = host
        self._server = _Server((host, 0), Connection)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def endpoint(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def requests(self) -> list[Logged]:
        """Every request so far, in the order in which they were answered."""
        with self._faults.lock:
            return list(self._faults.log)

    def on(self, predicate: Predicate, action: Action, times: int | None = None, skip: int = 0) -> Rule:
        """Adds a fault for matching requests: `skip` of them pass, then `times` of them, or all, meet it."""
        rule = Rule(predicate, action, times, skip)
        with self._faults.lock:
            self._faults.rules.append(rule)
        return rule

    def remove(self, rule: Rule) -> None:
        with self._faults.lock:
            self._faults.rules = [other for other in self._faults.rules if other is not rule]

    def clear(self) -> None:
        """Removes all faults, and the log of requests."""
        with self._faults.lock:
            self._faults.rules.clear()
            self._faults.log.clear()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """No traceback: connections break here on purpose."""
