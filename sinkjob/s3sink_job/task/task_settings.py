"""What a task has to know: settings of the flush, the target of each topic, lost objects to write again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from s3sink_api.spec import Destination
from s3sink_job.base.retry import RetryPolicy
from s3sink_job.base.secrets import Secrets
from s3sink_job.base.spill import SpillPlace
from s3sink_job.columns.known_columns import KnownColumns
from s3sink_job.decode.schema_access import SchemaAccess, SchemasByRegistry
from s3sink_job.flush.manifest import Slice
from s3sink_job.layout.settings import ObjectLayout
from s3sink_job.stores.request_limit import PARALLEL
from s3sink_job.task.bad_records import BadRecordPolicy, LeftOut
from s3sink_job.task.encoding import Encoding

Group = tuple[str, ...]


@dataclass(frozen=True)
class TopicTarget:
    """Where the records of a topic go, in which encoding, and when an object is full."""

    encoding: Encoding
    destination: Destination
    records_per_object: int | None = None
    bytes_per_object: int | None = None


@dataclass(frozen=True)
class LetterTarget:
    """Where dead letters go, and the format of their objects. The bucket is the sink's own."""

    destination: Destination
    format: str
    staging: str = ""
    """The folder beside the state, if they are staged for a topic."""


@dataclass(frozen=True)
class Rewrite:
    """A lost object that is written again under its key: the records of its group from `first` to `last`."""

    key: str
    group: Group
    first: int
    last: int
    letters: bool = False


@dataclass(frozen=True)
class TaskSettings:
    """The same for every slice of a flush. It names the folder of the secrets, never their content."""

    sink: str
    flush: str
    bucket: str
    """The sink's own bucket. Routes may have others."""
    secrets: Secrets
    spill: SpillPlace
    planned: tuple[Slice, ...]
    """All slices of the flush, in order: names of objects may contain a slice's number."""
    bad_records: BadRecordPolicy
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    object_limit: int | None = None
    """Objects that a slice may make. It ends before the batch that would need more."""
    bytes_per_second: float | None = None
    """For this one task."""
    conditional: bool = True
    """Whether the store supports conditional writes."""
    request_limit: int = PARALLEL
    """Parallel requests that the task starts with."""
    schemas: SchemasByRegistry = field(default_factory=dict)
    """Of typed records, as far as the driver knows them."""
    longest_segment: int | None = None
    """Bytes between two slashes of a key, if the store has a limit."""
    letters: LetterTarget | None = None
    """If records may become dead letters."""
    replay: bool = False
    """Whether dead letters are written, beside a driver that may write at the same time."""

    def schema_access(self) -> SchemaAccess:
        return SchemaAccess(self.secrets, self.retry, self.schemas)

    def name_mark(self, layout: ObjectLayout) -> str:
        """Part of object names, where nothing else keeps two writers apart: the flush.

        Names of style Upload hold only the time of their flush, and a replay may run at the time of a flush.
        """
        return self.flush if not self.conditional or (self.replay and layout.style == "Upload") else ""


@dataclass(frozen=True)
class SliceWork:
    """One slice, and all that its writer needs."""

    slice: Slice
    settings: TaskSettings
    target: TopicTarget
    schema: KnownColumns | None = None
    """The topic's columns as known so far, where a schema is inferred."""
    rewrites: tuple[Rewrite, ...] | None = None
    """If set: only these objects are written."""
    committed: LeftOut | None = None
    """If lost objects are written again: what became of the bad records of the range."""
    refused_keys: Mapping[Group, str] = field(default_factory=dict)
    """Groups whose key the store refused before: their records are bad records."""

    @property
    def other_bucket(self) -> str:
        """The name of the bucket if it is not the sink's own, as manifests have it."""
        name = self.target.destination.bucket
        return "" if name == self.settings.bucket else name

    @property
    def lost_data(self) -> tuple[Rewrite, ...] | None:
        return None if self.rewrites is None else tuple(one for one in self.rewrites if not one.letters)

    @property
    def lost_letters(self) -> tuple[Rewrite, ...] | None:
        return None if self.rewrites is None else tuple(one for one in self.rewrites if one.letters)

    @property
    def number(self) -> int:
        """Of the slice within the flush."""
        return self.settings.planned.index(self.slice)
