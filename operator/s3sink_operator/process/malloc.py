"""Limits the freed memory that glibc keeps: by default nearly all that the operator needed at its start."""

from __future__ import annotations

import ctypes

_M_ARENA_MAX = -8
_ARENAS = 2


def limit_arenas() -> None:
    """To be called before the first thread, since each gets an arena. Other C libraries lack this function."""
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(_M_ARENA_MAX, _ARENAS)


def trim() -> None:
    if malloc_trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        malloc_trim(0)
