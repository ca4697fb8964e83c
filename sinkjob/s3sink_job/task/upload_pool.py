"""Sends finished objects in parallel while the next one is encoded.

Many folders mean many small objects, and the store's answer takes longer than encoding one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from s3sink_job.flush.manifest import ObjectEntry
from s3sink_job.stores.request_limit import PARALLEL

MOST_IN_FLIGHT = 32 * 2**20
"""Bytes that are sent at a time. A larger object is sent alone."""


@dataclass
class UploadPool:
    _threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(PARALLEL))
    _in_flight: deque[tuple[Future[ObjectEntry], int]] = field(default_factory=deque)
    _bytes: int = 0

    def __len__(self) -> int:
        """Objects in flight."""
        return len(self._in_flight)

    def begin(self, send: Callable[[], ObjectEntry], size: int) -> Iterator[ObjectEntry]:
        """Waits until there is room. Yields the objects that were sent by then, in the order of their start."""
        while self._in_flight and (len(self) >= PARALLEL or self._bytes + size > MOST_IN_FLIGHT):
            yield self._oldest()
        self._in_flight.append((self._threads.submit(send), size))
        self._bytes += size

    def rest(self) -> Iterator[ObjectEntry]:
        while self._in_flight:
            yield self._oldest()

    def end(self) -> None:
        """Waits until nothing is in flight, and ignores the outcome."""
        wait([sent for sent, _ in self._in_flight])
        self._in_flight.clear()
        self._threads.shutdown()

    def _oldest(self) -> ObjectEntry:
        sent, size = self._in_flight.popleft()
        self._bytes -= size
        return sent.result()
