"""The job's own status server at the address of a stand-in pod."""

from __future__ import annotations

import contextlib
import itertools
import socket
from http.server import ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from s3sink_job.report.server import serve
from s3sink_job.report.status import Reporter
from tests.apiserver.operator.namespaces import SinkNamespace
from tools.parts.processes import free_ports
from tools.polling import until

(PORT,) = free_ports(1)
"""One for all of them: each has an address of its own."""
_addresses = itertools.count(2)


class Driver:
    """`with Driver(namespace, "orders") as driver`: makes the sink's pending pod look like a running one."""

    def __init__(self, namespace: SinkNamespace, sink: str) -> None:
        self._namespace, self._sink = namespace, sink
        self.address = f"127.0.1.{next(_addresses)}"
        self.reporter = Reporter()
        self._server: ThreadingHTTPServer | None = None
        self._connections: list[socket.socket] = []

    def __enter__(self) -> Self:
        pods = until("a pod", lambda: self._namespace.pods(self._sink))
        self.pod: str = pods[-1]["metadata"]["name"]
        resource = self._namespace.get("s3sink", self._sink) or {}
        self.reporter = Reporter(generation=resource["metadata"]["generation"])
        self.reporter.phase("Running", "the driver runs")
        self.answer()
        self.shows(ready=True, state={"running": {"startedAt": "2026-11-16T00:00:00Z"}})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.fall_silent()

    def answer(self) -> None:
        server = self._server = serve(self.reporter, (self.address, PORT), lambda: True)
        accept = server.get_request

        def accepted() -> tuple[socket.socket, Any]:
            connection, address = accept()
            self._connections.append(connection)
            return connection, address

        server.get_request = accepted  # type: ignore[method-assign]

    def fall_silent(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        # The operator keeps its connections, and threads go on serving them.
        while self._connections:
            with contextlib.suppress(OSError):
                self._connections.pop().shutdown(socket.SHUT_RDWR)

    def shows(self, *, ready: bool, state: dict[str, Any], phase: str = "Running", **more: Any) -> None:
        """Writes what a kubelet would write."""
        container = {"name": "driver", "ready": ready, "started": ready, "image": "x", "imageID": "x"}
        container |= {"restartCount": 0, "state": state, **more}
        status = {"phase": phase, "podIP": self.address, "podIPs": [{"ip": self.address}]}
        self._namespace.change("pod", f"{self.pod}/status", {"status": status | {"containerStatuses": [container]}})
