"""What stops a partition."""

from __future__ import annotations

from dataclasses import dataclass

UNAVAILABLE = "PartitionUnavailable"
"""Kafka does not answer for the partition: it has no leader, or the request timed out."""


@dataclass(frozen=True)
class Problem:
    """A reason word for conditions and metrics, and a message for people."""

    reason: str
    message: str
