"""Makes the tasks that write slices, from the spec and what the driver has learned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from s3sink_api.spec import S3Sink
from s3sink_job.base.retry import RetryPolicy
from s3sink_job.base.secrets import Secrets
from s3sink_job.base.spill import SpillPlace, spill_folder
from s3sink_job.columns.known_columns import KnownColumns
from s3sink_job.flush.manifest import STAGED, Slice
from s3sink_job.flush.slicing import MOST_OBJECTS, task_slots
from s3sink_job.stores.request_limit import RequestLimit
from s3sink_job.task.bad_records import BadRecordPolicy
from s3sink_job.task.routing import Encodings, Routing
from s3sink_job.task.schema_handout import SchemaHandout
from s3sink_job.task.slice_task import SliceTask
from s3sink_job.task.task_settings import LetterTarget, TaskSettings, TopicTarget


@dataclass
class SliceTasks:
    sink: S3Sink
    secrets: Secrets
    routing: Routing
    request_limit: RequestLimit = field(default_factory=RequestLimit)
    """Of this process. Tasks start with its present value."""
    longest_segment: int | None = None
    """Bytes between two slashes of a key, if the store has a limit."""
    handout: SchemaHandout = field(init=False)

    def __post_init__(self) -> None:
        self.handout = SchemaHandout(self.secrets)

    def task(
        self,
        slices: tuple[Slice, ...],
        flush: str,
        encodings: Encodings,
        schemas: Mapping[str, KnownColumns],
        *,
        conditional: bool,
    ) -> SliceTask:
        spec = self.sink.spec
        retries = spec.errors.request_retries
        settings = TaskSettings(
            sink=self.sink.id,
            flush=flush,
            bucket=spec.destination.bucket,
            secrets=self.secrets,
            spill=self._spill_place(),
            planned=slices,
            bad_records=BadRecordPolicy(spec.errors.records, spec.errors.max_per_flush, spec.errors.log_records),
            retry=RetryPolicy(retries.max, retries.backoff),
            object_limit=MOST_OBJECTS // max(1, len(slices)),
            bytes_per_second=self._bytes_per_second(len(slices)),
            conditional=conditional,
            request_limit=self.request_limit.now,
            schemas=self.handout.for_topics({s.topic: encodings.of(s.topic).decoding for s in slices}),
            longest_segment=self.longest_segment,
            letters=self._letter_target(),
        )
        default = TopicTarget(encodings.default, spec.destination, spec.flush.records, spec.flush.bytes)
        targets = {topic: self.routing.target(topic, encodings) for topic in encodings.routed}
        return SliceTask(settings, slices, default, targets, schemas)

    def _letter_target(self) -> LetterTarget | None:
        """None if no record becomes a dead letter."""
        letters, destination = self.sink.spec.errors.dead_letter, self.sink.spec.destination
        if letters is None:
            return None
        if letters.prefix is None:
            return LetterTarget(destination, STAGED, self.staging(STAGED))
        return LetterTarget(replace(destination, prefix=letters.prefix), letters.object_format)

    def staging(self, letters: str) -> str:
        return staging_folder(self.sink) if letters == STAGED else ""

    def _spill_place(self) -> SpillPlace:
        """Parallel tasks share the disk of their pod."""
        spark = self.sink.spec.spark
        pod = spark.driver if spark.mode == "Local" else spark.executor
        return SpillPlace(spill_folder(), pod.spill // pod.cores)

    def _bytes_per_second(self, tasks: int) -> float | None:
        """Of each task, so that parallel tasks together keep to `source.maxBytesPerSecond`."""
        rate = self.sink.spec.source.max_bytes_per_second
        return None if rate is None else rate / max(1, min(tasks, task_slots(self.sink.spec.spark)))


def staging_folder(sink: S3Sink) -> str:
    """Of dead letters that are to be sent to a topic."""
    return f"{sink.spec.destination.state_prefix}/{sink.id}/letters"
