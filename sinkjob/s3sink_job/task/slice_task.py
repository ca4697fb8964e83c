"""The function that Spark runs: one slice of the plan, read in order, encoded and uploaded, not made visible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from s3sink_job.base.errors import ProtocolError
from s3sink_job.columns.known_columns import KnownColumns
from s3sink_job.flush.manifest import Slice
from s3sink_job.kafka.batch_size import can_be_small
from s3sink_job.kafka.left_out import MOST_TOPICS
from s3sink_job.task.bad_records import LeftOut
from s3sink_job.task.encoding import KAFKA_COLUMNS, Encoding, ordered_columns
from s3sink_job.task.reading import FIRST_READING, Reading
from s3sink_job.task.slice_rows import split_large
from s3sink_job.task.slice_writer import SliceWriter
from s3sink_job.task.task_settings import Group, Rewrite, SliceWork, TaskSettings, TopicTarget
from s3sink_job.task.throttle import Throttle


@dataclass(frozen=True)
class SliceTask:
    """Pickled to every task of a Spark job. A task finds its slice by the first row that it gets."""

    settings: TaskSettings
    slices: tuple[Slice, ...]
    """Those of this job: all of the flush, or some."""
    default: TopicTarget
    targets: Mapping[str, TopicTarget] = field(default_factory=dict)
    """By topic, where it is not the default."""
    schemas: Mapping[str, KnownColumns] = field(default_factory=dict)
    """By topic: its columns as known so far, where a schema is inferred."""
    rewrites: Mapping[Slice, tuple[Rewrite, ...]] = field(default_factory=dict)
    committed: Mapping[Slice, LeftOut] = field(default_factory=dict)
    """What became of the bad records, where lost objects are written again."""
    reading: Reading = FIRST_READING
    refused_keys: Mapping[Slice, Mapping[Group, str]] = field(default_factory=dict)

    def target(self, topic: str) -> TopicTarget:
        return self.targets.get(topic, self.default)

    @property
    def columns(self) -> tuple[str, ...]:
        """The Kafka columns that any of its topics needs."""
        if self.reading.whole:
            return KAFKA_COLUMNS
        wanted: set[str] = set()
        for encoding in self._encodings.values():
            wanted |= {name for name in encoding.columns if self.reading.ids or name not in encoding.framed_parts}
        return ordered_columns(wanted)

    @property
    def has_small_records(self) -> bool:
        """Whether all records are expected to be small."""
        return not self.reading.large and can_be_small(self.columns)

    @property
    def conditions(self) -> Mapping[str, str]:
        """By topic: which records Spark hands over. It leaves out what the transform is certain to leave out."""
        encodings = self._encodings
        everything = (
            self.reading.all_records
            or self.rewrites
            or "headers" in self.columns
            # A limit of what is read counts what is handed over.
            or self.settings.bytes_per_second is not None
            or len(encodings) > MOST_TOPICS
        )
        if everything:
            return {}
        found = {topic: encoding.spark_condition for topic, encoding in encodings.items()}
        return {topic: condition for topic, condition in found.items() if condition is not None}

    @property
    def _encodings(self) -> dict[str, Encoding]:
        return {topic: self.target(topic).encoding for topic in {part.topic for part in self.slices}}

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        writer: SliceWriter | None = None
        throttle = Throttle(self.settings.bytes_per_second)
        try:
            for batch in batches:
                if batch.num_rows == 0:
                    continue
                if writer is None:
                    writer = SliceWriter(self._work(self._slice_of(batch)))
                batch, large = split_large(batch)
                if large is not None:
                    writer.stop_at_large(large)
                    break
                if not writer.write(batch):
                    break
                throttle.keep(batch.nbytes)
            if writer is not None:
                yield _row(writer.finish().to_json())
        except BaseException:
            if writer is not None:
                writer.abandon()
            raise

    def _work(self, part: Slice) -> SliceWork:
        return SliceWork(
            slice=part,
            settings=self.settings,
            target=self.target(part.topic),
            schema=self.schemas.get(part.topic),
            rewrites=self.rewrites.get(part),
            committed=self.committed.get(part),
            refused_keys=self.refused_keys.get(part, {}),
        )

    def _slice_of(self, batch: pa.RecordBatch) -> Slice:
        """The slice that holds the first row. Spark does not pass it to the task in any other way."""
        topic = batch.column("topic")[0].as_py() if "topic" in batch.schema.names else self.slices[0].topic
        partition, offset = batch.column("partition")[0].as_py(), batch.column("offset")[0].as_py()
        for slice in self.slices:
            if slice.at == (topic, partition) and slice.start <= offset < slice.end:
                return slice
        raise ProtocolError(f"Spark read {topic}-{partition} offset {offset}, which is in no slice of the plan")


def _row(text: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([text], pa.string())], ["result"])
