"""Objects of one record each, for format Bytes: put whole, at once, since key and content follow from the record.

They show before the flush is committed. If it never is, the next one writes the very same objects again: each
says which record it holds, and nothing but the same record is ever written over it.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.pool import ThreadPool
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from s3sink_job.encoding import Encoding
from s3sink_job.engine.publish import FLUSH_TAG, RECORD_TAG, SINK_TAG, VALUE_TAG, key_taken
from s3sink_job.errors import TransientError
from s3sink_job.flush.keys import At, constant_folder, object_key, refused_for_length
from s3sink_job.flush.manifest import ObjectEntry, Slice, record_name
from s3sink_job.formats.compression import compressing
from s3sink_job.records.groups import Groups
from s3sink_job.stores.bucket import Bucket, Found, PreconditionFailed
from s3sink_job.stores.errors import KeyRefused
from s3sink_job.stores.share import PARALLEL

if TYPE_CHECKING:
    from s3sink_job.engine.write import WriteTask

Record = tuple[int, bytes, tuple[str, ...]]
"""Offset, value and group."""


@dataclass
class SingleObjects:
    task: WriteTask
    slice: Slice
    bucket: Bucket
    done: list[ObjectEntry] = field(default_factory=list)
    refused: dict[tuple[str, ...], str] = field(default_factory=dict)
    """As those of `Objects`."""

    def write(self, rows: pa.RecordBatch, offsets: pa.Array, groups: Groups | None) -> None:
        # A request for each record costs a thousand times what a step of Python does.
        records = _records(rows.column("value"), offsets, groups)
        with ThreadPool(PARALLEL) as pool:
            self.done.extend(pool.imap(self._put, records))

    def with_these(self, groups: Groups | None) -> int:
        return len(self.done)

    def close(self) -> None:
        return

    def abandon(self) -> None:
        return

    def tidy(self) -> None:
        return

    def _put(self, record: Record) -> ObjectEntry:
        offset, value, group = record
        task, slice, encoding = self.task, self.slice, self.task.encoding
        varies = encoding.folders_vary
        folder = group[0] if varies else constant_folder(encoding.layout, slice.topic, slice.partition)
        at = At(slice.topic, slice.generation, slice.partition, offset)
        key = object_key(task.destination.prefix, encoding.layout, at, folder, encoding.extension, task.mark)
        body = _compressed(value, encoding)
        place = (slice.topic, slice.generation, slice.partition)
        record_tags = {RECORD_TAG: record_name(*place, offset), VALUE_TAG: hashlib.sha256(value).hexdigest()}
        if why := self._refusal(key, body, record_tags):
            self.refused[group] = why
        return ObjectEntry(*(key, "", (), *place, offset, offset, 1, len(body)), group=group, bucket=task.other_bucket)

    def _refusal(self, key: str, body: bytes, record: dict[str, str]) -> str:
        """Sends the object; why the store does not take its key, if it does not."""
        if why := refused_for_length(key, self.task.longest_segment):
            return why
        try:
            self._send(key, body, record)
        except KeyRefused as error:
            return f"the store does not take its key: {error}"
        return ""

    def _send(self, key: str, body: bytes, record: dict[str, str]) -> None:
        task, encoding = self.task, self.task.encoding
        record = {SINK_TAG: task.sink, **record}
        described = ({**record, FLUSH_TAG: task.flush}, encoding.content_type, encoding.content_encoding)
        try:
            self.bucket.put_data(key, body, *described, if_absent=task.conditional)
        except PreconditionFailed as answer:
            found = self.bucket.head(key)
            if found is None:
                raise TransientError(f"s3://{self.bucket.name}/{key}: taken a moment ago, gone now") from answer
            if not record.items() <= found.metadata.items():
                raise key_taken(self.bucket, key, task.flush) from answer
            # A flush that was never committed wrote it.
            self._send_over(found, body, *described)

    def _send_over(self, found: Found, body: bytes, *described: Any) -> None:
        try:
            self.bucket.put_data(found.key, body, *described, if_match=found.etag)
        except PreconditionFailed as answer:
            raise TransientError(f"s3://{self.bucket.name}/{found.key}: changed a moment ago") from answer


def _compressed(value: bytes, encoding: Encoding) -> bytes:
    sink = io.BytesIO()
    stream = compressing(sink, encoding.codec, encoding.level)
    stream.write(value)
    stream.close()
    return sink.getvalue()


def _records(values: pa.Array, offsets: pa.Array, groups: Groups | None) -> Iterator[Record]:
    names = [()] * len(offsets) if groups is None else [groups.keys[code] for code in groups.codes.to_pylist()]
    for offset, value, name in zip(offsets.to_pylist(), values.to_pylist(), names, strict=True):
        yield offset, value or b"", name
