"""The flush manifest: the immutable list of what one flush wrote. It is stored before the swap that commits it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from s3sink_job.base.errors import ProtocolError
from s3sink_job.flush.rollback import known_to_0_1

FORMAT_VERSION = 2
"""0.1.0 reads and writes 1. 2 has encodings that it does not have, routes, other buckets, and dead letters."""
STAGED = "Staged"
"""Of objects of dead letters that are to be sent to a topic."""
SINCE_0_2 = ("bucket", "letters", "offsets", "filtered", "inputs")
"""Fields of objects and slices that are left out where they are empty."""
InputTypes: TypeAlias = tuple[tuple[tuple[str, ...], str], ...]
"""By the path of a decoded field: its type, as text. Fields without a value are not there."""
OF_DEAD_LETTERS = ("last_letter", "letter_topic")
"""Fields of a manifest that are left out where there are no dead letters."""


@dataclass(frozen=True, order=True)
class Slice:
    """Offsets `[start, end)` of one partition that one Spark task reads, and the rule that made them due."""

    topic: str
    generation: int
    partition: int
    start: int
    end: int
    reason: str
    more: bool = False
    """Whether more offsets after it are due."""

    @property
    def at(self) -> tuple[str, int]:
        return self.topic, self.partition

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}[{self.start},{self.end})"


@dataclass(frozen=True)
class ObjectEntry:
    """One object of a flush: a multipart upload that becomes visible when it is completed.

    An object of a single record has no upload. It is put at once, is visible already, and is the same each time.
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
    """What its records have in common. Objects of a group follow one another; those of two groups may interleave."""
    bucket: str = ""
    """Empty for the sink's own bucket."""
    letters: str = ""
    """Empty for data. The format of an object of dead letters, or that it is staged for a topic."""
    offsets: tuple[int, ...] = ()
    """Of replayed dead letters: one for each row. They are no range, so `first` and `last` do not tell them."""


@dataclass(frozen=True)
class SliceEntry:
    """A slice as it was committed. A bad record may have stopped it before the planned end."""

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
    """Bytes written and read; 0 in manifests of releases that did not count them."""
    more: bool = False
    """Whether more offsets after it were due. They still are."""
    letters: tuple[int, ...] = ()
    """Offsets of dead letters."""
    filtered: int = 0
    """Records that the transform left out."""
    inputs: InputTypes = ()
    """The types of the fields that the transform's expressions depend on, the same for all records of the slice."""


def record_name(topic: str, generation: int, partition: int, offset: int) -> str:
    """Unique: topic names have no slash."""
    return f"{topic}/{generation}/{partition}/{offset}"


def record_parts(name: str) -> tuple[str, int, int, int]:
    topic, generation, partition, offset = name.split("/")
    return topic, int(generation), int(partition), int(offset)


@dataclass(frozen=True)
class SourceLog:
    """The log that the records of a topic were read from."""

    id: str
    """The topic's id; empty where the broker has no topic ids."""
    epochs: Mapping[int, int] = field(default_factory=dict)
    """By partition: the epoch of the leader that was read from, where the broker reports it."""


class GapReason:
    RETENTION = "Retention"
    """Kafka deleted the records before they were written; the sink continues after them."""
    TOPIC_DELETED = "TopicDeleted"
    """A topic of a pattern was deleted with records that were not written, and the sink has given it up."""
    TOPIC_REMADE = "TopicRemade"
    """The topic was recreated, and records of the old one were not written."""
    LOG_TRUNCATED = "LogTruncated"
    """The log was truncated by an unclean leader election or a lost disk, and lost records that were not written."""
    UPLOAD_LOST = "UploadLost"
    """A committed upload was aborted by somebody else, and Kafka no longer has its records."""


@dataclass(frozen=True)
class Gap:
    """Offsets `[start, end)` that are in no object and never will be."""

    topic: str
    generation: int
    partition: int
    start: int
    end: int
    reason: str
    at: float

    @property
    def moves(self) -> bool:
        """Whether the committed offset moves over it. Other gaps are below it, or of an earlier generation."""
        return self.reason in {GapReason.RETENTION, GapReason.TOPIC_DELETED}


@dataclass(frozen=True)
class LetterTopicEntry:
    """The topic that staged dead letters are sent to, and whether they get headers with the error."""

    name: str
    context: bool
    id: str = ""
    """The topic's id when the flush was committed; empty if it is not known."""


@dataclass(frozen=True)
class LastLetter:
    """The last dead letter of a flush."""

    topic: str
    partition: int
    offset: int
    reason: str
    message: str


