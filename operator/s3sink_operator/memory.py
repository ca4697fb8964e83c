"""What the C library keeps of freed memory: by default nearly all of what was read when the operator started."""

from __future__ import annotations

import ctypes

_M_ARENA_MAX = -8
_ARENAS = 2


def keep_little() -> None:
    """Before the first thread: each would get an arena of its own. Other C libraries than glibc know no such thing."""
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(_M_ARENA_MAX, _ARENAS)


def give_back() -> None:
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)
