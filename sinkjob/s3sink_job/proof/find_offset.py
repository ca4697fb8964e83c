"""`s3sink find --offset`: which object holds a record, at which row, or what became of it instead.

State and manifests decide first. If several objects may hold the record, or offsets without records lie between, then
the objects are read if they hold offsets, or else the records in Kafka.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from s3sink_job.base.errors import S3SinkError
from s3sink_job.base.times import iso
from s3sink_job.commit.ledger import Ledger
from s3sink_job.flush.manifest import Slice, number_of
from s3sink_job.flush.refresh import last_replaced
from s3sink_job.flush.state import SinkState
from s3sink_job.proof.flush_history import FilteredRange, PartitionGeneration, WrittenObject
from s3sink_job.proof.kafka_records import KafkaRecords
from s3sink_job.proof.object_contents import read_rows
from s3sink_job.proof.record_location import NO_RECORD, Location, Outcome, locate
from s3sink_job.proof.records_by_object import ExpectedPartition
from s3sink_job.proof.replays import replay_history
from s3sink_job.proof.search_task import NO_OBJECT
from s3sink_job.proof.stored_fields import holds_offset, rows_with_offset
from s3sink_job.stores.bucket import Bucket
from s3sink_job.task.encoding_documents import encoding_from_doc

NOT_IN_KAFKA = "Kafka no longer has its record"


@dataclass(frozen=True)
class FoundRecord:
    """A record in an object. `row` counts from 0, and is None if it cannot be determined."""

    place: PartitionGeneration
    offset: int | None
    written: WrittenObject
    row: int | None


@dataclass(frozen=True)
class FoundOffset:
    location: Location
    record: FoundRecord | None = None


@dataclass(frozen=True)
class OffsetFinder:
    bucket: Bucket
    kafka: KafkaRecords
    state: SinkState
    place: PartitionGeneration
    offset: int

    def find(self, ledger: Ledger) -> FoundOffset:
        location = locate(self.state, ledger.history(self.state), self.place, self.offset)
        if self._was_removed(location):
            text = f"{location.text}. A full refresh has replaced and removed it"
            return FoundOffset(replace(location, outcome=Outcome.REMOVED, text=text))
        if location.outcome is Outcome.SKIPPED:
            return FoundOffset(replace(location, text=f"{location.text}: {self._fault(location)}"))
        if location.outcome is Outcome.DEAD_LETTER:
            return self._replayed(ledger, location) or self._dead_letter(location)
        if location.outcome is Outcome.NO_RECORD:
            return self._absent(location)
        if location.outcome is not Outcome.IN_OBJECT:
            return FoundOffset(location)
        first, *others = location.objects
        if not others and first.entry.rows == first.entry.last - first.entry.first + 1:
            # Every offset of the object has its row.
            return self._found(location, first, self.offset - first.entry.first)
        try:
            if all(holds_offset(written.encoding) for written in location.objects):
                return self._by_stored_offsets(location)
            return self._by_records(location)
        except S3SinkError as error:
            return self._undecided(location, str(error))

    def _was_removed(self, location: Location) -> bool:
        if location.flush is None or not location.objects:
            return False
        return location.flush.number <= number_of(last_replaced(self.state))

    def _found(self, location: Location, written: WrittenObject, row: int | None) -> FoundOffset:
        return FoundOffset(location, FoundRecord(self.place, self.offset, written, row))

    def _replayed(self, ledger: Ledger, location: Location) -> FoundOffset | None:
        """The object of data that a replay wrote the dead letter to; None if there is none."""
        for written in replay_history(ledger, self.state).of(self.place).replayed:
            if self.offset in written.entry.offsets:
                text = f"{location.text}. Replayed since: it is in this object of data"
                found = replace(location, outcome=Outcome.IN_OBJECT, text=text)
                return self._found(found, written, written.entry.offsets.index(self.offset))
        return None

    def _dead_letter(self, location: Location) -> FoundOffset:
        if location.part is None or not location.objects:
            return FoundOffset(location)
        written = location.objects[0]
        row = sum(written.entry.first <= offset < self.offset for offset in location.part.letters)
        return self._found(location, written, row)

    def _by_stored_offsets(self, location: Location) -> FoundOffset:
        gone = []
        for written in location.objects:
            found = read_rows(self.bucket.named(written.entry.bucket), written.entry, written.encoding)
            if found is None:
                gone.append(written)
                continue
            for row in rows_with_offset(found, written.encoding, written.entry, self.offset):
                return self._found(location, written, row)
        if gone:
            return self._undecided(replace(location, objects=tuple(gone)), "not in the bucket any more")
        return self._absent(location)

    def _by_records(self, location: Location) -> FoundOffset:
        """Assigns Kafka's records to the objects, as far as the offset."""
        objects = tuple(sorted(location.objects, key=lambda written: written.entry.first))
        start, earliest = objects[0].entry.first, self.kafka.earliest(self.state, self.place)
        if earliest is None or earliest > self.offset:
            return self._undecided(location, NOT_IN_KAFKA)
        compacted = self.place.topic in self.kafka.admin.compacted([self.place.topic])
        expected = ExpectedPartition(
            objects=objects,
            left_out=frozenset((*location.part.skipped, *location.part.letters) if location.part else ()),
            without_tombstones=((start, self.offset + 1),) if objects[0].encoding.shape.nulls == "Skip" else (),
            filters=self._filters(location),
        )
        slice = Slice(*self.place, max(start, earliest), self.offset + 1, "Find")
        for match in self.kafka.with_offset(expected, slice):
            if match.number == NO_OBJECT:
                return _filtered(location)
            written = objects[match.number]
            countable = written.entry.first >= earliest and not compacted
            return self._found(location, written, match.row if countable else None)
        if compacted:
            return self._undecided(location, "the topic is compacted, and Kafka has no record there now")
        return _no_record(location)

    def _filters(self, location: Location) -> tuple[FilteredRange, ...]:
        part, flush = location.part, location.flush
        if part is None or flush is None or not part.filtered:
            return ()
        encoding = encoding_from_doc(flush.encoding_of(self.place.topic)).with_input_types(part.inputs)
        return (FilteredRange(part.start, part.end, part.filtered, encoding),)

    def _absent(self, location: Location) -> FoundOffset:
        """In no object. If its flush left records out, Kafka tells whether it is one of them."""
        if not (filters := self._filters(location)):
            return _no_record(location)
        try:
            earliest = self.kafka.earliest(self.state, self.place)
            if earliest is None or earliest > self.offset:
                return self._undecided(replace(location, objects=()), NOT_IN_KAFKA)
            expected = ExpectedPartition(objects=(), left_out=frozenset(), filters=filters)
            found = self.kafka.with_offset(expected, Slice(*self.place, self.offset, self.offset + 1, "Find"))
        except S3SinkError as error:
            return self._undecided(replace(location, objects=()), str(error))
        return _filtered(location) if found else _no_record(location)

    def _undecided(self, location: Location, why: str) -> FoundOffset:
        if not location.objects:
            text = f"in no object: left out by the transform, or without a record: {why}"
            return FoundOffset(replace(location, outcome=Outcome.UNDECIDED, text=text))
        text = f"in one of {len(location.objects)} objects, or without a record: {why}"
        if len(location.objects) == 1:
            text = f"in this object at an unknown row, or without a record: {why}"
        return FoundOffset(replace(location, outcome=Outcome.UNDECIDED, text=text))

    def _fault(self, location: Location) -> str:
        assert location.flush is not None
        encoding = encoding_from_doc(location.flush.encoding_of(self.place.topic))
        try:
            earliest = self.kafka.earliest(self.state, self.place)
            if earliest is None or earliest > self.offset:
                return f"the reason is not known, since {NOT_IN_KAFKA}"
            fault = self.kafka.fault(encoding, Slice(*self.place, self.offset, self.offset + 1, "Find"))
        except S3SinkError as error:
            return f"the reason is not known: {error}"
        return fault or "the reason is not known: the record decodes now"


def _filtered(location: Location) -> FoundOffset:
    assert location.flush is not None
    text = f"left out by spec.transform, as it was at {iso(location.flush.committed_at)}"
    return FoundOffset(replace(location, outcome=Outcome.FILTERED, text=text, objects=()))


def _no_record(location: Location) -> FoundOffset:
    return FoundOffset(replace(location, outcome=Outcome.NO_RECORD, text=NO_RECORD, objects=()))
