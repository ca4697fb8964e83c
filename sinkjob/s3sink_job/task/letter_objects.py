"""Dead letters of a slice as objects below a prefix. They are uploaded, committed and published like data objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from s3sink_job.decode.bad_records import BadRecord
from s3sink_job.decode.settings import Decoding
from s3sink_job.flush.manifest import ObjectEntry
from s3sink_job.formats.settings import Output, ParquetOptions
from s3sink_job.layout.settings import Grouping
from s3sink_job.shape.dead_letters import LetterOrigin, letter_lines, letter_rows
from s3sink_job.shape.settings import RowKind, Shape
from s3sink_job.stores.bucket import Bucket
from s3sink_job.task.encoding import RECORD_COLUMNS, Encoding
from s3sink_job.task.open_objects import OpenObjects
from s3sink_job.task.task_settings import LetterTarget, SliceWork, TopicTarget

OUTPUTS = {
    "Parquet": Output("Parquet", "Zstd", parquet=ParquetOptions(row_group_bytes=16 * 2**20)),
    "Json": Output("Json"),
}


def letter_encoding(format: str) -> Encoding:
    return Encoding(Decoding("Bytes", "Bytes"), Shape(), Grouping(), OUTPUTS[format])


def has_whole_records(batch: pa.RecordBatch) -> bool:
    """Whether the batch has all columns of Kafka's records, which dead letters keep."""
    return set(RECORD_COLUMNS) <= set(batch.schema.names)


class LetterObjects:
    def __init__(self, work: SliceWork, bucket: Bucket, target: LetterTarget) -> None:
        slice, settings = work.slice, work.settings
        self._origin = LetterOrigin(settings.sink, settings.flush, slice.topic, slice.generation, slice.partition)
        self._format, encoding = target.format, letter_encoding(target.format)
        self._lines = encoding.format.rows is RowKind.JSON_LINES
        own = replace(work, target=TopicTarget(encoding, target.destination), rewrites=work.lost_letters)
        builder = encoding.row_builder(slice.topic, slice.generation)
        self._objects = OpenObjects(own, bucket.named(target.destination.bucket), builder)

    @property
    def done(self) -> list[ObjectEntry]:
        return [replace(entry, letters=self._format) for entry in self._objects.done]

    @property
    def refused(self) -> str:
        """Why the store refuses a key of theirs; empty if it does not."""
        return next(iter(self._objects.refused.values()), "")

    def write(self, batch: pa.RecordBatch, letters: Sequence[BadRecord]) -> None:
        records = batch.take(pa.array([letter.row for letter in letters], pa.int64()))
        rows = letter_rows(records, letters, self._origin)
        self._objects.write(letter_lines(rows) if self._lines else rows, records.column("offset"), None)

    def close(self) -> None:
        self._objects.close()

    def abandon(self) -> None:
        self._objects.abandon()

    def release(self) -> None:
        self._objects.release()
