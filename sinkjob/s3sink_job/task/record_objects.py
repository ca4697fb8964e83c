"""Objects of one record each, for format Bytes: plain PUTs, since key and content depend on the record alone.

They are visible before the flush is committed. If it never is, the next flush writes the same objects again: the
metadata of each names its record, and only the same record may overwrite it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.pool import ThreadPool
from typing import Any

import pyarrow as pa

from s3sink_job.base.errors import TransientError
from s3sink_job.flush.manifest import ObjectEntry, record_name
from s3sink_job.formats.bytes import value_object
from s3sink_job.layout.groups import Groups
from s3sink_job.layout.keys import ObjectSource, constant_folder, object_key, refused_for_length
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.errors import KeyRefused, PreconditionFailed, key_taken
from s3sink_job.stores.object_tags import FLUSH_TAG, RECORD_TAG, SINK_TAG, VALUE_TAG
from s3sink_job.stores.protocol import StoredObject
from s3sink_job.stores.request_limit import PARALLEL
from s3sink_job.task.task_settings import Group, SliceWork

Record = tuple[int, bytes, Group]
"""Offset, value and group."""


@dataclass
class RecordObjects:
    work: SliceWork
    bucket: Bucket
    done: list[ObjectEntry] = field(default_factory=list)
    refused: dict[Group, str] = field(default_factory=dict)

    def write(
        self, rows: pa.RecordBatch, offsets: pa.Array, groups: Groups | None, schemas: pa.Array | None = None
    ) -> None:
        # A loop in Python is cheap here: each record needs a request anyway.
        records = _records(rows.column("value"), offsets, groups)
        with ThreadPool(PARALLEL) as pool:
            self.done.extend(pool.imap(self._put, records))

    def count_with(self, groups: Groups | None) -> int:
        return len(self.done)

    def close(self) -> None:
        return

    def abandon(self) -> None:
        return

    def release(self) -> None:
        return

    def _put(self, record: Record) -> ObjectEntry:
        offset, value, group = record
        slice, settings, target = self.work.slice, self.work.settings, self.work.target
        encoding = target.encoding
        varies = encoding.folders_vary
        folder = group[0] if varies else constant_folder(encoding.layout, slice.topic, slice.partition)
        at = ObjectSource(slice.topic, slice.generation, slice.partition, offset)
        prefix, extension = target.destination.prefix, encoding.extension
        key = object_key(prefix, encoding.layout, at, folder, extension, settings.name_mark(encoding.layout))
        body = value_object(value, encoding.output)
        place = (slice.topic, slice.generation, slice.partition)
        record_tags = {RECORD_TAG: record_name(*place, offset), VALUE_TAG: hashlib.sha256(value).hexdigest()}
        if why := self._refusal(key, body, record_tags):
            self.refused[group] = why
        bucket = self.work.other_bucket
        return ObjectEntry(*(key, "", (), *place, offset, offset, 1, len(body)), group=group, bucket=bucket)

    def _refusal(self, key: str, body: bytes, record: dict[str, str]) -> str:
        """Sends the object. Returns why the store refuses its key; empty if it does not."""
        if why := refused_for_length(key, self.work.settings.longest_segment):
            return why
        try:
            self._send(key, body, record)
        except KeyRefused as error:
            return f"the store refuses its key: {error}"
        return ""

    def _send(self, key: str, body: bytes, record: dict[str, str]) -> None:
        settings, encoding = self.work.settings, self.work.target.encoding
        record = {SINK_TAG: settings.sink, **record}
        described = ({**record, FLUSH_TAG: settings.flush}, encoding.content_type, encoding.content_encoding)
        try:
            self.bucket.put_data(key, body, *described, if_absent=settings.conditional)
        except PreconditionFailed as answer:
            found = self.bucket.head(key)
            if found is None:
                raise TransientError(f"{self.bucket.url(key)} existed a moment ago and is gone now") from answer
            if not record.items() <= found.metadata.items():
                raise key_taken(self.bucket.url(key), settings.flush) from answer
            # A flush that was never committed wrote it.
            self._overwrite(found, body, *described)

    def _overwrite(self, found: StoredObject, body: bytes, *described: Any) -> None:
        try:
            self.bucket.put_data(found.key, body, *described, if_match=found.etag)
        except PreconditionFailed as answer:
            raise TransientError(f"{self.bucket.url(found.key)} was changed by another writer just now") from answer


def _records(values: pa.Array, offsets: pa.Array, groups: Groups | None) -> Iterator[Record]:
    names = [()] * len(offsets) if groups is None else [groups.keys[code] for code in groups.codes.to_pylist()]
    for offset, value, name in zip(offsets.to_pylist(), values.to_pylist(), names, strict=True):
        yield offset, value or b"", name
