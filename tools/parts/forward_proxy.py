"""A forward proxy for HTTP, with tunnels for HTTPS, that may ask for a user and a password."""

from __future__ import annotations

import base64
import http.client
import select
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from tools.parts.processes import LOOPBACK

_HOP_BY_HOP = {"connection", "keep-alive", "proxy-connection", "proxy-authorization", "transfer-encoding", "te"}


class ForwardProxy:
    def __init__(self, user: str = "", password: str = "") -> None:
        self.requests: list[tuple[str, str]] = []
        """Methods and targets, of refused requests as well."""
        wanted = f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}" if user else ""
        noted = self.requests

        class Connection(_Handler):
            login = wanted
            log = noted

        self._server = ThreadingHTTPServer((LOOPBACK, 0), Connection)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 30
    login: str
    log: list[tuple[str, str]]

    def log_message(self, format: str, *args: Any) -> None:
        """The log is in `ForwardProxy.requests`."""

    def handle_expect_100(self) -> bool:
        return True

    def _let_in(self) -> bool:
        self.log.append((self.command, self.path))
        if not self.login or self.headers.get("Proxy-Authorization") == self.login:
            return True
        self.send_response(407)
        self.send_header("Proxy-Authenticate", 'Basic realm="proxy"')
        self.send_header("Content-Length", "0")
        self.end_headers()
        self.close_connection = True
        return False

    def _forward(self) -> None:
        if not self._let_in():
            return
        url = urlsplit(self.path)
        if "100-continue" in self.headers.get("Expect", "").lower():
            self.send_response_only(100)
            self.end_headers()
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        upstream = http.client.HTTPConnection(url.hostname or "", url.port or 80, timeout=self.timeout)
        try:
            upstream.putrequest(
                self.command,
                f"{url.path}?{url.query}" if url.query else url.path,
                skip_host=True,
                skip_accept_encoding=True,
            )
            for name, value in self.headers.items():
                if name.lower() not in _HOP_BY_HOP | {"expect"}:
                    upstream.putheader(name, value)
            upstream.endheaders(body)
            answer = upstream.getresponse()
            content = answer.read()
            self.send_response_only(answer.status, answer.reason)
            for name, value in answer.headers.items():
                if name.lower() not in _HOP_BY_HOP | {"content-length"}:
                    self.send_header(name, value)
            length = answer.headers.get("Content-Length", "0") if self.command == "HEAD" else str(len(content))
            self.send_header("Content-Length", length)
            self.end_headers()
            self.wfile.write(content)
        finally:
            upstream.close()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _forward

    def do_CONNECT(self) -> None:
        if not self._let_in():
            return
        host, _, port = self.path.rpartition(":")
        with socket.create_connection((host.strip("[]"), int(port)), timeout=self.timeout) as upstream:
            self.send_response(200, "Connection established")
            self.end_headers()
            ends = {self.connection: upstream, upstream: self.connection}
            while True:
                ready, _, _ = select.select(list(ends), [], [], self.timeout)
                for end in ready:
                    data = end.recv(65536)
                    if not data:
                        self.close_connection = True
                        return
                    ends[end].sendall(data)
                if not ready:
                    return
