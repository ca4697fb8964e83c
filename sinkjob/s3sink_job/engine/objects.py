"""The open objects of a slice: which rows go where, and when an object is full.

Memory is bounded however many are open: rows are encoded and encoded bytes spilled when together they hold
too much, and the object that was written to longest ago is closed when there are too many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.engine.publish import FLUSH_TAG, SINK_TAG
from s3sink_job.flush.keys import object_key
from s3sink_job.flush.manifest import ObjectEntry, Slice
from s3sink_job.formats import ObjectWriter, open_object
from s3sink_job.spill import Spill
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.uploads import Upload

if TYPE_CHECKING:
    from s3sink_job.engine.write import WriteTask

MOST_OPEN = 64
MOST_HELD = 96 * 2**20
"""Bytes of rows and of encoded data that the open objects of a task keep in memory together."""
NEARLY = 0.98
"""An object this close to the asked size is full: the next few rows would only make it longer than that."""
Group = tuple[str, ...]


@dataclass
class OpenObject:
    upload: Upload
    writer: ObjectWriter
    group: Group
    first: int
    last: int
    rows: int = 0

    @property
    def held(self) -> int:
        return self.writer.held + self.upload.held


@dataclass
class Objects:
    task: WriteTask
    slice: Slice
    bucket: Bucket
    as_text: Callable[[tuple[str, ...]], None]
    done: list[ObjectEntry] = field(default_factory=list)
    _open: dict[Group, OpenObject] = field(default_factory=dict)
    """The one written to last comes last."""
    _uploads: list[Upload] = field(default_factory=list)
    _spill: Spill = field(init=False)

    def __post_init__(self) -> None:
        self._spill = Spill(self.task.spill)

    def write(self, rows: pa.RecordBatch, offsets: pa.Array, groups: pa.Array | None) -> None:
        if groups is None:
            self._write_group((), rows, offsets)
        else:
            for name in pc.unique(groups).to_pylist():
                mine = pc.equal(groups, name)
                self._write_group((name,), rows.filter(mine), offsets.filter(mine))

    def close(self) -> None:
        for current in list(self._open.values()):
            self._close(current)

    def abandon(self) -> None:
        for current in self._open.values():
            current.writer.abandon()
        for upload in self._uploads:
            upload.abandon()
        self.tidy()

    def tidy(self) -> None:
        self._spill.close()

    def _write_group(self, group: Group, rows: pa.RecordBatch, offsets: pa.Array) -> None:
        if self.task.only is not None and group != self.task.only:
            return
        done = 0
        while done < rows.num_rows:
            done += self._write_some(group, rows.slice(done), offsets.slice(done))
        self._relieve()

    def _write_some(self, group: Group, rows: pa.RecordBatch, offsets: pa.Array) -> int:
        """Writes as many rows as the open object takes, and says how many."""
        current = self._open.pop(group, None) or self._begin(group, offsets[0].as_py())
        self._open[group] = current
        count = self._fitting(current, rows)
        current.writer.write(rows.slice(0, count))
        current.rows += count
        current.last = offsets[count - 1].as_py()
        if self._full(current):
            self._close(current)
        return count

    def _fitting(self, current: OpenObject, rows: pa.RecordBatch) -> int:
        count: int = rows.num_rows
        if self.task.records_per_object is not None:
            count = min(count, self.task.records_per_object - current.rows)
        if (most := self.task.bytes_per_object) is not None:
            size = current.writer.size
            a_row = size / current.rows if current.rows else rows.nbytes / rows.num_rows
            count = min(count, max(1, int((most - size) / max(a_row, 1e-3))))
        return count

    def _full(self, current: OpenObject) -> bool:
        if current.rows == self.task.records_per_object or current.upload.nearly_full:
            return True
        if (most := self.task.bytes_per_object) is None or current.writer.size < NEARLY * most:
            return False
        # It looks full. Encoding what is held tells.
        current.writer.settle()
        return current.writer.size >= NEARLY * most

    def _relieve(self) -> None:
        by_size = sorted(self._open.values(), key=lambda o: -o.held)
        held = sum(o.held for o in by_size)
        for current in by_size:
            if held <= MOST_HELD:
                break
            held -= current.held
            if current.writer.held:
                current.writer.settle()
            current.upload.spill(self._spill)
            held += current.held
        while len(self._open) > MOST_OPEN or (self._open and self._spill.crowded):
            self._close(next(iter(self._open.values())))

    def _begin(self, group: Group, first: int) -> OpenObject:
        task, slice = self.task, self.slice
        key = object_key(
            *(task.destination.prefix, slice.topic, slice.generation, slice.partition, first),
            *(task.encoding.extension, task.mark),
        )
        metadata = {SINK_TAG: task.sink, FLUSH_TAG: task.flush}
        upload = Upload(self.bucket, key, metadata, task.encoding.content_type, task.destination.part_size)
        self._uploads.append(upload)
        writer = open_object(task.encoding, upload, self._spill)
        return OpenObject(upload, writer, group, first, first)

    def _close(self, current: OpenObject) -> None:
        del self._open[current.group]
        try:
            texts = current.writer.close()
        except BaseException:
            current.writer.abandon()
            raise
        for path in texts:
            self.as_text(path)
        upload_id, etags = current.upload.finish()
        self.done.append(
            ObjectEntry(
                key=current.upload.key,
                upload_id=upload_id,
                etags=etags,
                topic=self.slice.topic,
                generation=self.slice.generation,
                partition=self.slice.partition,
                first=current.first,
                last=current.last,
                rows=current.rows,
                bytes=current.upload.size,
                group=current.group,
            )
        )
