"""The open objects of a slice: which rows go to which object, and when an object is full.

Memory is bounded, however many objects there are: above a limit rows are encoded and encoded bytes are spilled to
disk. Once a slice has more than a few groups, its rows are buffered and written group by group at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from s3sink_job.base.spill import Spill
from s3sink_job.columns.cast import cast_rows
from s3sink_job.decode.typed_input import NO_SCHEMA
from s3sink_job.flush.manifest import ObjectEntry
from s3sink_job.formats.output_format import ObjectWriter
from s3sink_job.formats.source_notes import SourceNotes
from s3sink_job.layout.groups import Groups
from s3sink_job.layout.keys import ObjectSource, constant_folder, object_key, refused_for_length
from s3sink_job.shape.row_builder import RowBuilder
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.object_tags import FLUSH_TAG, SINK_TAG
from s3sink_job.stores.uploads import Upload
from s3sink_job.task.group_buffer import MOST_BUFFERED, GroupBuffer
from s3sink_job.task.rewritten_objects import RewrittenObjects
from s3sink_job.task.row_schemas import Numbers, runs, with_schemas, without_schemas
from s3sink_job.task.task_settings import Group, SliceWork
from s3sink_job.task.upload_pool import UploadPool

MOST_OPEN = 8
"""Groups whose rows are written at once. With more groups rows are buffered."""
MOST_HELD = 96 * 2**20
"""Bytes of rows and encoded data that all open objects of a task may keep in memory."""
FIRST_GROWTH = 4
"""How many times larger than in memory the first rows of an object may be when they are encoded."""
FULL = 0.98
"""An object that reaches this share of the wanted size is full: a few more rows would exceed it."""


@dataclass
class OpenObject:
    upload: Upload
    writer: ObjectWriter
    group: Group
    first: int
    last: int
    notes: SourceNotes
    rows: int = 0
    schema: int = NO_SCHEMA
    """Of all its rows, if each schema has objects of its own."""

    @property
    def held(self) -> int:
        return self.writer.held + self.upload.held


@dataclass
class OpenObjects:
    work: SliceWork
    bucket: Bucket
    builder: RowBuilder
    done: list[ObjectEntry] = field(default_factory=list)
    refused: dict[Group, str] = field(default_factory=dict)
    _open: dict[Group, OpenObject] = field(default_factory=dict)
    """The one written to last comes last."""
    _uploads: list[Upload] = field(default_factory=list)
    _pool: UploadPool = field(default_factory=UploadPool)
    _spill: Spill = field(init=False)
    _buffer: GroupBuffer | None = None
    _opened: int = 0
    _rewrites: RewrittenObjects | None = None
    _numbered: bool = False
    """Whether rows have the number of their schema."""

    def __post_init__(self) -> None:
        self._spill = Spill(self.work.settings.spill)
        if self.work.rewrites is not None:
            self._rewrites = RewrittenObjects(self.work.rewrites)

    def write(
        self, rows: pa.RecordBatch, offsets: pa.Array, groups: Groups | None, schemas: pa.Array | None = None
    ) -> None:
        self._numbered = schemas is not None
        if schemas is not None:
            rows = with_schemas(rows, schemas)
        if self._rewrites is not None:
            rows, offsets, groups = self._rewrites.pick(rows, offsets, groups)
        if not rows.num_rows:
            return
        if groups is None:
            self._write_group((), rows, offsets)
        elif self._buffer is None and len({*self._open, *groups.keys}) <= MOST_OPEN:
            for group, mine, at in _by_group(rows, offsets, groups):
                self._write_group(group, mine, at)
        else:
            self._buffer_rows(rows, offsets, groups)

    def count_with(self, groups: Groups | None) -> int:
        """Objects that are done, on their way or still to be made, also of rows in these groups."""
        known = self._open.keys() if self._buffer is None else self._buffer.groups
        new = 1 if groups is None else sum(group not in known for group in groups.keys)
        return len(self.done) + len(self._pool) + len(known) + new

    def _buffer_rows(self, rows: pa.RecordBatch, offsets: pa.Array, groups: Groups) -> None:
        if self._buffer is None:
            self._buffer = GroupBuffer(self._spill, MOST_BUFFERED)
        self._buffer.add(rows, offsets, groups.keys, groups.codes)
        if self._spill.crowded:
            self.close()

    def close(self) -> None:
        if self._buffer is not None:
            for group, pieces in self._buffer.drain():
                for piece in pieces:
                    self._write_group(group, piece.rows, piece.offsets)
                if group in self._open:
                    self._close(self._open[group])
        for current in list(self._open.values()):
            self._close(current)
        self.done.extend(self._pool.rest())

    def abandon(self) -> None:
        self._pool.end()
        for current in self._open.values():
            current.writer.abandon()
        for upload in self._uploads:
            upload.abandon()
        self.release()

    def release(self) -> None:
        self._pool.end()
        self._spill.close()

    def _write_group(self, group: Group, rows: pa.RecordBatch, offsets: pa.Array) -> None:
        if not self._numbered:
            self._write_rows(group, rows, offsets)
            return
        rows, numbers = without_schemas(rows)
        if not self.work.target.encoding.rolls:
            self._write_rows(group, rows, offsets, numbers)
            return
        for start, end, schema in runs(numbers):
            current = self._open.get(group)
            if current is not None and NO_SCHEMA not in (schema, current.schema) and schema != current.schema:
                self._close(current)
            own = cast_rows(rows.slice(start, end - start), self.builder.columns_of(schema, rows.schema))
            self._write_rows(group, own, offsets.slice(start, end - start), numbers[start:end])

    def _write_rows(
        self, group: Group, rows: pa.RecordBatch, offsets: pa.Array, schemas: Numbers | None = None
    ) -> None:
        done = 0
        while done < rows.num_rows:
            rest = None if schemas is None else schemas[done:]
            done += self._write_some(group, rows.slice(done), offsets.slice(done), rest)
        self._free_memory()

    def _write_some(self, group: Group, rows: pa.RecordBatch, offsets: pa.Array, schemas: Numbers | None) -> int:
        """Writes as many rows as fit into the open object. Returns how many."""
        if (current := self._open.get(group)) and not current.writer.takes(rows):
            self._close(current)
        current = self._open.pop(group, None) or self._open_object(group, offsets[0].as_py())
        self._open[group] = current
        count = self._fitting(current, rows)
        current.writer.write(rows.slice(0, count))
        current.rows += count
        current.last = offsets[count - 1].as_py()
        if schemas is not None:
            self._note(current, schemas[:count])
        if self._full(current):
            self._close(current)
        return count

    def _note(self, current: OpenObject, schemas: Numbers) -> None:
        # Most batches have one schema, and to sort 4,000 numbers takes twenty times as long as to compare them.
        distinct = schemas[:1] if (schemas == schemas[0]).all() else np.unique(schemas)
        for number in distinct.tolist():
            if number != NO_SCHEMA and number not in current.notes.schemas:
                current.notes.schemas[number] = self.builder.source_schema(number)
                current.schema = number

    def _fitting(self, current: OpenObject, rows: pa.RecordBatch) -> int:
        count: int = rows.num_rows
        target = self.work.target
        if target.records_per_object is not None:
            count = min(count, target.records_per_object - current.rows)
        if (most := target.bytes_per_object) is not None:
            size = current.writer.size
            a_row = size / current.rows if current.rows else FIRST_GROWTH * rows.nbytes / rows.num_rows
            count = min(count, max(1, int((most - size) / max(a_row, 1e-3))))
        return count

    def _full(self, current: OpenObject) -> bool:
        target = self.work.target
        if current.rows == target.records_per_object or current.upload.nearly_full:
            return True
        if (most := target.bytes_per_object) is None or current.writer.size < FULL * most:
            return False
        # It looks full. Encoding the rows that it holds gives the real size.
        current.writer.settle()
        return current.writer.size >= FULL * most

    def _free_memory(self) -> None:
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
        # Buffered rows need room as well, so with them it may be fuller before objects are closed.
        while self._open and (self._spill.nearly_full if self._buffer else self._spill.crowded):
            self._close(next(iter(self._open.values())))
            # Its file stays until it is sent.
            self.done.extend(self._pool.rest())

    def _open_object(self, group: Group, first: int) -> OpenObject:
        settings, target = self.work.settings, self.work.target
        encoding = target.encoding
        self._opened += 1
        if self._rewrites is not None:
            key, refused = self._rewrites.key(group, encoding.extension, settings.name_mark(encoding.layout)), ""
        else:
            key = self._key(group, first)
            refused = refused_for_length(key, settings.longest_segment)
        upload = Upload(
            *(self.bucket, key, {SINK_TAG: settings.sink, FLUSH_TAG: settings.flush}),
            *(encoding.content_type, target.destination.part_size),
            content_encoding=encoding.content_encoding,
            refused=refused,
        )
        self._uploads.append(upload)
        notes = SourceNotes(self.builder.row_sources)
        writer = encoding.format.open(encoding.output, upload, self._spill, notes)
        return OpenObject(upload, writer, group, first, first, notes)

    def _key(self, group: Group, first: int) -> str:
        slice, settings, encoding = self.work.slice, self.work.settings, self.work.target.encoding
        layout = encoding.layout
        folder = group[0] if encoding.folders_vary else constant_folder(layout, slice.topic, slice.partition)
        number = (self._opened - 1) * len(settings.planned) + self.work.number
        at = ObjectSource(slice.topic, slice.generation, slice.partition, first, number)
        prefix = self.work.target.destination.prefix
        return object_key(prefix, layout, at, folder, encoding.extension, settings.name_mark(encoding.layout))

    def _close(self, current: OpenObject) -> None:
        del self._open[current.group]
        try:
            texts = current.writer.close()
        except BaseException:
            current.writer.abandon()
            raise
        for path in texts:
            self.builder.widen_to_text(path)
        upload, slice = current.upload, self.work.slice
        entry = ObjectEntry(
            key=upload.key,
            upload_id="",
            etags=(),
            topic=slice.topic,
            generation=slice.generation,
            partition=slice.partition,
            first=current.first,
            last=current.last,
            rows=current.rows,
            bytes=upload.size,
            group=self._rewrites.group(current.group) if self._rewrites else current.group,
            bucket=self.work.other_bucket,
        )
        self.done.extend(self._pool.begin(lambda: self._send(upload, entry), upload.unsent))

    def _send(self, upload: Upload, entry: ObjectEntry) -> ObjectEntry:
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
