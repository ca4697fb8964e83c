"""Dead letters in a Kafka topic: read in parts, and told apart from records of others by their headers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_api.spec import S3Sink
from s3sink_job.base.errors import FinalError
from s3sink_job.flush.manifest import Slice
from s3sink_job.kafka.letter_topic import CONTEXT, Context
from s3sink_job.kafka.slice_reader import collect_table, read_slices
from s3sink_job.proof.flush_history import PartitionGeneration
from s3sink_job.proof.kafka_records import KafkaAccess
from s3sink_job.replay.letters import StoredLetter

OFFSETS_AT_ONCE = 5_000


@dataclass(frozen=True)
class LetterTopicReader:
    kafka: KafkaAccess
    sink: S3Sink
    topic: str
    sent: Mapping[PartitionGeneration, frozenset[int]]
    """Offsets of the dead letters that the sink sent."""

    def others(self) -> list[str]:
        """Records that are no dead letters of this sink, each with the reason. Reads no payload."""
        return [why for part in self._parts() for why in self._others(part)]

    def parts(self) -> Iterator[list[StoredLetter]]:
        """The dead letters of this sink, some at a time."""
        for part in self._parts():
            found = (self._letter(row) for row in self._rows(part, ("key", "value", "timestamp", "headers")))
            yield [letter for letter in found if letter is not None]

    def _others(self, part: Slice) -> Iterator[str]:
        for row in self._rows(part, ("headers",)):
            context = context_of(row["headers"] or [])
            where = f"{self.topic}-{row['partition']} offset {row['offset']}"
            if context is None:
                yield f"{where} has no headers of s3sink: it was sent by another program, or with headers: false"
            elif not self._is_own(context):
                yield f"{where} is a dead letter of the sink {context['sink']}, and this sink did not send it"

    def _is_own(self, context: Context) -> bool:
        return context["sink"] == self.sink.id and int(context["offset"]) in self.sent.get(_place(context), ())

    def _letter(self, row: dict[str, Any]) -> StoredLetter | None:
        headers = [(header["key"], header["value"]) for header in row["headers"] or ()]
        context = context_of(row["headers"] or [])
        if context is None or not self._is_own(context):
            return None
        own = headers[: -len(CONTEXT)]
        return StoredLetter(
            *(_place(context), int(context["offset"]), row["timestamp"], row["key"], row["value"]),
            headers=own,
            reason=context["reason"],
        )

    def _parts(self) -> Iterator[Slice]:
        known = self.kafka.admin.describe([self.topic])[self.topic]
        if known is None:
            raise FinalError(f"the topic {self.topic} of dead letters does not exist any more", reason="TopicMissing")
        ends = self.kafka.admin.offsets([(self.topic, p) for p in known.partitions], committed=True)
        for (topic, partition), offsets in sorted(ends.items()):
            for start in range(offsets.earliest, offsets.stable, OFFSETS_AT_ONCE):
                end = min(start + OFFSETS_AT_ONCE, offsets.stable)
                yield Slice(topic, 1, partition, start, end, "Replay")

    def _rows(self, part: Slice, columns: tuple[str, ...]) -> list[dict[str, Any]]:
        metadata = self.sink.metadata
        frame = read_slices(
            self.kafka.spark,
            [part],
            self.kafka.connection,
            columns=columns,
            group=f"s3sink.{metadata.namespace}.{metadata.name}.replay",
            isolation="ReadCommitted",
        )
        table = collect_table(frame, f"reading dead letters of the topic {self.topic}")
        if "timestamp" in columns:
            times = pc.divide(table.column("timestamp").cast(pa.int64()), 1_000)
            table = table.set_column(table.schema.get_field_index("timestamp"), "timestamp", times)
        rows: list[dict[str, Any]] = table.to_pylist()
        return rows


def context_of(headers: Sequence[dict[str, Any]]) -> Context | None:
    """What the last headers say of the error; None if they are not those of s3sink."""
    last = headers[-len(CONTEXT) :]
    if [header["key"] for header in last] != list(CONTEXT):
        return None
    return {name: (header["value"] or b"").decode() for name, header in zip(CONTEXT.values(), last, strict=True)}


def _place(context: Context) -> PartitionGeneration:
    return PartitionGeneration(context["topic"], int(context["generation"]), int(context["partition"]))
