"""Sinks that want a look: each once, however often it was asked for, and never two looks at one at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from s3sink_operator.model import Key


class WorkQueue:
    """For one event loop; not for threads. `waited` is told how long each key waited for its turn."""

    def __init__(self, waited: Callable[[float], None] = lambda _: None) -> None:
        self._waiting: deque[Key] = deque()
        self._since: dict[Key, float] = {}
        self._active: set[Key] = set()
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._ready = asyncio.Event()
        self._waited = waited

    def add(self, key: Key) -> None:
        if key not in self._since:
            self._waiting.append(key)
            self._since[key] = asyncio.get_running_loop().time()
        self._ready.set()

    def add_later(self, key: Key, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= loop.time() + seconds:
                return
            timer.cancel()
        self._timers[key] = loop.call_later(seconds, self._fire, key)

    async def get(self) -> Key:
        """The next key that nobody works on; give it back with `done`."""
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

    def done(self, key: Key) -> None:
        self._active.discard(key)
        if key in self._since:
            self._ready.set()

    def forget(self, key: Key) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def _fire(self, key: Key) -> None:
        self._timers.pop(key, None)
        self.add(key)
