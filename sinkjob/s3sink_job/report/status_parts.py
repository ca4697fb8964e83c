"""Parts of the status, from the sink's state and from the lag of its partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from s3sink_api.status import (
    DeadLetterStatus,
    GapsStatus,
    GapStatus,
    LagStatus,
    PartitionOffsets,
    RefreshStatus,
    ResetStatus,
    WorstLag,
)
from s3sink_job.base.times import iso
from s3sink_job.flush.kafka_metadata import Offsets, TopicPartition
from s3sink_job.flush.refresh import replaced_totals, written_totals
from s3sink_job.flush.state import SinkState


@dataclass(frozen=True)
class PartitionLag:
    topic: str
    partition: int
    committed: int
    end: int
    """The readable end."""
    behind: int
    to_high_watermark: int
    age: float
    """Seconds that it has been behind."""

    @classmethod
    def of(
        cls, at: TopicPartition, committed: int, offsets: Offsets, since: Mapping[TopicPartition, float], now: float
    ) -> PartitionLag:
        behind, to_end = max(0, offsets.stable - committed), max(0, offsets.end - committed)
        age = max(0.0, now - since[at]) if behind else 0.0
        return cls(*at, committed, offsets.stable, behind, to_end, age)


def lag_status(partitions: Sequence[PartitionLag]) -> LagStatus:
    """Of partitions, the one furthest behind first."""
    worst = partitions[0] if partitions and partitions[0].behind else None
    return LagStatus(
        records=sum(p.behind for p in partitions),
        records_to_high_watermark=sum(p.to_high_watermark for p in partitions),
        seconds=round(max((p.age for p in partitions), default=0.0), 1),
        worst=WorstLag(topic=worst.topic, partition=worst.partition, records=worst.behind) if worst else None,
    )


def offsets_status(p: PartitionLag) -> PartitionOffsets:
    return PartitionOffsets(topic=p.topic, partition=p.partition, committed=p.committed, end=p.end, lag=p.behind)


def gaps_status(state: SinkState) -> GapsStatus:
    recent = tuple(
        GapStatus(topic=gap.topic, partition=gap.partition, from_=gap.start, to=gap.end, reason=gap.reason)
        for gap in state.recent_gaps
    )
    return GapsStatus(count=state.totals.gaps, records=state.totals.gap_offsets, recent=recent)


def last_letter_status(state: SinkState) -> DeadLetterStatus | None:
    letter = state.letters.last
    if letter is None:
        return None
    return DeadLetterStatus(
        topic=letter.topic,
        partition=letter.partition,
        offset=letter.offset,
        reason=letter.reason,
        message=letter.message,
        time=iso(state.letters.at),
    )


def reset_status(state: SinkState) -> ResetStatus | None:
    return ResetStatus(nonce=state.resets[-1].nonce, time=iso(state.resets[-1].at)) if state.resets else None


def refresh_status(state: SinkState) -> RefreshStatus | None:
    refresh = state.refresh
    if refresh is None or not refresh.run:
        return None
    written, replaced = written_totals(state), replaced_totals(state)
    return RefreshStatus(
        run=refresh.run,
        phase=refresh.phase,
        start_time=iso(refresh.began),
        current_time=iso(refresh.current_at) if refresh.current_at else None,
        records=written.records,
        objects=written.objects,
        replaced_records=replaced.records,
        replaced_objects=replaced.objects,
        replaced_bytes=replaced.bytes,
        unremoved_objects=refresh.unremoved,
    )
