"""What was made of schemas that were used last, limited by the length of their texts."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class TextCache(Generic[K, V]):
    """Memory follows the length of a schema, so a limit on their number would limit nothing."""

    def __init__(self, make: Callable[[K], V], size_of: Callable[[K], int], most: int) -> None:
        self._make, self._size_of, self._most = make, size_of, most
        self._kept: dict[K, V] = {}
        """The one used last comes last."""
        self._size = 0

    def of(self, key: K) -> V:
        """Also raises what `make` raises, and keeps nothing then."""
        found = self._kept.pop(key, None)
        if found is None:
            found = self._make(key)
            self._size += self._size_of(key)
        self._kept[key] = found
        while self._size > self._most and len(self._kept) > 1:
            oldest = next(iter(self._kept))
            del self._kept[oldest]
            self._size -= self._size_of(oldest)
        return found
