"""Dead letters that are to be sent to a topic, as objects beside the state until the flush is published.

They are put at once: an upload that is not complete cannot be read back. Only the flush that lists them uses them.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from s3sink_job.base.errors import S3SinkError
from s3sink_job.decode.bad_records import BadRecord
from s3sink_job.flush.manifest import STAGED, ObjectEntry
from s3sink_job.shape.dead_letters import LetterOrigin, letter_rows
from s3sink_job.stores.bucket import Bucket
from s3sink_job.task.task_settings import LetterTarget, SliceWork

OBJECT_BYTES = 8 * 2**20
"""Bytes of rows in one object: the driver reads one at a time."""


class StagedLetters:
    refused = ""

    def __init__(self, work: SliceWork, bucket: Bucket, target: LetterTarget) -> None:
        slice, settings = work.slice, work.settings
        self._origin = LetterOrigin(settings.sink, settings.flush, slice.topic, slice.generation, slice.partition)
        self._bucket = bucket.named(target.destination.bucket)
        self._folder = f"{target.staging}/{settings.flush}"
        self._lost = work.lost_letters
        self._rows: list[pa.RecordBatch] = []
        self.done: list[ObjectEntry] = []

    def write(self, batch: pa.RecordBatch, letters: Sequence[BadRecord]) -> None:
        records = batch.take(pa.array([letter.row for letter in letters], pa.int64()))
        self._rows.append(letter_rows(records, letters, self._origin))
        if sum(rows.nbytes for rows in self._rows) > OBJECT_BYTES:
            self.close()

    def close(self) -> None:
        rows = pa.Table.from_batches(self._rows) if self._rows else None
        self._rows = []
        if rows is None:
            return
        if self._lost is None:
            self._put(rows)
            return
        for one in self._lost:
            offset = rows.column("offset")
            mine = rows.filter(pc.and_(pc.greater_equal(offset, one.first), pc.less_equal(offset, one.last)))
            if mine.num_rows:
                self._put(mine)

    def _put(self, rows: pa.Table) -> None:
        body = io.BytesIO()
        pq.write_table(rows, body, compression="zstd")
        origin, offsets = self._origin, pc.min_max(rows.column("offset")).as_py()
        place = (origin.topic, origin.generation, origin.partition)
        # A name of its own for each attempt: a late request of an earlier one must not replace it.
        key = f"{self._folder}/{'-'.join(map(str, place))}-{offsets['min']}-{uuid.uuid4().hex[:12]}.parquet"
        self._bucket.put(key, body.getvalue())
        span = (offsets["min"], offsets["max"], rows.num_rows, body.tell())
        self.done.append(ObjectEntry(key, "", (), *place, *span, letters=STAGED))

    def abandon(self) -> None:
        """Best effort: `s3sink gc` removes what is left."""
        for entry in self.done:
            try:
                self._bucket.delete(entry.key)
            except S3SinkError:
                return

    def release(self) -> None:
        return
