"""The source of choices: Hypothesis, which shrinks a failure, or a seed, which is fast."""

from __future__ import annotations

import random
from functools import cache

from hypothesis import strategies as st


class Drawn:
    def __init__(self, data: st.DataObject) -> None:
        self._data = data

    def pick(self, count: int) -> int:
        return self._data.draw(_below(count))


class Seeded:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def pick(self, count: int) -> int:
        return self._random.randrange(count)


@cache
def _below(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, count - 1)
