"""Threads for blocking calls to the API server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

A = TypeVar("A")
R = TypeVar("R")


class Threads:
    def __init__(self, count: int) -> None:
        self._pool = ThreadPoolExecutor(count, "worker")
        self._running: set[Future[Any]] = set()

    async def run(self, call: Callable[[A], R], argument: A) -> R:
        future = self._pool.submit(call, argument)
        self._running.add(future)
        future.add_done_callback(self._running.discard)
        return await asyncio.wrap_future(future)

    def finish(self, seconds: float) -> None:
        """Waits for calls under way. The next operator completes what they leave undone."""
        wait(list(self._running), seconds)