@dataclass(frozen=True)
class Manifest:
    number: int
    writer: str
    epoch: int
    committed_at: float
    encoding: Mapping[str, Any]
    previous: str | None = None
    """The manifest committed before this one. The chain of manifests lists everything that was ever committed."""
    slices: tuple[SliceEntry, ...] = ()
    objects: tuple[ObjectEntry, ...] = ()
    gaps: tuple[Gap, ...] = ()
    replaces: tuple[str, ...] = ()
    """Keys of earlier flushes whose uploads were lost. This flush wrote them again or gave them up."""
    schemas: Mapping[str, str] = field(default_factory=dict)
    """By topic: the name of the inferred schema that all its objects so far fit into."""
    routed: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By topic: the encoding, where a route sets its own."""
    stamp: int = 0
    """Milliseconds: the time in names and folders of this flush."""
    logs: Mapping[str, SourceLog] = field(default_factory=dict)
    """By topic."""
    mends: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """By flush: the numbers of its objects that this one replaces."""
    last_letter: LastLetter | None = None
    letter_topic: LetterTopicEntry | None = None
    """Where the staged dead letters of this flush go."""

    def encoding_of(self, topic: str) -> Mapping[str, Any]:
        return self.routed.get(topic, self.encoding)

    @property
    def name(self) -> str:
        return manifest_name(self.number, self.writer)

    @property
    def data(self) -> tuple[ObjectEntry, ...]:
        """The objects without dead letters."""
        return tuple(entry for entry in self.objects if not entry.letters)

    @property
    def rows(self) -> int:
        return sum(o.rows for o in self.data)

    @property
    def dead_lettered(self) -> int:
        return sum(len(part.letters) for part in self.slices)

    @property
    def filtered(self) -> int:
        return sum(part.filtered for part in self.slices)

    @property
    def size(self) -> int:
        return sum(o.bytes for o in self.data)

    @property
    def format_version(self) -> int:
        """The lowest that fits: an older s3sink continues where nothing new is used, and refuses it otherwise."""
        elsewhere = (
            self.routed
            or self.dead_lettered
            or self.filtered
            or any(entry.bucket or entry.letters or entry.offsets for entry in self.objects)
        )
        return 1 if known_to_0_1(self.encoding) and not elsewhere else FORMAT_VERSION

    def to_json(self) -> bytes:
        doc = asdict(self)
        # 0.1.0 has a single bucket and no dead letters, and fails on a field that it does not have.
        for name in ("objects", "slices"):
            doc[name] = [{k: v for k, v in entry.items() if v or k not in SINCE_0_2} for entry in doc[name]]
        doc = {k: v for k, v in doc.items() if v is not None or k not in OF_DEAD_LETTERS}
        return json.dumps({"formatVersion": self.format_version, **doc}, indent=1).encode()


def manifest_name(number: int, writer: str) -> str:
    """Manifests are ordered by number. The writer tells those of a stale driver from ours."""
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
            slices=tuple(_slice_from_doc(s) for s in doc["slices"]),
            objects=tuple(object_from_doc(o) for o in doc["objects"]),
            gaps=tuple(Gap(**g) for g in doc["gaps"]),
            replaces=tuple(doc["replaces"]),
            schemas=doc.get("schemas", {}),
            routed=doc.get("routed", {}),
            stamp=doc.get("stamp", 0),
            logs={topic: _log_from_doc(log) for topic, log in doc.get("logs", {}).items()},
            mends={flush: tuple(numbers) for flush, numbers in doc.get("mends", {}).items()},
            last_letter=LastLetter(**letter) if (letter := doc.get("last_letter")) else None,
            letter_topic=LetterTopicEntry(**topic) if (topic := doc.get("letter_topic")) else None,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProtocolError(f"{where} is not a flush manifest: {error}", reason="CorruptState") from error


def _slice_from_doc(doc: Mapping[str, Any]) -> SliceEntry:
    lists = {name: tuple(doc.get(name, ())) for name in ("skipped", "letters")}
    return SliceEntry(**{**doc, **lists, "inputs": inputs_from_doc(doc.get("inputs", ()))})


def inputs_from_doc(doc: Sequence[Any]) -> InputTypes:
    return tuple((tuple(path), kind) for path, kind in doc)


def _log_from_doc(doc: Mapping[str, Any]) -> SourceLog:
    return SourceLog(doc["id"], {int(partition): epoch for partition, epoch in doc["epochs"].items()})


def object_from_doc(doc: Mapping[str, Any]) -> ObjectEntry:
    lists = {name: tuple(doc.get(name, ())) for name in ("etags", "group", "offsets")}
    return ObjectEntry(**{**doc, **lists})
