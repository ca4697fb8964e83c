"""The last requests of objects that are encoded: some at a time, while the next object is encoded.

A folder for each of many values makes many small objects, and a store takes longer to answer than they take to encode.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from s3sink_job.flush.manifest import ObjectEntry
from s3sink_job.stores.share import PARALLEL

MOST_SENDING = 32 * 2**20
"""Bytes that are on their way together; an object that has more goes alone."""


@dataclass
class Sending:
    _threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(PARALLEL))
    _under_way: deque[tuple[Future[ObjectEntry], int]] = field(default_factory=deque)
    _held: int = 0

    def __len__(self) -> int:
        """How many are under way."""
        return len(self._under_way)

    def begin(self, send: Callable[[], ObjectEntry], size: int) -> Iterator[ObjectEntry]:
        """Waits until there is room. Gives what was sent by then, in the order in which it was begun."""
        while self._under_way and (len(self) >= PARALLEL or self._held + size > MOST_SENDING):
            yield self._oldest()
        self._under_way.append((self._threads.submit(send), size))
        self._held += size

    def rest(self) -> Iterator[ObjectEntry]:
        while self._under_way:
            yield self._oldest()

    def end(self) -> None:
        """Nothing is under way after this, whatever came of it."""
        wait([sent for sent, _ in self._under_way])
        self._under_way.clear()
        self._threads.shutdown()

    def _oldest(self) -> ObjectEntry:
        sent, size = self._under_way.popleft()
        self._held -= size
        return sent.result()
