"""/metrics, /healthz and /readyz of the operator, and the pulse that /healthz listens to.

The API server ends every watch after a short time, so that a new one must begin. As long as that goes on, events
would arrive; when it stops, nothing does, and nobody would notice: a restart is the only cure.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import aiohttp
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest

Watched = tuple[str, str]
"""A namespace, or nothing for all of them, and the plural of a kind."""


class Pulse:
    """When each watch was heard of last."""

    def __init__(
        self, watches: tuple[Watched, ...], dead_after: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._dead_after = dead_after
        self._heard = dict.fromkeys(watches, clock())
        self._begun: set[Watched] = set()
        self._lock = threading.Lock()

    def begin(self) -> None:
        """The time that watches may be silent counts from now: there are none before the operator has what it needs."""
        with self._lock:
            self._heard = dict.fromkeys(self._heard, self._clock())

    def beat(self, path: str) -> None:
        watch = _watched(path)
        with self._lock:
            if watch in self._heard:
                self._heard[watch] = self._clock()
                self._begun.add(watch)

    def silent(self) -> list[str]:
        """What the dead watches look at."""
        now = self._clock()
        with self._lock:
            dead = [watch for watch, heard in self._heard.items() if now - heard > self._dead_after]
        return [f"{plural} in {namespace}" if namespace else plural for namespace, plural in dead]

    def longest_silence(self) -> float:
        """Seconds since the quietest watch was heard of."""
        with self._lock:
            now = self._clock()
            return max((now - heard for heard in self._heard.values()), default=0.0)

    @property
    def ready(self) -> bool:
        """Every watch has begun."""
        with self._lock:
            return len(self._begun) == len(self._heard)

    def trace(self, listed: Callable[[], None] = lambda: None) -> aiohttp.TraceConfig:
        """Beats with every answer to a watch and with everything that arrives on it. Tells of lists, too."""

        async def answered(_session: object, _context: object, params: aiohttp.TraceRequestEndParams) -> None:
            if params.response.status != 200:
                return
            if params.url.query.get("watch") == "true":
                self.beat(params.url.path)
            elif _watched(params.url.path) in self._heard:
                listed()

        async def received(
            _session: object, _context: object, params: aiohttp.TraceResponseChunkReceivedParams
        ) -> None:
            if params.url.query.get("watch") == "true":
                self.beat(params.url.path)

        config = aiohttp.TraceConfig()
        config.on_request_end.append(answered)
        config.on_response_chunk_received.append(received)
        return config


def _watched(path: str) -> Watched:
    *before, plural = path.rstrip("/").split("/")
    return (before[-1] if before[-2:-1] == ["namespaces"] else "", plural)


def measure(pulse: Pulse, registry: CollectorRegistry) -> None:
    """Shows the silence before it costs a restart, too."""
    silence = Gauge(
        "s3sink_operator_watch_silent_seconds",
        "How long the quietest watch has not been heard of.",
        registry=registry,
    )
    silence.set_function(pulse.longest_silence)


def serve(address: tuple[str, int], registry: CollectorRegistry, pulse: Pulse) -> ThreadingHTTPServer:
    measure(pulse, registry)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            match self.path.split("?")[0]:
                case "/metrics":
                    self._answer(200, CONTENT_TYPE_LATEST, generate_latest(registry))
                case "/healthz":
                    silent = pulse.silent()
                    text = f"no word from the watch of {', '.join(silent)}\n" if silent else "ok\n"
                    self._answer(503 if silent else 200, "text/plain", text.encode())
                case "/readyz":
                    self._answer(200 if pulse.ready else 503, "text/plain", b"ok\n" if pulse.ready else b"starting\n")
                case _:
                    self._answer(404, "text/plain", b"try /metrics, /healthz or /readyz\n")

        def _answer(self, code: int, kind: str, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Probes every few seconds would drown the log."""

    server = ThreadingHTTPServer(address, Handler)
    threading.Thread(target=server.serve_forever, name="http", daemon=True).start()
    return server
