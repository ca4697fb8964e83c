"""The driver's HTTP server: `/status` for the operator, `/metrics` for Prometheus, `/healthz` for the kubelet."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from s3sink_job.report.status import Reporter

UNHEALTHY = b"driver loop stopped or Spark heartbeat lost\n"


def serve(reporter: Reporter, address: tuple[str, int], healthy: Callable[[], bool]) -> ThreadingHTTPServer:
    """Serves until `shutdown()`. `healthy`: whether the driver loop and Spark still run."""

    class Handler(BaseHTTPRequestHandler):
        # The operator polls over one connection. An idle connection is closed after the timeout.
        protocol_version = "HTTP/1.1"
        timeout = 300

        def do_GET(self) -> None:
            match self.path.split("?")[0]:
                case "/status":
                    self._status()
                case "/metrics":
                    self._answer(200, CONTENT_TYPE_LATEST, generate_latest(reporter.metrics.registry))
                case "/healthz":
                    ok = healthy()
                    self._answer(200 if ok else 503, "text/plain", b"ok\n" if ok else UNHEALTHY)
                case _:
                    self._answer(404, "text/plain", b"not found; try /status, /metrics or /healthz\n")

        def _status(self) -> None:
            """304 if the status has not changed since the report with this ETag."""
            status = reporter.status()
            tag = _etag(status)
            if self.headers.get("If-None-Match") == tag:
                self.send_response(304)
                self.send_header("ETag", tag)
                self.end_headers()
            else:
                self._answer(200, "application/json", json.dumps(status).encode(), ETag=tag)

        def _answer(self, code: int, kind: str, body: bytes, **headers: str) -> None:
            self.send_response(code)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """No line for each request: the log would be full of them."""

    server = ThreadingHTTPServer(address, Handler)
    threading.Thread(target=server.serve_forever, name="http", daemon=True).start()
    return server


def _etag(status: Mapping[str, Any]) -> str:
    """Of everything except the time of the report."""
    content = {name: value for name, value in status.items() if name != "reportedAt"}
    return f'"{hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]}"'
