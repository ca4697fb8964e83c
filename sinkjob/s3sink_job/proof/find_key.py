"""`s3sink find --key`: every written record with a key.

Objects that hold keys are read. For all others the records in Kafka are read once more, and assigned to their objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from s3sink_job.base.errors import FinalError, S3SinkError
from s3sink_job.commit.ledger import Ledger
from s3sink_job.flush.manifest import ObjectEntry
from s3sink_job.flush.state import SinkState
from s3sink_job.proof.find_offset import FoundRecord
from s3sink_job.proof.flush_history import FlushHistory, PartitionGeneration, WrittenObject, read_history
from s3sink_job.proof.kafka_comparison import comparable_partitions
from s3sink_job.proof.kafka_records import KafkaRecords
from s3sink_job.proof.object_contents import read_rows
from s3sink_job.proof.replays import replay_history, with_replays
from s3sink_job.proof.stored_fields import holds_key, rows_with_key
from s3sink_job.stores.bucket import Bucket


@dataclass(frozen=True)
class FoundKey:
    records: tuple[FoundRecord, ...]
    """Oldest first."""
    searched: int
    """Objects."""
    unsearched: int
    """Objects that do not hold keys, and whose records were not read from Kafka."""
    why_unsearched: str = ""


@dataclass(frozen=True)
class KeyFinder:
    bucket: Bucket
    kafka: KafkaRecords
    state: SinkState
    topic: str
    partition: int | None
    """None for all of them: which one a key is in is the producer's choice."""
    key: str

    def find(self, ledger: Ledger) -> FoundKey:
        if self.topic not in self.state.topics:
            raise FinalError(f"the sink has not read a topic {self.topic}", reason="NotRead")
        history = self._own(with_replays(read_history(ledger.current(self.state)), replay_history(ledger, self.state)))
        holding = [written for written in history.objects if holds_key(written.encoding)]
        others = {written.entry.key for written in history.objects if not holds_key(written.encoding)}
        records, covered, why = list(self._in_objects(holding)), set[str](), ""
        if others:
            try:
                more, covered = self._in_kafka(history, ledger, others)
                records += more
                why = "Kafka no longer has their records" if others - covered else ""
            except S3SinkError as error:
                why = str(error)
        replayed = {(_place(o), offset) for o in history.objects for offset in o.entry.offsets}
        # Once replayed, a dead letter is found in its object of data.
        records = [one for one in records if not (one.written.entry.letters and (one.place, one.offset) in replayed)]
        records.sort(key=lambda record: (record.place, record.written.entry.first, record.row or 0))
        return FoundKey(tuple(records), len(holding) + len(covered), len(others - covered), why)

    def _own(self, history: FlushHistory) -> FlushHistory:
        own = {
            place: known
            for place, known in history.partitions.items()
            if place.topic == self.topic and self.partition in {None, place.partition}
        }
        return replace(history, partitions=own)

    def _in_objects(self, objects: Iterable[WrittenObject]) -> Iterator[FoundRecord]:
        for written in objects:
            entry = written.entry
            found = read_rows(self.bucket.named(entry.bucket), entry, written.encoding)
            for row in rows_with_key(found, written.encoding, self.key) if found is not None else ():
                yield FoundRecord(_place(written), _offset_of(entry, row), written, row)

    def _in_kafka(self, history: FlushHistory, ledger: Ledger, others: set[str]) -> tuple[list[FoundRecord], set[str]]:
        """The records in objects that do not hold keys, and those of these objects that were covered."""
        own = replace(self.state, topics={self.topic: self.state.topics[self.topic]})
        partitions = comparable_partitions(own, history, self.kafka.admin, ledger)
        expected = {
            at: one.expected
            for at, one in partitions.items()
            if any(written.entry.key in others for written in one.expected.objects)
        }
        if not expected:
            return [], set()
        found = []
        for match in self.kafka.with_key(expected, [partitions[at].slice for at in expected], self.key.encode()):
            written = expected[match.at].objects[match.number]
            if written.entry.key in others:
                row = None if expected[match.at].compacted else match.row
                found.append(FoundRecord(_place(written), match.offset, written, row))
        return found, {w.entry.key for one in expected.values() for w in one.objects} & others


def _offset_of(entry: ObjectEntry, row: int) -> int | None:
    """None if offsets without records may lie between."""
    if entry.offsets:
        return entry.offsets[row]
    return entry.first + row if entry.rows == entry.last - entry.first + 1 else None


def _place(written: WrittenObject) -> PartitionGeneration:
    return PartitionGeneration(written.entry.topic, written.entry.generation, written.entry.partition)
