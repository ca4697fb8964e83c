"""From Kafka's records to rows for objects: decode, shape, layout, format, for the batches of one slice.

The rooms are passed in this order. Each may refuse records; these are collected with the batch they are in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.types import Column
from s3sink_job.decode.bad_records import BadRecords, Fault, Stage
from s3sink_job.flush.manifest import Slice
from s3sink_job.layout.folders import folders_of
from s3sink_job.layout.groups import Groups, groups_of, rows_in
from s3sink_job.shape.row_builder import RowBuilder
from s3sink_job.shape.tombstones import refused_tombstones, without_skipped
from s3sink_job.task.encoding import Encoding


@dataclass(frozen=True)
class PreparedBatch:
    """Rows with their offsets and groups; those of `bad` records hold nothing of use."""

    rows: pa.RecordBatch
    offsets: Column
    groups: Groups | None
    bad: BadRecords
    schemas: Column | None = None
    """The numbers of the schemas that the rows were written with, where they are needed."""
    unknown_fields: int = 0
    """Values of all its records that their schemas have no field for."""
    filtered: Column = field(default_factory=lambda: pa.array([], pa.int64()))
    """Offsets of the records that the transform left out."""

    def refuse_groups(self, why: Callable[[tuple[str, ...]], str]) -> None:
        """Makes the records of groups for which `why` gives a text bad records: the store refuses their key."""
        refused = rows_in(self.groups, len(self.offsets), why)
        self.bad.add(Stage.STORE, {row: Fault("KeyRefused", text) for row, text in refused.items()})

    def filter(self, keep: Column) -> PreparedBatch:
        groups = None if self.groups is None else Groups(self.groups.keys, self.groups.codes.filter(keep))
        schemas = None if self.schemas is None else self.schemas.filter(keep)
        rows, offsets = self.rows.filter(keep), self.offsets.filter(keep)
        return replace(self, rows=rows, offsets=offsets, groups=groups, schemas=schemas)


@dataclass(frozen=True)
class RecordPipeline:
    encoding: Encoding
    slice: Slice
    builder: RowBuilder
    folder_bytes: int
    """The most that a folder may have."""

    def prepare(self, batch: pa.RecordBatch) -> PreparedBatch | None:
        """None if nothing of the batch is to be written."""
        encoding = self.encoding
        batch = without_skipped(batch, encoding.shape)
        if not batch.num_rows:
            return None
        built = self.builder.build(batch, refused_tombstones(batch, encoding.shape))
        folders = folders_of(
            built.decoded, encoding.grouping, self.slice.topic, self.slice.partition, self.folder_bytes
        )
        built.bad.add(Stage.FORMAT, encoding.format.unwritable(built.rows, encoding.output))
        kept = built.decoded.batch
        groups = groups_of(kept, encoding.grouping, folders)
        schemas = built.decoded.schema_numbers() if encoding.notes_schemas else None
        unknown = built.decoded.unknown_fields
        found = PreparedBatch(built.rows, kept.column("offset"), groups, built.bad, schemas, unknown)
        if built.keep is None:
            return found
        return replace(found, filtered=batch.column("offset").filter(pc.invert(built.keep)))
