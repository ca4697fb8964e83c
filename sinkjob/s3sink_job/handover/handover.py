"""Collects what the other sink left behind, and makes `startingOffsets` of it. It only reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from s3sink_api.spec import S3Sink
from s3sink_job.base.errors import FinalError
from s3sink_job.commit.ledger import Ledger
from s3sink_job.flush.kafka_metadata import TopicPartition
from s3sink_job.handover.lenses_indexes import IndexPosition, read_indexes
from s3sink_job.handover.object_names import named_objects
from s3sink_job.handover.positions import Evidence, NamedObject, PartitionStart, starts
from s3sink_job.kafka.admin import Admin
from s3sink_job.kafka.group_offsets import committed_offsets, members_of
from s3sink_job.stores.bucket import Bucket
from s3sink_job.task.routing import Routing


@dataclass(frozen=True)
class OtherSink:
    group: str
    connector: str
    """Empty if its index objects are not read."""
    indexes: str = ".indexes"
    list_objects: bool = True


@dataclass(frozen=True)
class Handover:
    sink: str
    group: str
    partitions: tuple[PartitionStart, ...]

    @property
    def clean(self) -> bool:
        return all(start.clean for start in self.partitions)

    def starting_offsets(self) -> dict[str, Any]:
        offsets = [{"topic": s.topic, "partition": s.partition, "offset": s.offset} for s in self.partitions]
        return {"position": "Offsets", "offsets": offsets}

    def to_doc(self) -> dict[str, Any]:
        return {
            "sink": self.sink,
            "group": self.group,
            "clean": self.clean,
            "startingOffsets": self.starting_offsets(),
            "partitions": [start.to_doc() for start in self.partitions],
        }


def prepare_handover(sink: S3Sink, bucket: Bucket, ledger: Ledger, admin: Admin, other: OtherSink) -> Handover:
    if ledger.load() is not None:
        raise FinalError(
            f"{sink.id} has run already, and startingOffsets counts only before the first run. Use a new name for the"
            " sink, or spec.reset with a new nonce and these offsets",
            reason="TakeoverTooLate",
        )
    if members := members_of(admin, other.group):
        raise FinalError(
            f"the consumer group {other.group} has active members: {', '.join(members)}. Stop the other sink first:"
            " what it writes after this would be written twice",
            reason="GroupInUse",
        )
    source = sink.spec.source
    topics = source.topics or tuple(sorted(admin.matching(source.topic_pattern or "")))
    described = admin.describe(topics)
    if absent := [name for name, topic in described.items() if topic is None]:
        raise FinalError(f"these topics do not exist: {', '.join(absent)}", reason="TopicMissing")
    wanted = [(name, p) for name, topic in described.items() if topic is not None for p in topic.partitions]
    kafka = admin.offsets(wanted, committed=False)
    if silent := [f"{at[0]}-{at[1]}" for at in wanted if at not in kafka]:
        raise FinalError(f"Kafka returned no offsets of {', '.join(silent)}: try again", reason="TakeoverPosition")
    committed = committed_offsets(admin, other.group, wanted)
    indexed = _indexes(bucket, other, topics)
    if not committed and not indexed:
        raise FinalError(
            f"the consumer group {other.group} has no offsets of these topics. Connectors use connect-<name>, unless"
            " group.id is overridden",
            reason="TakeoverPosition",
        )
    objects = _objects(sink, bucket, admin, topics, lenses=bool(indexed)) if other.list_objects else {}
    evidence = {at: _evidence(at, committed, indexed, objects) for at in wanted}
    return Handover(sink.id, other.group, starts(evidence, kafka))


def _indexes(bucket: Bucket, other: OtherSink, topics: Iterable[str]) -> dict[TopicPartition, IndexPosition]:
    return read_indexes(bucket, f"{other.indexes}/{other.connector}", topics) if other.connector else {}


def _objects(
    sink: S3Sink, bucket: Bucket, admin: Admin, topics: tuple[str, ...], *, lenses: bool
) -> dict[TopicPartition, list[NamedObject]]:
    """Objects below the prefixes of this sink, which are those of the other one."""
    routing = Routing(sink.spec)
    routing.find_routes(admin.matches, topics)
    places = {(spec.destination.bucket, spec.destination.prefix) for spec in map(routing.spec_of, topics)}
    found: dict[TopicPartition, list[NamedObject]] = {}
    for name, prefix in sorted(places):
        below = f"{prefix}/" if prefix else ""
        keys = (key for key, _ in bucket.named(name).list(below))
        for at, objects in named_objects(keys, lenses=lenses).items():
            found.setdefault(at, []).extend(objects)
    return found


def _evidence(
    at: TopicPartition,
    committed: dict[TopicPartition, int],
    indexed: dict[TopicPartition, IndexPosition],
    objects: dict[TopicPartition, list[NamedObject]],
) -> Evidence:
    index = indexed.get(at, IndexPosition())
    return Evidence(committed.get(at), index.next, index.pending, index.ahead, tuple(objects.get(at, ())))
