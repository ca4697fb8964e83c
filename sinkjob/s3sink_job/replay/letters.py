"""Dead letters as they are replayed: records as Kafka had them, and which of them are to be replayed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from s3sink_job.flush.manifest import Slice
from s3sink_job.kafka.schema_ids import MESSAGES, SCHEMA_IDS, id_in_headers, message_in_headers
from s3sink_job.proof.flush_history import PartitionGeneration
from s3sink_job.shape.dead_letters import HEADERS

MOST_BYTES = 32 * 2**20
"""Keys and values that are decoded at once; a larger record is decoded alone."""


class StoredLetter(NamedTuple):
    """A dead letter of this sink, read back."""

    place: PartitionGeneration
    offset: int
    timestamp: int
    """Milliseconds."""
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    """Those of the record, without the error."""
    reason: str

    @property
    def size(self) -> int:
        """Bytes of key and value."""
        return len(self.key or b"") + len(self.value or b"")


@dataclass(frozen=True)
class Selection:
    """Which dead letters are wanted. Empty fields select all."""

    topics: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None
    """Milliseconds, of the record: from `since` on, before `until`."""

    def takes(self, letter: StoredLetter) -> bool:
        return (
            (not self.topics or letter.place.topic in self.topics)
            and (not self.reasons or letter.reason in self.reasons)
            and (self.since is None or letter.timestamp >= self.since)
            and (self.until is None or letter.timestamp < self.until)
        )


EVERY_LETTER = Selection()


@dataclass(frozen=True)
class LetterGroup:
    """Dead letters of one partition, in the order of their offsets. There is at least one."""

    letters: tuple[StoredLetter, ...]

    @property
    def place(self) -> PartitionGeneration:
        return self.letters[0].place

    @property
    def slice(self) -> Slice:
        return Slice(*self.place, self.letters[0].offset, self.letters[-1].offset + 1, "Replay")

    @property
    def size(self) -> int:
        """Bytes of keys and values."""
        return sum(letter.size for letter in self.letters)

    def without(self, offsets: Iterable[int]) -> LetterGroup | None:
        """None if nothing is left."""
        out = set(offsets)
        kept = tuple(letter for letter in self.letters if letter.offset not in out)
        return LetterGroup(kept) if kept else None

    def batch(self) -> pa.RecordBatch:
        """As Spark reads records from Kafka."""
        letters = self.letters
        headers = [[{"key": k, "value": v} for k, v in letter.headers] or None for letter in letters]
        columns: dict[str, Any] = {
            "topic": pa.repeat(self.place.topic, len(letters)),
            "partition": pa.repeat(pa.scalar(self.place.partition, pa.int32()), len(letters)),
            "offset": pa.array([letter.offset for letter in letters], pa.int64()),
            "key": pa.array([letter.key for letter in letters], pa.binary()),
            "value": pa.array([letter.value for letter in letters], pa.binary()),
            "timestamp": pa.array([letter.timestamp * 1000 for letter in letters], pa.timestamp("us", "UTC")),
            "headers": pa.array(headers, HEADERS),
        }
        for part, name in SCHEMA_IDS.items():
            columns[name] = pa.array([id_in_headers(part, letter.headers) for letter in letters], pa.binary())
        for part, name in MESSAGES.items():
            columns[name] = pa.array([message_in_headers(part, letter.headers) for letter in letters], pa.binary())
        return pa.RecordBatch.from_pydict(columns)


def grouped(letters: Iterable[StoredLetter]) -> list[LetterGroup]:
    """By partition, at most `MOST_BYTES` together. A dead letter that is there twice counts once."""
    found: dict[PartitionGeneration, dict[int, StoredLetter]] = {}
    for letter in letters:
        found.setdefault(letter.place, {}).setdefault(letter.offset, letter)
    return [group for _, own in sorted(found.items()) for group in _by_size([own[offset] for offset in sorted(own)])]


def _by_size(letters: list[StoredLetter]) -> Iterator[LetterGroup]:
    start, size = 0, 0
    for number, letter in enumerate(letters):
        if number > start and size + letter.size > MOST_BYTES:
            yield LetterGroup(tuple(letters[start:number]))
            start, size = number, 0
        size += letter.size
    yield LetterGroup(tuple(letters[start:]))
