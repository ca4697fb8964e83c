"""Topics and offsets as Kafka reports them."""

from __future__ import annotations

from dataclasses import dataclass, field

TopicPartition = tuple[str, int]


@dataclass(frozen=True)
class Topic:
    id: str
    """Empty where the broker has no topic ids, as before Kafka 2.8."""
    partitions: tuple[int, ...]
    leaderless: frozenset[int] = field(default=frozenset(), compare=False)
    """Partitions without a leader at this moment."""


@dataclass(frozen=True)
class Offsets:
    """Of a partition. `stable` is the end of what may be read, `end` the high watermark."""

    earliest: int
    stable: int
    end: int
    leader_epoch: int | None = None
    """Of the leader that answered; None where the broker does not report it."""
