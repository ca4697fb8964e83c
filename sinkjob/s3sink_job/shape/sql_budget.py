"""What the expressions of one batch may take: seconds, and bytes of their results. Rows beyond are bad records."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS = 60.0
MOST_BYTES = 2**28
TOO_SLOW = "took too long"
TOO_LARGE = "needs too much memory"


class TooManyBytes(MemoryError):
    def __init__(self, size: int) -> None:
        super().__init__(f"{size} bytes")
        self.size = size


class Budget:
    """Seconds count while it is entered: to wait for a registry between two conditions is no matter of SQL."""

    def __init__(self) -> None:
        self.bytes_left = MOST_BYTES
        self._full = False
        self._seconds = SECONDS
        self._began = 0.0

    def __enter__(self) -> Budget:
        self._began = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self._seconds = self.seconds_left

    @property
    def seconds_left(self) -> float:
        """While it is entered."""
        return self._seconds - (time.monotonic() - self._began)

    def over(self) -> str | None:
        """What there is nothing left of."""
        if self.seconds_left <= 0:
            return TOO_SLOW
        return TOO_LARGE if self._full else None

    def take(self, size: int) -> None:
        """Raises `TooManyBytes`."""
        if size > self.bytes_left:
            raise TooManyBytes(size)
        self.bytes_left -= size

    @contextmanager
    def without_results(self) -> Iterator[None]:
        """For results that are thrown away: only their seconds count."""
        before = self.bytes_left, self._full
        self.bytes_left, self._full = MOST_BYTES, False
        yield
        self.bytes_left, self._full = before

    def fill(self, size: int) -> None:
        """A row needs more than is left. If it would have had room alone, there is no point in trying the next ones."""
        self._full = self._full or size <= MOST_BYTES
