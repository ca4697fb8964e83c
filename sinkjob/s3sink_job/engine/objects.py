"""The open objects of a slice: which rows go where, and when an object is full.

Memory is bounded however many there are: rows are encoded and encoded bytes spilled when together they hold too
much; and once a slice has more than a few groups, its rows are staged and written group by group at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from s3sink_job.engine.publish import FLUSH_TAG, SINK_TAG
from s3sink_job.engine.rewriting import LostObjects
from s3sink_job.engine.sending import Sending
from s3sink_job.engine.stage import MOST_STAGED, Group, Stage
from s3sink_job.flush.keys import At, constant_folder, object_key, refused_for_length
from s3sink_job.flush.manifest import ObjectEntry, Slice
from s3sink_job.formats import ObjectWriter, open_object
from s3sink_job.records.groups import Groups
from s3sink_job.spill import Spill
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.uploads import Upload

if TYPE_CHECKING:
    from s3sink_job.engine.write import WriteTask

MOST_OPEN = 8
"""Groups whose objects are written as their rows come; with more they are staged."""
MOST_HELD = 96 * 2**20
"""Bytes of rows and of encoded data that the open objects of a task keep in memory together."""
FIRST = 4
"""How many times longer the first rows of an object may come out than they are in memory."""
NEARLY = 0.98
"""An object this close to the asked size is full: the next few rows would only make it longer than that."""


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
    refused: dict[Group, str] = field(default_factory=dict)
    """Groups whose key the store does not take, and why. Nothing of the slice may be committed then."""
    _open: dict[Group, OpenObject] = field(default_factory=dict)
    """The one written to last comes last."""
    _uploads: list[Upload] = field(default_factory=list)
    _sending: Sending = field(default_factory=Sending)
    _spill: Spill = field(init=False)
    _stage: Stage | None = None
    _begun: int = 0
    _again: LostObjects | None = None

    def __post_init__(self) -> None:
        self._spill = Spill(self.task.spill)
        if lost := self.task.again.get(self.slice):
            self._again = LostObjects(lost)

    def write(self, rows: pa.RecordBatch, offsets: pa.Array, groups: Groups | None) -> None:
        if self._again is not None:
            rows, offsets, groups = self._again.pick(rows, offsets, groups)
        if not rows.num_rows:
            return
        if groups is None:
            self._write_group((), rows, offsets)
        elif self._stage is None and len({*self._open, *groups.keys}) <= MOST_OPEN:
            for group, mine, at in _by_group(rows, offsets, groups):
                self._write_group(group, mine, at)
        else:
            self._keep(rows, offsets, groups)

    def with_these(self, groups: Groups | None) -> int:
        """How many objects there are, those still to be made and those of rows in these groups among them."""
        known = self._open.keys() if self._stage is None else self._stage.groups
        fresh = 1 if groups is None else sum(group not in known for group in groups.keys)
        return len(self.done) + len(self._sending) + len(known) + fresh

    def _keep(self, rows: pa.RecordBatch, offsets: pa.Array, groups: Groups) -> None:
        if self._stage is None:
            self._stage = Stage(self._spill, MOST_STAGED)
        self._stage.add(rows, offsets, groups.keys, groups.codes)
        if self._spill.crowded:
            self.close()

    def close(self) -> None:
        if self._stage is not None:
            for group, pieces in self._stage.drain():
                for piece in pieces:
                    self._write_group(group, piece.rows, piece.offsets)
                if group in self._open:
                    self._close(self._open[group])
        for current in list(self._open.values()):
            self._close(current)
        self.done.extend(self._sending.rest())

    def abandon(self) -> None:
        self._sending.end()
        for current in self._open.values():
            current.writer.abandon()
        for upload in self._uploads:
            upload.abandon()
        self.tidy()

    def tidy(self) -> None:
        self._sending.end()
        self._spill.close()

    def _write_group(self, group: Group, rows: pa.RecordBatch, offsets: pa.Array) -> None:
        done = 0
        while done < rows.num_rows:
            done += self._write_some(group, rows.slice(done), offsets.slice(done))
        self._relieve()

    def _write_some(self, group: Group, rows: pa.RecordBatch, offsets: pa.Array) -> int:
        """Writes as many rows as the open object takes, and says how many."""
        if (current := self._open.get(group)) and not current.writer.takes(rows):
            self._close(current)
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
            a_row = size / current.rows if current.rows else FIRST * rows.nbytes / rows.num_rows
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
        # Beside staged rows there is less room, and it is not their objects' fault if it is crowded.
        while self._open and (self._spill.nearly_full if self._stage else self._spill.crowded):
            self._close(next(iter(self._open.values())))
            # Its file is there until it is sent.
            self.done.extend(self._sending.rest())

    def _begin(self, group: Group, first: int) -> OpenObject:
        task = self.task
        self._begun += 1
        key = self._again.key(group, task.encoding.extension, task.mark) if self._again else self._key(group, first)
        metadata = {SINK_TAG: task.sink, FLUSH_TAG: task.flush}
        encoding = task.encoding
        upload = Upload(
            *(self.bucket, key, metadata, encoding.content_type, task.destination.part_size),
            content_encoding=encoding.content_encoding,
            refused="" if task.again else refused_for_length(key, task.longest_segment),
        )
        self._uploads.append(upload)
        writer = open_object(encoding, upload, self._spill)
        return OpenObject(upload, writer, group, first, first)

    def _key(self, group: Group, first: int) -> str:
        task, slice = self.task, self.slice
        layout = task.encoding.layout
        varies = task.encoding.folders_vary
        folder = group[0] if varies else constant_folder(layout, slice.topic, slice.partition)
        place, count = task.place_of(slice)
        at = At(slice.topic, slice.generation, slice.partition, first, (self._begun - 1) * count + place)
        return object_key(task.destination.prefix, layout, at, folder, task.encoding.extension, task.mark)

    def _close(self, current: OpenObject) -> None:
        del self._open[current.group]
        try:
            texts = current.writer.close()
        except BaseException:
            current.writer.abandon()
            raise
        for path in texts:
            self.as_text(path)
        upload = current.upload
        entry = ObjectEntry(
            key=upload.key,
            upload_id="",
            etags=(),
            topic=self.slice.topic,
            generation=self.slice.generation,
            partition=self.slice.partition,
            first=current.first,
            last=current.last,
            rows=current.rows,
            bytes=upload.size,
            group=self._again.group(current.group) if self._again else current.group,
            bucket=self.task.other_bucket,
        )
        self.done.extend(self._sending.begin(lambda: self._sent(upload, entry), upload.left))

    def _sent(self, upload: Upload, entry: ObjectEntry) -> ObjectEntry:
        upload_id, etags = upload.finish()
        if upload.refused:
            self.refused[entry.group] = upload.refused
        return replace(entry, upload_id=upload_id, etags=etags)


def _by_group(
    rows: pa.RecordBatch, offsets: pa.Array, groups: Groups
) -> Iterator[tuple[Group, pa.RecordBatch, pa.Array]]:
    if len(groups.keys) == 1:
        yield groups.keys[0], rows, offsets
        return
    codes = groups.codes.to_numpy()
    order = pa.array(np.argsort(codes, kind="stable"))
    rows, offsets, start = rows.take(order), offsets.take(order), 0
    for group, count in zip(groups.keys, np.bincount(codes, minlength=len(groups.keys)).tolist(), strict=True):
        if count:
            yield group, rows.slice(start, count), offsets.slice(start, count)
        start += count
