"""What keeps a partition from going on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """In a word for machines and a sentence for people."""

    reason: str
    message: str
