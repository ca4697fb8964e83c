"""`s3sink verify`: a proof, from state, manifests, objects and Kafka, that every offset is there once.

It writes nothing and takes nothing over, so it may run beside a working driver: it speaks of what was
committed when it started.
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from s3sink_job.encoding import encoding_from_doc
from s3sink_job.engine.compare import CompareTask, Expected, Tally
from s3sink_job.engine.contents import Unreadable, read_rows
from s3sink_job.engine.job import collect, read_slices
from s3sink_job.engine.ledger import Ledger
from s3sink_job.engine.publish import FLUSH_TAG, RECORD_TAG, SINK_TAG
from s3sink_job.engine.write import RESULT_SCHEMA
from s3sink_job.errors import FinalError
from s3sink_job.flush.manifest import Gap, Manifest, ObjectEntry, Slice, SliceEntry, record_parts
from s3sink_job.flush.plan import TopicPartition
from s3sink_job.flush.state import State, same_topic
from s3sink_job.kafka.admin import Admin
from s3sink_job.secrets import Secrets
from s3sink_job.spec import S3Sink
from s3sink_job.stores.bucket import Bucket

PUBLISH_PATIENCE = 15.0
MOST_LISTINGS = 100
"""Folders that are listed one by one."""
Place = tuple[str, int, int]
"""Topic, generation, partition."""


@dataclass
class Report:
    """What was found.

    `unchecked` objects were not compared: Kafka no longer has their records, or they are of an earlier generation.
    `pending` ones, of a single record each, show already, though the flush that they are of is not committed yet.
    """

    sink: str
    objects: int = 0
    skipped: int = 0
    unchecked: int = 0
    unlisted: int = 0
    pending: int = 0
    partitions: int = 0
    tally: Tally = field(default_factory=Tally)
    gaps: list[Gap] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not (self.tally.missing or self.tally.duplicates or self.unlisted or self.tally.findings)

    def to_doc(self) -> dict[str, Any]:
        return {
            "sink": self.sink,
            "ok": self.ok,
            "records": self.tally.records,
            "missing": self.tally.missing,
            "duplicates": self.tally.duplicates,
            "gaps": sum(g.end - g.start for g in self.gaps),
            "skipped": self.skipped,
            "objects": self.objects,
            "unlisted": self.unlisted,
            "pending": self.pending,
            "unchecked": self.unchecked,
            "partitions": self.partitions,
            "gapRanges": [
                {"topic": g.topic, "partition": g.partition, "from": g.start, "to": g.end, "reason": g.reason}
                for g in self.gaps
            ],
            "findings": self.tally.findings,
        }


@dataclass(frozen=True)
class History:
    """The committed flushes of a sink, by place."""

    slices: Mapping[Place, list[SliceEntry]]
    gaps: Mapping[Place, list[Gap]]
    objects: Mapping[Place, list[tuple[ObjectEntry, Mapping[str, Any]]]]
    names: frozenset[str]
    without_nulls: Mapping[Place, list[tuple[int, int]]] = field(default_factory=dict)
    """Ranges of which tombstones were left out."""
    schemas: Mapping[str, str] = field(default_factory=dict)
    """By key, of objects that do not tell the types of their columns: the name of the schema they were written by."""


def verify(
    sink: S3Sink,
    secrets: Secrets,
    bucket: Bucket,
    ledger: Ledger,
    spark: SparkSession,
    admin: Admin,
    connection: Mapping[str, str],
) -> Report:
    report = Report(sink=sink.id)
    state = _settled(ledger)
    if state is None:
        raise FinalError(
            f"no state at s3://{bucket.name}/{ledger.state_key}: this sink has never run, "
            "or name, namespace, bucket or statePrefix are not those it ran with",
            reason="NoState",
        )
    history = gather(ledger.history(state))
    report.partitions = sum(len(t.partitions) for t in state.topics.values())
    report.gaps = [g for gaps in history.gaps.values() for g in gaps]
    report.skipped = sum(len(s.skipped) for slices in history.slices.values() for s in slices)
    report.objects = sum(len(objects) for objects in history.objects.values())
    check_ranges(state, history, report)
    _check_objects(bucket, sink, ledger, state, history, report)
    comparable = _comparable(state, history, admin, ledger)
    _compare(sink, secrets, bucket, spark, connection, comparable, report)
    _check_alone(bucket, history, comparable, report)
    return report


def _settled(ledger: Ledger) -> State | None:
    """The state once nothing is being published: a working driver needs moments, a dead one will not."""
    deadline = time.monotonic() + PUBLISH_PATIENCE
    while True:
        state = ledger.load()
        if state is None or state.publishing is None or time.monotonic() > deadline:
            return state
        time.sleep(0.5)


def gather(manifests: Iterable[Manifest]) -> History:
    slices: dict[Place, list[SliceEntry]] = defaultdict(list)
    gaps: dict[Place, list[Gap]] = defaultdict(list)
    objects: dict[Place, list[tuple[ObjectEntry, Mapping[str, Any]]]] = defaultdict(list)
    without_nulls: dict[Place, list[tuple[int, int]]] = defaultdict(list)
    untyped: dict[str, tuple[str, int]] = {}
    widened: dict[str, list[tuple[int, str]]] = defaultdict(list)
    names, replaced = set(), set()
    for manifest in manifests:
        names.add(manifest.name)
        for part in manifest.slices:
            place = (part.topic, part.generation, part.partition)
            slices[place].append(part)
            if manifest.encoding_of(part.topic).get("nulls") == "Skip":
                without_nulls[place].append((part.start, part.end))
        for gap in manifest.gaps:
            gaps[gap.topic, gap.generation, gap.partition].append(gap)
        for entry in manifest.objects:
            if entry.key not in replaced:
                encoding = manifest.encoding_of(entry.topic)
                objects[entry.topic, entry.generation, entry.partition].append((entry, encoding))
                if encoding["format"] == "Csv":
                    untyped[entry.key] = (entry.topic, manifest.number)
        for topic, schema in manifest.schemas.items():
            widened[topic].append((manifest.number, schema))
        # Newest first: what a later flush wrote again no longer counts where it was first listed.
        replaced |= set(manifest.replaces)
    for entries in objects.values():
        entries.sort(key=lambda o: o[0].first)
    schemas = {
        key: next((name for at, name in widened[topic] if at <= number), "") for key, (topic, number) in untyped.items()
    }
    return History(slices, gaps, objects, frozenset(names), without_nulls, schemas)


def check_ranges(state: State, history: History, report: Report) -> None:
    """Ranges and gaps of a partition must join from where it began to the committed offset."""
    for place in sorted({*history.slices, *history.gaps, *_current(state)}):
        topic, _, partition = place
        moves: list[SliceEntry | Gap] = [
            *history.slices.get(place, []),
            *(g for g in history.gaps.get(place, []) if g.moves),
        ]
        moves.sort(key=lambda m: (m.start, m.end))
        current = _current(state).get(place)
        at = current[0] if current else moves[0].start if moves else 0
        for move in moves:
            _join(report, f"{topic}-{partition}", at, move.start)
            at = max(at, move.end)
        if current and at != current[1]:
            _join(report, f"{topic}-{partition}", at, current[1])


def _join(report: Report, name: str, at: int, start: int) -> None:
    if start > at:
        report.tally.missing += start - at
        report.tally.find(f"{name}: no flush covers offsets {at} to {start - 1}")
    elif start < at:
        report.tally.duplicates += at - start
        report.tally.find(f"{name}: offsets {start} to {at - 1} are covered twice")


def _current(state: State) -> dict[Place, tuple[int, int]]:
    return {
        (name, topic.generation, p): (at.start, at.offset)
        for name, topic in state.topics.items()
        for p, at in topic.partitions.items()
    }


def _check_objects(
    bucket: Bucket, sink: S3Sink, ledger: Ledger, state: State, history: History, report: Report
) -> None:
    """Each listed object is there with its size; no unlisted one in the same folders is ours."""
    listed = {(entry.bucket, entry.key): entry for entries in history.objects.values() for entry, _ in entries}
    present = _beside(bucket, listed)
    for at, entry in listed.items():
        if at in present and present[at] != entry.bytes:
            report.tally.find(f"{entry.key}: {present[at]} bytes in the bucket, {entry.bytes} were written")
    heads = (bucket.named(name).head(key) for name, key in present if (name, key) not in listed)
    ours = [found for found in heads if found and found.metadata.get(SINK_TAG) == sink.id]
    if not ours:
        return
    later = ledger.load()
    names = {m.name for m in ledger.history(later)} if later else set()
    for found in ours:
        if _to_come(state, history, found.metadata.get(RECORD_TAG, "")):
            report.pending += 1
        elif found.metadata.get(FLUSH_TAG) not in names - history.names:
            report.unlisted += 1
            report.tally.find(f"{found.key}: written by this sink, but listed by no committed flush")


def _to_come(state: State, history: History, record: str) -> bool:
    """Whether a record, by its name, is still to be committed, or was when its generation ended.

    A driver that goes on meanwhile may have begun the next generation.
    """
    if not record:
        return False
    topic, generation, partition, offset = record_parts(record)
    place = (topic, generation, partition)
    if known := _current(state).get(place):
        return offset >= known[1]
    current = state.topics[topic].generation if topic in state.topics else 0
    if generation > current:
        return True
    return generation < current and offset >= max((part.end for part in history.slices.get(place, ())), default=0)


def _beside(bucket: Bucket, listed: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """What is in the folders of these objects, with its size. Many folders are listed all together."""
    folders: dict[str, set[str]] = defaultdict(set)
    for name, key in listed:
        folders[name].add(key.rpartition("/")[0])
    present = {}
    for name, own in folders.items():
        roots = sorted(own) if len(own) <= MOST_LISTINGS else [os.path.commonpath(sorted(own))]
        for root in roots:
            for key, size in bucket.named(name).list(f"{root}/" if root else ""):
                if key.rpartition("/")[0] in own:
                    present[name, key] = size
    return present


def _comparable(
    state: State, history: History, admin: Admin, ledger: Ledger
) -> dict[TopicPartition, tuple[Slice, Expected]]:
    """For each partition the offsets Kafka still has, and the objects that lie wholly within them."""
    topics = admin.describe(sorted(state.topics))
    same = {n: t for n, t in topics.items() if t is not None and same_topic(t.id, state.topics[n].id)}
    wanted = [(n, p) for n, t in same.items() for p in t.partitions if p in state.topics[n].partitions]
    compacted = admin.compacted(sorted(same))
    texts = {name: ledger.schema(name) for name in sorted(set(history.schemas.values()) - {""})}
    result = {}
    for at, offsets in admin.offsets(wanted, committed=False).items():
        known = state.topics[at[0]]
        begin, end = known.partitions[at[1]].start, known.partitions[at[1]].offset
        place = (at[0], known.generation, at[1])
        objects = history.objects.get(place, [])
        start = _clear_of([o for o, _ in objects], max(begin, offsets.earliest))
        entries = [o for o in objects if o[0].first >= start]
        end = min(end, offsets.end)
        if (cut := known.partitions[at[1]].cut) is not None:
            # From there on Kafka has other records than those that were written.
            end = min(end, cut.at or 0)
            entries = [o for o in entries if o[0].last < end]
        left_out = {o for s in history.slices.get(place, []) for o in s.skipped}
        left_out |= {o for g in history.gaps.get(place, []) for o in range(max(g.start, start), g.end)}
        if start < end:
            part = Slice(*place, start, end, "Verify")
            nulls = tuple(history.without_nulls.get(place, ()))
            written_by = {o.key: texts[name] for o, _ in entries if (name := history.schemas.get(o.key))}
            result[at] = (part, Expected(tuple(entries), frozenset(left_out), at[0] in compacted, nulls, written_by))
    return result


def _clear_of(objects: list[ObjectEntry], start: int) -> int:
    """The first offset from there on that no object lies across. Objects of several groups interleave."""
    while across := [o.last + 1 for o in objects if o.first < start <= o.last]:
        start = max(across)
    return start


def _compare(
    sink: S3Sink,
    secrets: Secrets,
    bucket: Bucket,
    spark: SparkSession,
    connection: Mapping[str, str],
    comparable: Mapping[TopicPartition, tuple[Slice, Expected]],
    report: Report,
) -> None:
    if not comparable:
        return
    expected = {at: e for at, (_, e) in comparable.items()}
    task = CompareTask(expected, sink.spec.destination, secrets, bucket.retrying)
    frame = read_slices(
        spark,
        [part for part, _ in comparable.values()],
        connection,
        columns=("key", "value", "timestamp", "headers"),
        group=f"s3sink.{sink.metadata.namespace}.{sink.metadata.name}.verify",
        isolation=sink.spec.source.isolation,
        topic=True,
    )
    seen = set()
    for row in collect(frame.mapInArrow(task, RESULT_SCHEMA), "comparing with Kafka"):
        doc = json.loads(row.result)
        seen.add(tuple(doc.pop("at")))
        report.tally.add(Tally(**doc))
    # Kafka gave no record of these partitions at all: compaction or aborted transactions emptied them.
    for at, (_, e) in comparable.items():
        if at not in seen:
            for entry, encoding in e.objects:
                _count_alone(bucket, entry, encoding, report)


def _check_alone(
    bucket: Bucket,
    history: History,
    comparable: Mapping[TopicPartition, tuple[Slice, Expected]],
    report: Report,
) -> None:
    """Objects whose records Kafka no longer has: there, and with as many rows as were written."""
    compared = {entry.key for _, e in comparable.values() for entry, _ in e.objects}
    for entries in history.objects.values():
        for entry, encoding in entries:
            if entry.key not in compared:
                _count_alone(bucket, entry, encoding, report)


def _count_alone(bucket: Bucket, entry: ObjectEntry, encoding: Mapping[str, Any], report: Report) -> None:
    report.unchecked += 1
    try:
        found = read_rows(bucket.named(entry.bucket), entry, encoding_from_doc(encoding))
    except Unreadable as error:
        report.tally.missing += entry.rows
        report.tally.find(str(error))
        return
    if found is None:
        report.tally.missing += entry.rows
        report.tally.find(f"{entry.key}: not in the bucket, {entry.rows} records missing")
        return
    rows = found.num_rows
    report.tally.records += rows
    report.tally.missing += max(0, entry.rows - rows)
    report.tally.duplicates += max(0, rows - entry.rows)
    if rows != entry.rows:
        report.tally.find(f"{entry.key}: {rows} rows, {entry.rows} were written")
