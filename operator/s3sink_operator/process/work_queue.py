"""Sinks that wait for their reconciliation: each at most once, and never two workers on one sink."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from s3sink_operator.values.objects import SinkKey


class WorkQueue:
    """For one event loop; not for threads. `waited` gets the seconds that each sink waited."""

    def __init__(self, waited: Callable[[float], None] = lambda _: None) -> None:
        self._waiting: deque[SinkKey] = deque()
        self._since: dict[SinkKey, float] = {}
        self._active: set[SinkKey] = set()
        self._timers: dict[SinkKey, asyncio.TimerHandle] = {}
        self._ready = asyncio.Event()
        self._waited = waited

    def add(self, key: SinkKey) -> None:
        if key not in self._since:
            self._waiting.append(key)
            self._since[key] = asyncio.get_running_loop().time()
        self._ready.set()

    def add_later(self, key: SinkKey, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= loop.time() + seconds:
                return
            timer.cancel()
        self._timers[key] = loop.call_later(seconds, self._fire, key)

    async def get(self) -> SinkKey:
        """The next sink that no worker has. Call `done` afterwards."""
        while True:
            for _ in range(len(self._waiting)):
                key = self._waiting.popleft()
                if key in self._active:
                    self._waiting.append(key)
                    continue
                self._active.add(key)
                self._waited(asyncio.get_running_loop().time() - self._since.pop(key))
                return key
            self._ready.clear()
            await self._ready.wait()

    def done(self, key: SinkKey) -> None:
        self._active.discard(key)
        if key in self._since:
            self._ready.set()

    def cancel_timer(self, key: SinkKey) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def _fire(self, key: SinkKey) -> None:
        self._timers.pop(key, None)
        self.add(key)
