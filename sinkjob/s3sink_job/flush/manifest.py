"""The flush manifest: the immutable list of what one flush made, written before the swap that commits it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from s3sink_job.encoding import known_to_0_1
from s3sink_job.errors import ProtocolError

FORMAT_VERSION = 2
"""1 is what 0.1.0 reads and says; 2 has encodings that it does not know, routes, and other buckets."""


@dataclass(frozen=True, order=True)
class Slice:
    """Offsets `[start, end)` of one partition that one task reads, and why they are due."""

    topic: str
    generation: int
    partition: int
    start: int
    end: int
    reason: str
    more: bool = False
    """Whether what is due goes on behind it."""

    @property
    def at(self) -> tuple[str, int]:
        return self.topic, self.partition

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}[{self.start},{self.end})"


@dataclass(frozen=True)
class ObjectEntry:
    """One object of a flush: an upload that becomes visible when it is completed.

    One without an upload was put whole, and is visible already: an object of a single record, always the same.
    """

    key: str
    upload_id: str
    etags: tuple[str, ...]
    topic: str
    generation: int
    partition: int
    first: int
    last: int
    rows: int
    bytes: int
    group: tuple[str, ...] = ()
    """What the records in it share. Objects of one group follow one another; those of two may interleave."""
    bucket: str = ""
    """Where it is, if that is not the sink's own bucket."""


@dataclass(frozen=True)
class SliceEntry:
    """A slice as it was committed. `end` may lie before the planned end when a record stopped it."""

    topic: str
    generation: int
    partition: int
    start: int
    end: int
    reason: str
    rows: int
    skipped: tuple[int, ...] = ()
    bytes: int = 0
    read: int = 0
    """Bytes that were written and read; 0 in manifests that did not count them yet."""
    more: bool = False
    """Whether what was due went on behind it: the rest is due still."""


def record_name(topic: str, generation: int, partition: int, offset: int) -> str:
    """No topic's name holds a slash."""
    return f"{topic}/{generation}/{partition}/{offset}"


def record_parts(name: str) -> tuple[str, int, int, int]:
    topic, generation, partition, offset = name.split("/")
    return topic, int(generation), int(partition), int(offset)


@dataclass(frozen=True)
class SourceLog:
    """Which log the records of a topic were read from."""

    id: str
    """The topic's id; empty where the broker has none."""
    epochs: Mapping[int, int] = field(default_factory=dict)
    """By partition: the epoch of the leader that was read from, where the broker tells."""


class GapReason:
    RETENTION = "Retention"
    """Kafka deleted the records before they were written; the sink goes on behind them."""
    TOPIC_DELETED = "TopicDeleted"
    """A topic of a pattern was deleted with records that were not written yet, and the sink has given it up."""
    TOPIC_REMADE = "TopicRemade"
    """The topic was deleted with records that were not written yet."""
    LOG_TRUNCATED = "LogTruncated"
    """The log lost its end, by an unclean election or a lost disk, and with it records that were not written yet."""
    UPLOAD_LOST = "UploadLost"
    """A committed upload was aborted by somebody else, and Kafka no longer has its records."""


@dataclass(frozen=True)
class Gap:
    """Offsets `[start, end)` that no object holds and none ever will."""

    topic: str
    generation: int
    partition: int
    start: int
    end: int
    reason: str
    at: float

    @property
    def moves(self) -> bool:
        """Whether the committed offset steps over it; other gaps are notes about what lies behind it."""
        return self.reason in {GapReason.RETENTION, GapReason.TOPIC_DELETED}


@dataclass(frozen=True)
class Manifest:
    number: int
    writer: str
    epoch: int
    committed_at: float
    encoding: Mapping[str, Any]
    previous: str | None = None
    """The manifest committed before this one: the chain from the state back is all that ever was committed."""
    slices: tuple[SliceEntry, ...] = ()
    objects: tuple[ObjectEntry, ...] = ()
    gaps: tuple[Gap, ...] = ()
    replaces: tuple[str, ...] = ()
    """Keys of earlier flushes whose uploads were lost, and which this flush wrote again or gave up."""
    schemas: Mapping[str, str] = field(default_factory=dict)
    """By topic: the name of the schema that its objects up to here fit into, where one is inferred."""
    routed: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By topic: the encoding where it is not that of the others."""
    stamp: int = 0
    """Milliseconds: the time that names and folders of this flush may hold."""
    logs: Mapping[str, SourceLog] = field(default_factory=dict)
    """By topic: the log that was read."""
    mends: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """By flush: which of its objects this one replaces."""

    def encoding_of(self, topic: str) -> Mapping[str, Any]:
        return self.routed.get(topic, self.encoding)

    @property
    def name(self) -> str:
        return manifest_name(self.number, self.writer)

    @property
    def rows(self) -> int:
        return sum(o.rows for o in self.objects)

    @property
    def size(self) -> int:
        return sum(o.bytes for o in self.objects)

    @property
    def format_version(self) -> int:
        """The lowest that can say it: an older s3sink goes on where nothing new is used, and else refuses in words."""
        elsewhere = self.routed or any(entry.bucket for entry in self.objects)
        return 1 if known_to_0_1(self.encoding) and not elsewhere else FORMAT_VERSION

    def to_json(self) -> bytes:
        doc = asdict(self)
        # Older versions, which know but one bucket, can still read it.
        doc["objects"] = [{k: v for k, v in o.items() if k != "bucket" or v} for o in doc["objects"]]
        return json.dumps({"formatVersion": self.format_version, **doc}, indent=1).encode()


def manifest_name(number: int, writer: str) -> str:
    """The number orders manifests; the writer keeps a stale driver's apart from ours."""
    return f"{number:012d}-{writer}"


def number_of(name: str | None) -> int:
    return int(name.partition("-")[0]) if name else 0


def manifest_from_json(body: bytes, where: str) -> Manifest:
    try:
        doc = json.loads(body)
        version = doc.pop("formatVersion")
        if not isinstance(version, int) or version > FORMAT_VERSION:
            raise ProtocolError(
                f"{where} has format version {version}, this s3sink reads up to {FORMAT_VERSION}: upgrade s3sink",
                reason="NewerFormat",
            )
        return Manifest(
            number=doc["number"],
            writer=doc["writer"],
            epoch=doc["epoch"],
            committed_at=doc["committed_at"],
            encoding=doc["encoding"],
            previous=doc["previous"],
            slices=tuple(SliceEntry(**{**s, "skipped": tuple(s["skipped"])}) for s in doc["slices"]),
            objects=tuple(object_from_doc(o) for o in doc["objects"]),
            gaps=tuple(Gap(**g) for g in doc["gaps"]),
            replaces=tuple(doc["replaces"]),
            schemas=doc.get("schemas", {}),
            routed=doc.get("routed", {}),
            stamp=doc.get("stamp", 0),
            logs={topic: _log_from_doc(log) for topic, log in doc.get("logs", {}).items()},
            mends={flush: tuple(places) for flush, places in doc.get("mends", {}).items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProtocolError(f"{where} is not a flush manifest: {error}", reason="CorruptState") from error


def _log_from_doc(doc: Mapping[str, Any]) -> SourceLog:
    return SourceLog(doc["id"], {int(partition): epoch for partition, epoch in doc["epochs"].items()})


def object_from_doc(doc: Mapping[str, Any]) -> ObjectEntry:
    return ObjectEntry(**{**doc, "etags": tuple(doc["etags"]), "group": tuple(doc.get("group", ()))})
