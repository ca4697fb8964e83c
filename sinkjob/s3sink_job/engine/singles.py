"""Objects of one record each, for format Bytes: put whole, at once, since key and content follow from the record.

They show before the flush is committed. If it never is, the next one writes the very same objects again.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.pool import ThreadPool
from typing import TYPE_CHECKING

import pyarrow as pa

from s3sink_job.encoding import Encoding
from s3sink_job.engine.publish import FLUSH_TAG, SINK_TAG, key_taken
from s3sink_job.flush.keys import At, constant_folder, object_key
from s3sink_job.flush.manifest import ObjectEntry, Slice
from s3sink_job.formats.compression import compressing
from s3sink_job.records.groups import Groups
from s3sink_job.stores.bucket import Bucket, PreconditionFailed

if TYPE_CHECKING:
    from s3sink_job.engine.write import WriteTask

PARALLEL = 8
Record = tuple[int, bytes, tuple[str, ...]]
"""Offset, value and group."""


@dataclass
class SingleObjects:
    task: WriteTask
    slice: Slice
    bucket: Bucket
    done: list[ObjectEntry] = field(default_factory=list)

    def write(self, rows: pa.RecordBatch, offsets: pa.Array, groups: Groups | None) -> None:
        # A request for each record costs a thousand times what a step of Python does.
        records = _records(rows.column("value"), offsets, groups)
        if self.task.only is not None:
            records = (r for r in records if r[2] == self.task.only)
        with ThreadPool(PARALLEL) as pool:
            self.done.extend(pool.imap(self._put, records))

    def close(self) -> None:
        return

    def abandon(self) -> None:
        return

    def tidy(self) -> None:
        return

    def _put(self, record: Record) -> ObjectEntry:
        offset, value, group = record
        task, slice, encoding = self.task, self.slice, self.task.encoding
        variable = not encoding.layout.constant or encoding.nulls == "Separate"
        folder = group[0] if variable else constant_folder(encoding.layout, slice.topic, slice.partition)
        at = At(slice.topic, slice.generation, slice.partition, offset)
        key = object_key(task.destination.prefix, encoding.layout, at, folder, encoding.extension, task.mark)
        body = _compressed(value, encoding)
        self._send(key, body)
        place = (slice.topic, slice.generation, slice.partition)
        return ObjectEntry(*(key, "", (), *place, offset, offset, 1, len(body)), group=group, bucket=task.other_bucket)

    def _send(self, key: str, body: bytes) -> None:
        task, encoding = self.task, self.task.encoding
        described = ({SINK_TAG: task.sink, FLUSH_TAG: task.flush}, encoding.content_type, encoding.content_encoding)
        try:
            self.bucket.put_data(key, body, *described, if_absent=task.conditional)
        except PreconditionFailed as answer:
            found = self.bucket.head(key)
            if found is not None and found.metadata.get(SINK_TAG) != task.sink:
                raise key_taken(self.bucket, key, task.flush) from answer
            # A flush that was never committed wrote it, or somebody removed it a moment ago.
            self.bucket.put_data(key, body, *described, if_absent=found is None)


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
