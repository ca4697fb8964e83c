"""The driver's HTTP side: `/status` for the operator, `/metrics` for Prometheus, `/healthz` for the kubelet."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from s3sink_job.report.reporter import Reporter


def serve(reporter: Reporter, address: tuple[str, int], healthy: Callable[[], bool]) -> ThreadingHTTPServer:
    """Serves until `shutdown()`. `healthy` says whether the driver's loop still turns."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            match self.path.split("?")[0]:
                case "/status":
                    self._answer(200, "application/json", json.dumps(reporter.status()).encode())
                case "/metrics":
                    self._answer(200, CONTENT_TYPE_LATEST, generate_latest(reporter.metrics.registry))
                case "/healthz":
                    ok = healthy()
                    self._answer(200 if ok else 503, "text/plain", b"ok\n" if ok else b"the loop hangs\n")
                case _:
                    self._answer(404, "text/plain", b"try /status, /metrics or /healthz\n")

        def _answer(self, code: int, kind: str, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Scrapes every few seconds would drown the log."""

    server = ThreadingHTTPServer(address, Handler)
    threading.Thread(target=server.serve_forever, name="http", daemon=True).start()
    return server
