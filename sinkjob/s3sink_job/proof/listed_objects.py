"""Whether the bucket holds what the manifests list: every object with its size, and no other object of this sink."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from s3sink_job.commit.ledger import Ledger
from s3sink_job.flush.manifest import number_of, record_parts
from s3sink_job.flush.refresh import last_replaced
from s3sink_job.flush.state import SinkState
from s3sink_job.proof.committed_ranges import committed_ranges
from s3sink_job.proof.flush_history import FlushHistory, PartitionGeneration
from s3sink_job.proof.verify_report import VerifyReport
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.object_tags import FLUSH_TAG, RECORD_TAG, SINK_TAG

MAX_LISTINGS = 100
"""Folders that are listed one by one. More are listed together."""


class ObjectName(NamedTuple):
    bucket: str
    """Empty for the sink's own."""
    key: str


def check_listed_objects(
    bucket: Bucket, ledger: Ledger, state: SinkState, history: FlushHistory, report: VerifyReport
) -> None:
    listed = {ObjectName(o.entry.bucket, o.entry.key): o.entry for o in history.objects}
    sizes = _sizes_in_folders_of(bucket, listed)
    for name, entry in listed.items():
        if name in sizes and sizes[name] != entry.bytes:
            report.counts.add_finding(f"{entry.key}: {sizes[name]} bytes in the bucket, {entry.bytes} were written")
    heads = (bucket.named(name.bucket).head(name.key) for name in sizes if name not in listed)
    unlisted = [found for found in heads if found and found.metadata.get(SINK_TAG) == report.sink]
    if not unlisted:
        return
    # A driver may have committed another flush since the history was read.
    later = [(each, now) for each in (ledger, ledger.replays()) if (now := each.load())]
    newer = {m.name for each, now in later for m in each.chain(now.last, last_replaced(now))} - history.flushes
    replaced = number_of(last_replaced(state))
    for found in unlisted:
        flush = found.metadata.get(FLUSH_TAG, "")
        if _is_pending(state, history, found.metadata.get(RECORD_TAG, "")):
            report.pending += 1
        elif flush in newer:
            continue
        elif flush and number_of(flush) <= replaced:
            _add_former(state, found.key, report)
        else:
            report.unlisted += 1
            report.counts.add_finding(f"{found.key}: written by this sink, but no committed flush lists it")


def _add_former(state: SinkState, key: str, report: VerifyReport) -> None:
    """While a full refresh removes what it replaced, that is expected."""
    report.former += 1
    if state.refresh is not None and not state.refresh.unfinished:
        report.counts.add_finding(f"{key}: a full refresh replaced it, and could not remove it. Delete it")


def _is_pending(state: SinkState, history: FlushHistory, record: str) -> bool:
    """Whether the record of a single-record object was not committed, now or when its generation ended.

    A running driver may have begun the next generation since.
    """
    if not record:
        return False
    topic, generation, partition, offset = record_parts(record)
    place = PartitionGeneration(topic, generation, partition)
    replayed = {number for written in history.of(place).replayed for number in written.entry.offsets}
    if offset in history.of(place).ever_letters - replayed:
        return True  # by a replay that was broken off: the next one writes the same object
    if committed := committed_ranges(state).get(place):
        return offset >= committed.end
    current = state.topics[topic].generation if topic in state.topics else 0
    if generation > current:
        return True
    return generation < current and offset >= max((part.end for part in history.of(place).slices), default=0)


def _sizes_in_folders_of(bucket: Bucket, listed: Iterable[ObjectName]) -> dict[ObjectName, int]:
    """The size of every object in the folders of these objects."""
    folders: dict[str, set[str]] = defaultdict(set)
    for name in listed:
        folders[name.bucket].add(_folder(name.key))
    sizes = {}
    for bucket_name, own in folders.items():
        roots = sorted(own) if len(own) <= MAX_LISTINGS else [os.path.commonpath(sorted(own))]
        for root in roots:
            for key, size in bucket.named(bucket_name).list(f"{root}/" if root else ""):
                if _folder(key) in own:
                    sizes[ObjectName(bucket_name, key)] = size
    return sizes


def _folder(key: str) -> str:
    return key.rpartition("/")[0]
