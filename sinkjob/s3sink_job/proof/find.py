"""The answer of `s3sink find`, as a document: by offset or by key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from s3sink_api.spec import S3Sink
from s3sink_job.base.secrets import Secrets
from s3sink_job.base.times import iso
from s3sink_job.commit.ledger import Ledger
from s3sink_job.flush.refresh import visible_state
from s3sink_job.flush.state import RefreshPhase, SinkState
from s3sink_job.proof.find_key import KeyFinder
from s3sink_job.proof.find_offset import FoundRecord, OffsetFinder
from s3sink_job.proof.flush_history import PartitionGeneration, WrittenObject
from s3sink_job.proof.kafka_records import KafkaAccess, KafkaRecords
from s3sink_job.proof.reading_hints import how_to_read
from s3sink_job.stores.bucket import Bucket

Document = dict[str, Any]


@dataclass(frozen=True)
class WantedOffset:
    topic: str
    partition: int
    offset: int
    generation: int | None = None
    """None for the present one."""


@dataclass(frozen=True)
class WantedKey:
    topic: str
    key: str
    partition: int | None = None


def find(
    sink: S3Sink,
    secrets: Secrets,
    bucket: Bucket,
    ledger: Ledger,
    kafka: Callable[[], KafkaAccess],
    wanted: WantedOffset | WantedKey,
) -> Document:
    """`records` of the answer has what is in objects; it is empty if no object holds the record."""
    state = ledger.load()
    if state is None:
        raise ledger.never_ran()
    records = KafkaRecords(sink, secrets, bucket.retry, kafka)
    head: Document = {"sink": sink.id, "topic": wanted.topic}
    refresh, state = state.refresh, visible_state(state)
    if refresh is not None and refresh.phase in {RefreshPhase.WRITING, RefreshPhase.PUBLISHING}:
        head["refresh"] = f"the full refresh {refresh.run} is {refresh.phase}: its objects are not current yet"
    if isinstance(wanted, WantedOffset):
        return head | _by_offset(bucket, ledger, state, records, wanted)
    return head | _by_key(bucket, ledger, state, records, wanted)


def _by_offset(
    bucket: Bucket, ledger: Ledger, state: SinkState, records: KafkaRecords, wanted: WantedOffset
) -> Document:
    now = state.topics[wanted.topic].generation if wanted.topic in state.topics else 1
    place = PartitionGeneration(wanted.topic, wanted.generation or now, wanted.partition)
    found = OffsetFinder(bucket, records, state, place, wanted.offset).find(ledger)
    location = found.location
    doc: Document = {
        "partition": place.partition,
        "offset": wanted.offset,
        "generation": place.generation,
        "outcome": str(location.outcome),
        "text": location.text,
        "flush": location.flush.name if location.flush else None,
        "committedAt": iso(location.flush.committed_at) if location.flush else None,
        "records": [_record(bucket, found.record)] if found.record else [],
    }
    if not found.record and location.objects:
        doc["candidates"] = [_object(bucket, written) for written in location.objects]
    if now > 1 and wanted.generation is None:
        doc["note"] = f"{wanted.topic} is at generation {now}; for an earlier one use --generation"
    return doc


def _by_key(bucket: Bucket, ledger: Ledger, state: SinkState, records: KafkaRecords, wanted: WantedKey) -> Document:
    found = KeyFinder(bucket, records, state, wanted.topic, wanted.partition, wanted.key).find(ledger)
    return {
        "key": wanted.key,
        "records": [_record(bucket, record) for record in found.records],
        "searchedObjects": found.searched,
        "unsearchedObjects": found.unsearched,
        "whyUnsearched": found.why_unsearched,
    }


def _record(bucket: Bucket, found: FoundRecord) -> Document:
    entry, output = found.written.entry, found.written.encoding.output
    url = bucket.named(entry.bucket).url(entry.key)
    return {
        "partition": found.place.partition,
        "generation": found.place.generation,
        "offset": found.offset,
        "row": found.row,
        "object": _object(bucket, found.written),
        "read": how_to_read(url, output, found.row),
    }


def _object(bucket: Bucket, written: WrittenObject) -> Document:
    entry = written.entry
    place = bucket.named(entry.bucket)
    return {
        "url": place.url(entry.key),
        "inBucket": place.head(entry.key) is not None,
        "format": written.encoding.output.format,
        "codec": written.encoding.output.codec,
        "firstOffset": entry.first,
        "lastOffset": entry.last,
        "rows": entry.rows,
    }
