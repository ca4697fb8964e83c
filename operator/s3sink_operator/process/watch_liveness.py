"""Whether every watch is still alive, for /healthz and /readyz.

The API server ends every watch after a short time, and kopf starts a new one. If that stops happening, no event
arrives any more and nothing fails. Only a restart of the process helps then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

import aiohttp
from prometheus_client import CollectorRegistry, Gauge


class WatchKey(NamedTuple):
    namespace: str
    """Empty for all namespaces."""
    plural: str


class WatchLiveness:
    """When there was last activity on each watch."""

    def __init__(
        self, watches: tuple[WatchKey, ...], dead_after: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._dead_after = dead_after
        self._active_at = dict.fromkeys(watches, clock())
        self._started: set[WatchKey] = set()
        self._lock = threading.Lock()

    def reset(self) -> None:
        """Counts silence from now on: before the operator can watch, there are no watches."""
        with self._lock:
            self._active_at = dict.fromkeys(self._active_at, self._clock())

    def record_activity(self, path: str) -> None:
        watch = _watch_of(path)
        with self._lock:
            if watch in self._active_at:
                self._active_at[watch] = self._clock()
                self._started.add(watch)

    def stalled(self) -> list[str]:
        now = self._clock()
        with self._lock:
            dead = [watch for watch, at in self._active_at.items() if now - at > self._dead_after]
        return [f"{watch.plural} in {watch.namespace}" if watch.namespace else watch.plural for watch in dead]

    def longest_silence(self) -> float:
        """Seconds since the last activity of the quietest watch."""
        with self._lock:
            now = self._clock()
            return max((now - at for at in self._active_at.values()), default=0.0)

    @property
    def ready(self) -> bool:
        """Every watch has started."""
        with self._lock:
            return len(self._started) == len(self._active_at)

    def trace_config(self, relisted: Callable[[], None] = lambda: None) -> aiohttp.TraceConfig:
        """Records answers and data of kopf's watch requests. Calls `relisted` when kopf lists objects."""

        async def answered(_session: object, _context: object, params: aiohttp.TraceRequestEndParams) -> None:
            if params.response.status != 200:
                return
            if params.url.query.get("watch") == "true":
                self.record_activity(params.url.path)
            elif _watch_of(params.url.path) in self._active_at:
                relisted()

        async def received(
            _session: object, _context: object, params: aiohttp.TraceResponseChunkReceivedParams
        ) -> None:
            if params.url.query.get("watch") == "true":
                self.record_activity(params.url.path)

        config = aiohttp.TraceConfig()
        config.on_request_end.append(answered)
        config.on_response_chunk_received.append(received)
        return config

    def export(self, registry: CollectorRegistry) -> None:
        """Shows the silence before it leads to a restart."""
        silence = Gauge(
            "s3sink_operator_watch_silent_seconds",
            "Seconds since the last activity of the quietest watch.",
            registry=registry,
        )
        silence.set_function(self.longest_silence)


def _watch_of(path: str) -> WatchKey:
    *before, plural = path.rstrip("/").split("/")
    return WatchKey(before[-1] if before[-2:-1] == ["namespaces"] else "", plural)
