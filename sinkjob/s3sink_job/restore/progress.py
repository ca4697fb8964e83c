"""The object of a restore in the bucket: what it sends, where it began, and how far it was when it was last seen.

How far it is stands in Kafka, in a consumer group of the restore that each transaction also writes. This object pins
what the positions count: a restore that resumes has to send the same rows, whatever the sink has written since.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from s3sink_job.base.errors import ProtocolError
from s3sink_job.flush.kafka_metadata import TopicPartition
from s3sink_job.stores.bucket import Bucket

FORMAT_VERSION = 1
FOLDER = "restores"


@dataclass(frozen=True)
class RestoreProgress:
    run: str
    options: Mapping[str, Any]
    """What was asked for. A restore resumes only with the same."""
    flush: str | None
    """The last manifest of the sink whose objects are sent."""
    replayed: str | None
    """The last manifest of its replays."""
    after: str | None
    replayed_after: str | None
    """The manifests before theirs: a full refresh had replaced them."""
    left_out: Mapping[str, list[int]]
    """By manifest: objects that were not published when the restore began."""
    topics: Mapping[str, str]
    """By target: its id."""
    base: Mapping[str, Mapping[str, int]]
    """By target and partition: the end of the log before the restore."""
    rows: int
    started_at: float
    begun: bool = False
    """Whether the consumer group has its first positions. Before, nothing was sent."""
    sent: int = 0
    """Rows, when it was last seen."""
    finished_at: float | None = None
    records: int | None = None
    """In the end: how many were sent, and found in the topics."""

    def base_of(self, at: TopicPartition) -> int:
        return self.base[at[0]].get(str(at[1]), 0)

    def to_json(self) -> bytes:
        return json.dumps({"formatVersion": FORMAT_VERSION, **asdict(self)}, indent=1).encode()


@dataclass
class ProgressObject:
    bucket: Bucket
    key: str
    stored: RestoreProgress | None = field(default=None)

    def load(self) -> RestoreProgress | None:
        found = self.bucket.get(self.key)
        self.stored = None if found is None else _from_json(found[0], self.bucket.url(self.key))
        return self.stored

    def put(self, progress: RestoreProgress) -> RestoreProgress:
        self.bucket.put(self.key, progress.to_json())
        self.stored = progress
        return progress

    def update(self, **changes: Any) -> RestoreProgress:
        assert self.stored is not None
        return self.put(replace(self.stored, **changes))


def _from_json(body: bytes, where: str) -> RestoreProgress:
    try:
        doc = json.loads(body)
        version = doc.pop("formatVersion")
        if version != FORMAT_VERSION:
            raise ProtocolError(
                f"{where} has format version {version}, this s3sink reads {FORMAT_VERSION}: upgrade s3sink",
                reason="NewerFormat",
            )
        return RestoreProgress(**doc)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProtocolError(f"{where} is not the progress of a restore: {error}", reason="CorruptState") from error
