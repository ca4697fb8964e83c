"""An object on its way: bytes in, parts out, and nothing visible until somebody completes it."""

from __future__ import annotations

from dataclasses import dataclass, field

from s3sink_job.errors import S3SinkError
from s3sink_job.stores.bucket import Bucket

MAX_PARTS = 10_000


@dataclass
class Upload:
    """Holds at most one part in memory. `write` makes it usable as the sink of any encoder."""

    bucket: Bucket
    key: str
    metadata: dict[str, str]
    content_type: str
    part_size: int
    upload_id: str = ""
    size: int = 0
    _etags: list[str] = field(default_factory=list)
    _buffer: bytearray = field(default_factory=bytearray)

    def write(self, data: bytes | memoryview) -> int:
        self._buffer += data
        self.size += len(data)
        while len(self._buffer) >= self.part_size:
            self._send(self.part_size)
        return len(data)

    @property
    def nearly_full(self) -> bool:
        """S3 takes 10,000 parts an object: the writer rolls before that."""
        return len(self._etags) >= MAX_PARTS - 100

    def finish(self) -> tuple[str, tuple[str, ...]]:
        """Sends what is left. The upload is whole now, and still invisible."""
        if self._buffer or not self._etags:
            self._send(len(self._buffer))
        return self.upload_id, tuple(self._etags)

    def abandon(self) -> None:
        """Best effort: what stays behind is invisible, and `s3sink gc` or a lifecycle rule removes it."""
        if self.upload_id:
            try:
                self.bucket.abort_upload(self.key, self.upload_id)
            except S3SinkError:
                return

    def _send(self, count: int) -> None:
        if not self.upload_id:
            self.upload_id = self.bucket.create_upload(self.key, self.metadata, self.content_type)
        with memoryview(self._buffer) as view:
            etag = self.bucket.upload_part(self.key, self.upload_id, len(self._etags) + 1, view[:count])
        self._etags.append(etag)
        del self._buffer[:count]
