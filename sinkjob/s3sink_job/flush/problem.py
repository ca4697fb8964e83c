"""What keeps a partition from going on."""

from __future__ import annotations

from dataclasses import dataclass

UNAVAILABLE = "PartitionUnavailable"
"""The reason of a partition that Kafka cannot tell of now: it has no leader, or does not answer."""


@dataclass(frozen=True)
class Problem:
    """In a word for machines and a sentence for people."""

    reason: str
    message: str
