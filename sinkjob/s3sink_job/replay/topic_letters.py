"""Dead letters in a Kafka topic: read in parts, and told apart from records of others by their headers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_api.spec import S3Sink
from s3sink_job.flush.manifest import Slice, number_of
from s3sink_job.kafka.admin import KafkaUnavailable
from s3sink_job.kafka.letter_topic import CONTEXT
from s3sink_job.kafka.slice_reader import JobFailed, collect_table, read_slices
from s3sink_job.proof.flush_history import PartitionGeneration
from s3sink_job.proof.kafka_records import KafkaAccess
from s3sink_job.replay.letters import StoredLetter
from s3sink_job.replay.outstanding import Outstanding

OFFSETS_AT_ONCE = 2_000
LOG_APPEND_TIME = 1
"""Kafka's number for records with the time at which the broker stored them."""


class LetterContext(NamedTuple):
    """What the headers of a dead letter say."""

    sink: str
    flush: str
    place: PartitionGeneration
    offset: int
    reason: str


@dataclass(frozen=True)
class Others:
    """Records that are not replayed, because they are no dead letters of this sink."""

    count: int = 0
    first: str = ""
    """Why the first of them is none."""

    def __add__(self, other: Others) -> Others:
        return Others(self.count + other.count, self.first or other.first)


@dataclass(frozen=True)
class LetterTopicReader:
    kafka: KafkaAccess
    sink: S3Sink
    topic: str
    known: Outstanding

    def others(self) -> Others:
        """Reads no payload."""
        found = Others()
        for part in self._parts():
            for row in self._rows(part, ("headers", "timestampType")):
                if why := self._why_not(row):
                    found += Others(1, f"{self.topic}-{row['partition']} offset {row['offset']} {why}")
        return found

    def parts(self) -> Iterator[list[StoredLetter]]:
        """The dead letters of this sink, some at a time."""
        for part in self._parts():
            found = (self._letter(row) for row in self._rows(part, COLUMNS))
            yield [letter for letter in found if letter is not None]

    def _why_not(self, row: Mapping[str, Any]) -> str:
        """Empty for a dead letter of this sink. A flush that was committed since is this sink's as well."""
        context = context_of(row["headers"] or [])
        if context is None:
            return "has no headers of s3sink: another program sent it"
        if not (self.known.sent_by(context.sink, context.flush, context.place, context.offset) or self._later(context)):
            return f"is a dead letter of the sink {context.sink}, and no flush of this sink lists it"
        if row["timestampType"] == LOG_APPEND_TIME:
            return "has the time at which it was sent, not that of its record: the topic has LogAppendTime"
        return ""

    def _later(self, context: LetterContext) -> bool:
        return context.sink == self.sink.id and number_of(context.flush) > self.known.flush

    def _letter(self, row: Mapping[str, Any]) -> StoredLetter | None:
        context = context_of(row["headers"] or [])
        if context is None or self._why_not(row) or self._later(context):
            return None
        headers = [(header["key"], header["value"]) for header in row["headers"][: -len(CONTEXT)]]
        return StoredLetter(
            *(context.place, context.offset, row["timestamp"], row["key"], row["value"], headers, context.reason)
        )

    def _parts(self) -> Iterator[Slice]:
        """Of a topic that was deleted none: its dead letters are gone."""
        known = self.kafka.admin.describe([self.topic])[self.topic]
        wanted = [(self.topic, number) for number in known.partitions] if known else []
        ends = self.kafka.admin.offsets(wanted, committed=True) if wanted else {}
        if silent := [f"{self.topic}-{at[1]}" for at in wanted if at not in ends]:
            raise KafkaUnavailable(f"Kafka returns no offsets of {', '.join(silent)}, which may have dead letters")
        for (topic, partition), offsets in sorted(ends.items()):
            for start in range(offsets.earliest, offsets.stable, OFFSETS_AT_ONCE):
                end = min(start + OFFSETS_AT_ONCE, offsets.stable)
                yield Slice(topic, 1, partition, start, end, "Replay")

    def _rows(self, part: Slice, columns: tuple[str, ...]) -> list[dict[str, Any]]:
        try:
            table = self._read(part, columns)
        except JobFailed as error:
            length = part.end - part.start
            if "maxResultSize" not in str(error) or length < 2:
                raise
            # Large records: half of them at a time.
            middle = part.start + length // 2
            halves = (replace(part, end=middle), replace(part, start=middle))
            return [row for half in halves for row in self._rows(half, columns)]
        if "timestamp" in columns:
            times = pc.divide(table.column("timestamp").cast(pa.int64()), 1_000)
            table = table.set_column(table.schema.get_field_index("timestamp"), "timestamp", times)
        rows: list[dict[str, Any]] = table.to_pylist()
        return rows

    def _read(self, part: Slice, columns: tuple[str, ...]) -> pa.Table:
        metadata = self.sink.metadata
        frame = read_slices(
            self.kafka.spark,
            [part],
            self.kafka.connection,
            columns=columns,
            group=f"s3sink.{metadata.namespace}.{metadata.name}.replay",
            isolation="ReadCommitted",
        )
        return collect_table(frame, f"reading dead letters of the topic {self.topic}")


COLUMNS = ("key", "value", "timestamp", "timestampType", "headers")


def context_of(headers: Sequence[Mapping[str, Any]]) -> LetterContext | None:
    """What the last headers say of the error; None if they are not those of s3sink."""
    last = headers[-len(CONTEXT) :]
    if [header["key"] for header in last] != list(CONTEXT):
        return None
    try:
        named = {name: (header["value"] or b"").decode() for name, header in zip(CONTEXT.values(), last, strict=True)}
        place = PartitionGeneration(named["topic"], int(named["generation"]), int(named["partition"]))
        number_of(named["flush"])
        return LetterContext(named["sink"], named["flush"], place, int(named["offset"]), named["reason"])
    except ValueError:
        return None
