"""A multipart upload that is filled and not completed: bytes in, parts out. Nothing is visible until publishing."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from s3sink_job.base.errors import S3SinkError
from s3sink_job.base.spill import Spill
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.errors import KeyRefused

MAX_PARTS = 10_000


def try_upload(bucket: Bucket, prefix: str) -> None:
    """Starts and aborts an upload below the prefix. Raises if that is not allowed. Nothing becomes visible."""
    key = "/".join(part for part in (prefix, "s3sink-check") if part)
    upload_id = bucket.create_upload(key, {}, "application/octet-stream")
    try:
        bucket.upload_part(key, upload_id, 1, b"s3sink")
    finally:
        bucket.abort_upload(key, upload_id)


@dataclass
class Upload:
    """A file-like object that holds at most one part, in memory or in a spill file.

    What is written is not copied until a part is full, so it must not change afterwards.
    """

    bucket: Bucket
    key: str
    metadata: dict[str, str]
    content_type: str
    part_size: int
    content_encoding: str = ""
    upload_id: str = ""
    size: int = 0
    _etags: list[str] = field(default_factory=list)
    _pieces: list[bytes | memoryview] = field(default_factory=list)
    _spilled: Path | None = None
    _spill: Spill | None = None
    _on_disk: int = 0
    held: int = 0
    """Bytes in memory."""
    refused: str = ""
    """Why the store refuses the key. From then on nothing is sent and what is written is dropped."""

    def write(self, data: bytes | memoryview) -> int:
        self._pieces.append(data)
        self.held += len(data)
        self.size += len(data)
        while self.unsent >= self.part_size:
            self._send(self.part_size)
        return len(data)

    def spill(self, spill: Spill) -> None:
        """Moves what is in memory to a file, until the part is full."""
        if not self.held:
            return
        if self._spilled is None:
            self._spill, self._spilled = spill, spill.new_file()
        with spill.writing(), self._spilled.open("ab") as file:
            file.writelines(self._pieces)
        self._on_disk += self.held
        self._keep([])
        spill.grew(self._spilled, self._on_disk)

    @property
    def nearly_full(self) -> bool:
        """An object may have 10,000 parts: the writer starts the next object before that."""
        return len(self._etags) >= MAX_PARTS - 100

    @property
    def unsent(self) -> int:
        """Bytes."""
        return self._on_disk + self.held

    def finish(self) -> tuple[str, tuple[str, ...]]:
        """Sends the rest. The upload is complete now, and still invisible."""
        if self.unsent or not self._etags:
            self._send(self.unsent)
        return self.upload_id, tuple(self._etags)

    def abandon(self) -> None:
        """Best effort: an orphaned upload is invisible, and `s3sink gc` or a lifecycle rule removes it."""
        self._forget_file()
        if self.upload_id:
            try:
                self.bucket.abort_upload(self.key, self.upload_id)
            except S3SinkError:
                return

    def _send(self, count: int) -> None:
        pieces = self._pieces
        if self._spilled is not None:
            pieces = [self._spilled.read_bytes(), *pieces]
        *whole, last = pieces or [b""]
        cut = len(last) - (self.unsent - count)
        if not self.upload_id and not self.refused:
            self._begin()
        with memoryview(last) as view:
            body = b"".join((*whole, view[:cut]))
        self._keep([memoryview(last)[cut:]] if cut < len(last) else [])
        self._forget_file()
        # Frees the pieces while their copy is being sent.
        del pieces, whole, last
        if self.upload_id:
            self._etags.append(self.bucket.upload_part(self.key, self.upload_id, len(self._etags) + 1, body))

    def _begin(self) -> None:
        described = (self.metadata, self.content_type, self.content_encoding)
        try:
            self.upload_id = self.bucket.create_upload(self.key, *described)
        except KeyRefused as error:
            self.refused = f"the store refuses its key: {error}"

    def _keep(self, pieces: list[bytes | memoryview]) -> None:
        self._pieces, self.held = pieces, sum(map(len, pieces))

    def _forget_file(self) -> None:
        if self._spill is not None and self._spilled is not None:
            self._spill.remove(self._spilled)
        self._spilled, self._spill, self._on_disk = None, None, 0
