"""A port on the node's address that leads to one on loopback, so that pods reach what listens there."""

from __future__ import annotations

import socket
import socketserver
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

_CHUNK = 1 << 16


class Relay:
    def __init__(self, host: str, port: int) -> None:
        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with socket.create_connection(("127.0.0.1", port)) as inner:
                    back = threading.Thread(target=_pump, args=(inner, self.request), daemon=True)
                    back.start()
                    _pump(self.request, inner)
                    back.join()

        self._server = _Server((host, 0), Handler)
        self.endpoint = f"http://{host}:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients are killed in mid-request here: that is no error of ours."""


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(_CHUNK):
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
