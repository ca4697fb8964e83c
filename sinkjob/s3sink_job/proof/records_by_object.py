"""Assigns the records of a partition, as Kafka has them, to the objects that they were written to.

Records come in offset order. Memory holds one object of each group at a time.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.decode.batch_parts import in_parts
from s3sink_job.decode.decoder import Decoder
from s3sink_job.decode.schema_access import NO_ACCESS, SchemaAccess
from s3sink_job.decode.settings import Decoding
from s3sink_job.flush.kafka_metadata import TopicPartition
from s3sink_job.layout.folders import folders_of
from s3sink_job.layout.groups import groups_of
from s3sink_job.layout.keys import MAX_KEY_BYTES
from s3sink_job.layout.settings import Grouping
from s3sink_job.proof.flush_history import FilteredRange, WrittenObject
from s3sink_job.proof.object_contents import SCHEMA_FAULTS, UnreadableRecords
from s3sink_job.shape.row_builder import RowBuilder
from s3sink_job.task.encoding import Encoding


@dataclass(frozen=True)
class ExpectedPartition:
    """What the manifests say of one partition."""

    objects: tuple[WrittenObject, ...]
    """In the order of their first offsets; then those of replayed dead letters."""
    left_out: frozenset[int]
    """Offsets of skipped records, of dead letters in a topic, and of gaps."""
    letters: frozenset[int] = frozenset()
    """Offsets of dead letters in objects."""
    compacted: bool = False
    """Kafka may have dropped records that were written. Then the objects may hold more than Kafka does."""
    without_tombstones: tuple[tuple[int, int], ...] = ()
    """Ranges of offsets whose tombstones were left out."""
    filters: tuple[FilteredRange, ...] = ()
    """Slices whose transform may have left records out."""
    span: tuple[int, int] = (0, 2**63)
    """The offsets that are read."""
    schemas: Mapping[str, str] = field(default_factory=dict)
    """By name: those that objects were written by."""
    sent: pa.Table | None = None
    """Offset, timestamp and digest of the dead letters that are in a topic, in the order of their offsets."""


@dataclass(frozen=True)
class GroupingRules:
    """Only what decides on the group of a record."""

    decoding: Decoding
    grouping: Grouping
    changing: Encoding | None = None
    """If a transform changes the values that folders are made of."""

    @classmethod
    def of(cls, encoding: Encoding) -> GroupingRules:
        changing = encoding.taking_any_change.without_filter
        if changing.transform is not None:
            return cls(encoding.decoding, encoding.grouping.rules, changing)
        return cls(replace(encoding.decoding, supplied=None), encoding.grouping.rules)


@dataclass
class GroupObjects:
    """The objects of one group that are still to be compared, and the records read so far for the first of them."""

    objects: deque[WrittenObject] = field(default_factory=deque)
    records: list[pa.RecordBatch] = field(default_factory=list)


@dataclass
class RecordsByObject(ABC):
    at: TopicPartition
    expected: ExpectedPartition
    access: SchemaAccess = NO_ACCESS
    _groups: dict[tuple[GroupingRules, tuple[str, ...]], GroupObjects] = field(default_factory=dict)
    """By the rules of grouping and the group: other rules give the same names to other groups."""
    _spans: dict[GroupingRules, tuple[int, int]] = field(default_factory=dict)
    """First and last offset of the objects that were grouped by these rules."""
    _builders: dict[Encoding, RowBuilder] = field(default_factory=dict)
    _filtered: Counter[FilteredRange] = field(default_factory=Counter)
    """How many records of each slice its transform leaves out."""

    def __post_init__(self) -> None:
        self._letters = GroupObjects(deque(o for o in self.expected.objects if o.entry.letters))
        replayed = [o for o in self.expected.objects if o.entry.offsets]
        self._replayed = [GroupObjects(deque([written])) for written in replayed]
        self._replayed_offsets = pa.array(sorted(n for o in replayed for n in o.entry.offsets), pa.int64())
        for written in (o for o in self.expected.objects if not (o.entry.letters or o.entry.offsets)):
            entry, rules = written.entry, GroupingRules.of(written.encoding)
            self._groups.setdefault((rules, entry.group), GroupObjects()).objects.append(written)
            first, last = self._spans.get(rules, (entry.first, entry.last))
            self._spans[rules] = (min(first, entry.first), max(last, entry.last))
        self._left_out = pa.array(sorted(self.expected.left_out), pa.int64())
        self._letter_offsets = pa.array(sorted(self.expected.letters), pa.int64())

    @abstractmethod
    def _in_object(self, written: WrittenObject, records: list[pa.RecordBatch]) -> None:
        """All records of an object, in the order of its rows."""

    @abstractmethod
    def _in_no_object(self, batch: pa.RecordBatch) -> None:
        """Records that should be in an object, and are in none."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Assigns the records to objects. A record of no object must have been left out on purpose."""
        self._assign_replayed(batch)
        if len(self._left_out):
            batch = batch.filter(pc.invert(pc.is_in(batch.column("offset"), value_set=self._left_out)))
        batch = self._without_filtered(self._without_tombstones(self._without_letters(batch)))
        for rules, (first, last) in self._spans.items():
            offsets = batch.column("offset")
            if batch.num_rows and pc.min(offsets).as_py() <= last and first <= pc.max(offsets).as_py():
                batch = self._assign(batch, rules)
        self._in_no_object(batch)

    def _assign(self, batch: pa.RecordBatch, rules: GroupingRules) -> pa.RecordBatch:
        """Assigns the records to the objects that were grouped by these rules. Returns the records of no object."""
        left = []
        parts = in_parts(batch, lambda part: list(self._split(part, rules)))
        for name, records in (one for part in parts for one in part):
            group = self._groups.get((rules, name))
            left.append(records if group is None else self._assign_to_group(group, records))
        # In order again: the next rules cut the batch at the ends of objects.
        return pa.concat_batches(left).sort_by("offset") if left else batch

    def _split(self, batch: pa.RecordBatch, rules: GroupingRules) -> Iterator[tuple[tuple[str, ...], pa.RecordBatch]]:
        if rules.changing is None:
            decoded = Decoder(rules.decoding, access=self.access).decode(batch)
        else:
            decoded, _ = self._builder(rules.changing).transformed(batch)
        folders = folders_of(decoded, rules.grouping, *self.at, MAX_KEY_BYTES)
        groups = groups_of(decoded.batch, rules.grouping, folders)
        if missing := next((bad for bad in decoded.bad if bad.reason in SCHEMA_FAULTS), None):
            where = f"{self.at[0]}-{self.at[1]}"
            raise UnreadableRecords(f"{where}: not compared, because its records cannot be read: {missing.message}")
        if groups is None:
            yield (), batch
            return
        for code, group in enumerate(groups.keys):
            yield group, batch.filter(pc.equal(groups.codes, code))

    def _assign_to_group(self, group: GroupObjects, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Cuts the batch at the ends of objects, and compares each object that is complete."""
        between = []
        while batch.num_rows and group.objects:
            entry = group.objects[0].entry
            before = pc.sum(pc.less(batch.column("offset"), entry.first)).as_py() or 0
            between.append(batch.slice(0, before))
            batch = batch.slice(before)
            inside = pc.sum(pc.less_equal(batch.column("offset"), entry.last)).as_py() or 0
            if inside:
                group.records.append(batch.slice(0, inside))
            if inside == batch.num_rows:
                batch = batch.slice(inside)
                break
            batch = batch.slice(inside)
            self._complete_first(group)
        return pa.concat_batches([*between, batch])

    def give_up(self, why: str) -> None:
        """Leaves out the objects that are not complete yet. Their records cannot be read."""
        self._groups.clear()
        self._replayed.clear()

    def finish(self) -> None:
        for group in (*self._groups.values(), self._letters, *self._replayed):
            while group.objects:
                self._complete_first(group)

    def _assign_replayed(self, batch: pa.RecordBatch) -> None:
        """A replayed dead letter stays where it was, and is in an object of data as well."""
        if not self._replayed or not batch.num_rows:
            return
        reached = pc.max(batch.column("offset")).as_py()
        batch = batch.filter(pc.is_in(batch.column("offset"), value_set=self._replayed_offsets))
        for group in list(self._replayed):
            entry = group.objects[0].entry
            if batch.num_rows:
                own = batch.filter(pc.is_in(batch.column("offset"), value_set=pa.array(entry.offsets, pa.int64())))
                group.records += [own] if own.num_rows else []
            if reached >= entry.last:
                self._replayed.remove(group)
                self._complete_first(group)

    def _without_letters(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Assigns dead letters to their objects. Returns the other records."""
        if not len(self._letter_offsets):
            return batch
        mine = pc.is_in(batch.column("offset"), value_set=self._letter_offsets)
        self._in_no_object(self._assign_to_group(self._letters, batch.filter(mine)))
        return batch.filter(pc.invert(mine))

    def _without_tombstones(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Tombstones that were left out may lie between the records of an object."""
        if not batch.column("value").null_count:
            return batch
        first, last = pc.min_max(batch.column("offset")).as_py().values()
        for start, end in self.expected.without_tombstones:
            if start <= last and first < end:
                offsets = batch.column("offset")
                within = pc.and_(pc.greater_equal(offsets, start), pc.less(offsets, end))
                batch = batch.filter(pc.invert(pc.and_(within, batch.column("value").is_null())))
        return batch

    def _without_filtered(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Evaluates the transforms again: what they leave out is in no object."""
        if not self.expected.filters or not batch.num_rows:
            return batch
        first, last = pc.min_max(batch.column("offset")).as_py().values()
        for part in (one for one in self.expected.filters if one.start <= last and first < one.end):
            offsets = batch.column("offset")
            within = pc.and_(pc.greater_equal(offsets, part.start), pc.less(offsets, part.end))
            left = self._left_by_filter(batch.filter(within), part)
            if len(left):
                self._filtered[part] += len(left)
                self._leave_out(left)
                batch = batch.filter(pc.invert(pc.is_in(offsets, value_set=left)))
        return batch

    def _left_by_filter(self, batch: pa.RecordBatch, part: FilteredRange) -> pa.Array:
        """The offsets of the records that the transform leaves out."""
        builder = self._builder(part.encoding.taking_any_change)
        left = [pa.array([], pa.int64())]
        for offsets, keep in in_parts(batch, lambda some: (some.column("offset"), builder.transformed(some)[1])):
            if keep is not None:
                left.append(offsets.filter(pc.invert(keep)))
        return pa.concat_arrays(left)

    def _builder(self, encoding: Encoding) -> RowBuilder:
        if encoding not in self._builders:
            self._builders[encoding] = encoding.row_builder(self.at[0], access=self.access)
        return self._builders[encoding]

    def _leave_out(self, offsets: pa.Array) -> None:
        """Records that a transform left out."""
        return

    def _complete_first(self, group: GroupObjects) -> None:
        """The first object of the group has all its records."""
        records, group.records = group.records, []
        self._in_object(group.objects.popleft(), records)


Assigned = TypeVar("Assigned", bound=RecordsByObject)


def assign_all(batches: Iterable[pa.RecordBatch], begin: Callable[[TopicPartition], Assigned]) -> Assigned | None:
    """For the records of one partition, which a Spark task reads. None if Kafka has no record of it."""
    assigned: Assigned | None = None
    for batch in batches:
        if batch.num_rows == 0:
            continue
        if assigned is None:
            assigned = begin((batch.column("topic")[0].as_py(), batch.column("partition")[0].as_py()))
        try:
            assigned.add(batch)
        except UnreadableRecords as error:
            assigned.give_up(str(error))
            break
    if assigned is not None:
        assigned.finish()
    return assigned


def result_row(doc: Mapping[str, Any]) -> pa.RecordBatch:
    """What a task returns, as JSON."""
    return pa.RecordBatch.from_arrays([pa.array([json.dumps(doc)], pa.string())], ["result"])
