"""How records become bytes: what a task needs of the spec, and what a manifest keeps.

A manifest keeps it so that a lost object can be written again exactly as before, whatever the spec says by then.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from s3sink_api.spec import Spec
from s3sink_job.columns.known_columns import KnownColumns
from s3sink_job.decode.input_format import ANY_CHANGE
from s3sink_job.decode.schema_access import NO_ACCESS, SchemaAccess
from s3sink_job.decode.settings import Decoding, decoding_of
from s3sink_job.flush.manifest import InputTypes
from s3sink_job.formats.output_format import OutputFormat
from s3sink_job.formats.registry import OUTPUT_FORMATS
from s3sink_job.formats.settings import Output, output_of
from s3sink_job.kafka.schema_ids import MESSAGES, SCHEMA_IDS
from s3sink_job.kafka.single_headers import header_columns
from s3sink_job.layout.settings import Grouping, ObjectLayout, grouping_of
from s3sink_job.shape.origin import Origin
from s3sink_job.shape.row_builder import RowBuilder
from s3sink_job.shape.settings import Shape, shape_of
from s3sink_job.shape.spark_condition import spark_condition
from s3sink_job.shape.transform_settings import TransformSettings, transform_of
from s3sink_job.shape.transformer import kafka_columns

RECORD_COLUMNS = ("key", "value", "timestamp", "headers")
KAFKA_COLUMNS = (*RECORD_COLUMNS, *SCHEMA_IDS.values(), *MESSAGES.values())


def ordered_columns(wanted: Collection[str]) -> tuple[str, ...]:
    """Single headers only where not all are wanted."""
    single = [] if "headers" in wanted else header_columns(wanted)
    return (*(name for name in KAFKA_COLUMNS if name in wanted), *single)


@dataclass(frozen=True)
class Encoding:
    decoding: Decoding
    shape: Shape
    grouping: Grouping
    output: Output
    transform: TransformSettings | None = None

    @property
    def format(self) -> OutputFormat:
        return OUTPUT_FORMATS[self.output.format]

    @property
    def layout(self) -> ObjectLayout:
        return self.grouping.layout

    @property
    def extension(self) -> str:
        return self.layout.extension or self.format.object_extension(self.output.codec)

    @property
    def content_type(self) -> str:
        return self.format.content_type

    @property
    def content_encoding(self) -> str:
        return self.format.content_encoding(self.output.codec, self.layout.extension)

    @property
    def rolls(self) -> bool:
        """Whether records of each schema have objects of their own."""
        return self.decoding.typed and self.decoding.evolution.on_change == "Roll"

    @property
    def taking_any_change(self) -> Encoding:
        """For records that were written: which of their schemas are taken was decided then, by more than they show."""
        return replace(self, decoding=replace(self.decoding, evolution=ANY_CHANGE))

    @property
    def notes_schemas(self) -> bool:
        """Whether the schema of each record is needed beside its row."""
        return self.rolls or (self.decoding.typed and self.format.tells_schemas)

    @property
    def columns(self) -> tuple[str, ...]:
        """The Kafka columns this needs beside topic, partition and offset. Each costs time: take no more."""
        wanted = self.shape.kafka_columns | self.grouping.kafka_columns
        wanted |= kafka_columns(self.transform) if self.transform else frozenset()
        read = [part for part in self.decoding.parts if part.part in wanted]
        wanted |= {SCHEMA_IDS[part.part] for part in read if part.in_headers}
        wanted |= {MESSAGES[part.part] for part in read if part.messages_in_headers}
        return ordered_columns(wanted)

    @property
    def framed_parts(self) -> Mapping[str, str]:
        """Columns with ids of schemas that are only needed if a key or value has no frame, by its column."""
        ids = {SCHEMA_IDS[part.part]: part for part in self.decoding.parts if part.in_headers and part.frame_shows}
        return {column: ids[column].part for column in self.columns if column in ids}

    @property
    def spark_condition(self) -> str | None:
        """The records that Spark has to hand over, if it can leave some out that the transform leaves out."""
        return None if self.transform is None else spark_condition(self.transform.transform.where)

    @property
    def folders_vary(self) -> bool:
        """Whether records of one slice may go to different folders."""
        return self.grouping.folders_vary

    @property
    def grouped(self) -> bool:
        """Whether records of one slice may go to different objects at the same time."""
        return self.grouping.varies

    def at(self, stamp: int) -> Encoding:
        """For the flush of that time, in milliseconds."""
        return replace(self, grouping=replace(self.grouping, layout=replace(self.layout, stamp=stamp)))

    def with_input_types(self, inputs: InputTypes) -> Encoding:
        """For records that were written: the transform with the types that their fields had then, and no others."""
        if self.transform is None:
            return self
        return replace(self, transform=replace(self.transform, inputs=inputs))

    @property
    def without_filter(self) -> Encoding:
        """For records that were written: which ones is decided already."""
        return self if self.transform is None else replace(self, transform=self.transform.without_filter)

    def row_builder(
        self,
        topic: str,
        generation: int = 1,
        known: KnownColumns | None = None,
        access: SchemaAccess = NO_ACCESS,
    ) -> RowBuilder:
        """For one slice. `known` are the columns that earlier slices of the topic found in the values."""
        origin = Origin(topic, generation)
        return RowBuilder(self.decoding, self.shape, self.format.rows, origin, known, access, self.transform)


def encoding_of(spec: Spec) -> Encoding:
    return Encoding(decoding_of(spec), shape_of(spec), grouping_of(spec), output_of(spec), transform_of(spec))
