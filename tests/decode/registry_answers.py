"""A small HTTP server on loopback that answers as a test says, in place of a registry that misbehaves."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)


Respond = Callable[[str, Mapping[str, str]], Answer]
"""Takes the path with its query, and the headers."""

AVRO = '{"type":"record","name":"R","fields":[]}'
FOUND = Answer(body=json.dumps({"schema": AVRO}).encode())


@contextmanager
def answering(respond: Respond, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """The URL of the server."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            answer = respond(self.path, {name.lower(): value for name, value in self.headers.items()})
            self.send_response(answer.status)
            for name, value in {"Content-Length": str(len(answer.body)), **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that breaks off is what some tests want."""

    server = Server(("127.0.0.1", 0), Handler)
    if tls is not None:
        # In the thread of the connection, so that a client without TLS does not block the others.
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"{'https' if tls else 'http'}://localhost:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
