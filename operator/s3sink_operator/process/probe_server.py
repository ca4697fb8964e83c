"""The HTTP server for /metrics, /healthz and /readyz."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from s3sink_api import ports
from s3sink_operator.process.watch_liveness import WatchLiveness


def serve(address: tuple[str, int], registry: CollectorRegistry, liveness: WatchLiveness) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            match self.path.split("?")[0]:
                case ports.METRICS:
                    self._answer(200, CONTENT_TYPE_LATEST, generate_latest(registry))
                case ports.HEALTH:
                    stalled = liveness.stalled()
                    text = f"no events or watch restarts from: {', '.join(stalled)}\n" if stalled else "ok\n"
                    self._answer(503 if stalled else 200, "text/plain", text.encode())
                case ports.READY if liveness.ready:
                    self._answer(200, "text/plain", b"ok\n")
                case ports.READY:
                    self._answer(503, "text/plain", b"starting: not every watch has begun\n")
                case _:
                    text = f"try {ports.METRICS}, {ports.HEALTH} or {ports.READY}\n"
                    self._answer(404, "text/plain", text.encode())

        def _answer(self, code: int, content_type: str, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """No access log: probes come every few seconds."""

    server = ThreadingHTTPServer(address, Handler)
    threading.Thread(target=server.serve_forever, name="http", daemon=True).start()
    return server
