"""S3 in memory with the interface of a boto3 client: the model below the real `stores.s3.bucket.S3Bucket`.

Every request passes through `ask`, which decides whether and when it reaches the store, and whether it is answered. The
store itself is strongly consistent, as S3 is.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

Ask = Callable[[str, Callable[[], Any], bool], Any]
"""What to do with a request: its name, the request itself, whether it writes."""

TWICE = ("NoSuchUpload", "Done", "PreconditionFailed")
"""How stores answer to completing what was completed before."""
PAGE = 2
"""Entries that a list has on one page."""
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
"""When every upload began: none is too young for `s3sink gc`."""


@dataclass(frozen=True)
class Stored:
    body: bytes
    etag: str
    metadata: dict[str, str]
    upload_id: str = ""


@dataclass
class Pending:
    key: str
    metadata: dict[str, str]
    parts: dict[int, tuple[bytes, str]] = field(default_factory=dict)
    """Content and ETag."""


class ModelS3:
    """`on_change` is called for every write that takes effect: (key, before, after).

    ETags of an `opaque` store do not depend on the content: each write has another one. A store that `forgets` does
    not return metadata.
    """

    def __init__(
        self,
        on_change: Callable[[str, Stored | None, Stored], None],
        *,
        conditional: bool = True,
        twice: str = "NoSuchUpload",
        opaque: bool = False,
        forgets: bool = False,
    ) -> None:
        self.on_change = on_change
        self.on_delete: Callable[[str, Stored], None] = lambda key, stored: None
        self.conditional = conditional
        self.twice = twice
        self.opaque = opaque
        self.forgets = forgets
        self.objects: dict[str, Stored] = {}
        self.uploads: dict[str, Pending] = {}
        self.completed: set[str] = set()
        self._made = 0

    def put(self, key: str, body: bytes, metadata: dict[str, str], *, if_match: str | None, if_absent: bool) -> str:
        self._check(key, if_match=if_match, if_absent=if_absent)
        return self._store(key, Stored(body, self._etag(body), metadata))

    def create(self, key: str, metadata: dict[str, str]) -> str:
        self._made += 1
        self.uploads[f"upload-{self._made}"] = Pending(key, metadata)
        return f"upload-{self._made}"

    def upload(self, upload_id: str, number: int, body: bytes) -> str:
        etag = self._etag(body)
        self._pending(upload_id).parts[number] = (body, etag)
        return etag

    def complete(self, key: str, upload_id: str, etags: list[str], *, if_absent: bool) -> None:
        if upload_id in self.completed and self.twice == "Done":
            return
        if upload_id in self.completed and key in self.objects and self.twice == "PreconditionFailed":
            raise _refusal("PreconditionFailed", 412)
        pending = self._pending(upload_id)
        self._check(key, if_match=None, if_absent=if_absent)
        parts = [pending.parts[number] for number in range(1, len(etags) + 1)]
        if pending.key != key or [etag for _, etag in parts] != etags:
            raise _refusal("InvalidPart", 400)
        del self.uploads[upload_id]
        self.completed.add(upload_id)
        body = b"".join(content for content, _ in parts)
        self._store(key, Stored(body, f'{self._etag(body)[:-1]}-{len(parts)}"', pending.metadata, upload_id))

    def abort(self, upload_id: str) -> None:
        self._pending(upload_id)
        del self.uploads[upload_id]

    def delete(self, key: str) -> None:
        if (stored := self.objects.pop(key, None)) is not None:
            self.on_delete(key, stored)

    def copy(self, on_change: Callable[[str, Stored | None, Stored], None]) -> ModelS3:
        kind = {"conditional": self.conditional, "twice": self.twice, "opaque": self.opaque, "forgets": self.forgets}
        made = ModelS3(on_change, **kind)  # type: ignore[arg-type]
        made.objects, made.completed, made._made = dict(self.objects), set(self.completed), self._made
        made.uploads = {name: Pending(p.key, p.metadata, dict(p.parts)) for name, p in self.uploads.items()}
        return made

    def restore(self, key: str, body: bytes) -> None:
        """Restores an older version."""
        self.objects[key] = Stored(body, self._etag(body), {})

    def keys(self, prefix: str) -> list[str]:
        return sorted(key for key in self.objects if key.startswith(prefix))

    def parts(self, upload_id: str) -> list[dict[str, Any]]:
        found = sorted(self._pending(upload_id).parts.items())
        return [{"PartNumber": number, "Size": len(body), "ETag": etag} for number, (body, etag) in found]

    def _etag(self, body: bytes) -> str:
        self._made += 1
        text = str(self._made).encode() if self.opaque else body
        return f'"{hashlib.md5(text, usedforsecurity=False).hexdigest()}"'

    def _pending(self, upload_id: str) -> Pending:
        if upload_id not in self.uploads:
            raise _refusal("NoSuchUpload", 404)
        return self.uploads[upload_id]

    def _check(self, key: str, *, if_match: str | None, if_absent: bool) -> None:
        if not self.conditional:
            return
        there = self.objects.get(key)
        if (if_absent and there is not None) or (if_match and (there is None or there.etag != if_match)):
            raise _refusal("PreconditionFailed", 412)

    def _store(self, key: str, stored: Stored) -> str:
        before = self.objects.get(key)
        self.objects[key] = stored
        self.on_change(key, before, stored)
        return stored.etag


class ModelClient:
    """The requests of boto3's S3 client that the sink makes."""

    def __init__(self, store: ModelS3, ask: Ask) -> None:
        self._store = store
        self._ask = ask

    def head_bucket(self, **_: Any) -> dict[str, Any]:
        return {}

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:
        found = self._ask(f"get {Key}", lambda: self._store.objects.get(Key), False)
        if found is None:
            raise _refusal("NoSuchKey", 404)
        return {"Body": io.BytesIO(found.body), "ETag": found.etag}

    def head_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:
        found = self._ask(f"head {Key}", lambda: self._store.objects.get(Key), False)
        if found is None:
            raise _refusal("404", 404)
        metadata = {} if self._store.forgets else found.metadata
        return {"ContentLength": len(found.body), "ETag": found.etag, "Metadata": metadata}

    def list_objects_v2(
        self, *, Bucket: str, Prefix: str, MaxKeys: int = PAGE, ContinuationToken: str = "", StartAfter: str = ""
    ) -> dict[str, Any]:
        after = ContinuationToken or StartAfter

        def call() -> list[dict[str, Any]]:
            keys = [key for key in self._store.keys(Prefix) if key > after]
            return [{"Key": key, "Size": len(self._store.objects[key].body)} for key in keys]

        found = self._ask(f"list {Prefix} after {after!r}", call, False)
        page = found[:MaxKeys]
        token = {"NextContinuationToken": page[-1]["Key"]} if len(found) > MaxKeys else {}
        return {"Contents": page, "IsTruncated": bool(token), **token}

    def list_multipart_uploads(
        self, *, Bucket: str, Prefix: str, KeyMarker: str = "", UploadIdMarker: str = ""
    ) -> dict[str, Any]:
        def call() -> list[tuple[str, str]]:
            found = sorted((pending.key, upload_id) for upload_id, pending in self._store.uploads.items())
            return [each for each in found if each[0].startswith(Prefix) and each > (KeyMarker, UploadIdMarker)]

        found = self._ask(f"list uploads {Prefix} after {KeyMarker!r}", call, False)
        page = [{"Key": key, "UploadId": upload_id, "Initiated": LONG_AGO} for key, upload_id in found[:PAGE]]
        if len(found) <= PAGE:
            return {"Uploads": page, "IsTruncated": False}
        key, upload_id = found[PAGE - 1]
        return {"Uploads": page, "IsTruncated": True, "NextKeyMarker": key, "NextUploadIdMarker": upload_id}

    def list_parts(self, *, Bucket: str, Key: str, UploadId: str) -> dict[str, Any]:
        """On one page: the model's objects have one part only."""
        parts = self._ask(f"list parts of {Key} ({UploadId})", lambda: self._store.parts(UploadId), False)
        return {"Parts": parts, "IsTruncated": False}

    def put_object(
        self,
        *,
        Bucket: str,
        Key: str,
        Body: bytes,
        IfMatch: str = "",
        IfNoneMatch: str = "",
        Metadata: dict[str, str] | None = None,
        **_: Any,
    ) -> dict[str, Any]:
        def call() -> str:
            return self._store.put(Key, Body, Metadata or {}, if_match=IfMatch, if_absent=bool(IfNoneMatch))

        return {"ETag": self._ask(f"put {Key}", call, True)}

    def create_multipart_upload(self, *, Bucket: str, Key: str, Metadata: dict[str, str], **_: Any) -> dict[str, Any]:
        return {"UploadId": self._ask(f"create {Key}", lambda: self._store.create(Key, Metadata), True)}

    def upload_part(self, *, Bucket: str, Key: str, UploadId: str, PartNumber: int, Body: bytes) -> dict[str, Any]:
        def call() -> str:
            return self._store.upload(UploadId, PartNumber, Body)

        return {"ETag": self._ask(f"part {PartNumber} of {Key} ({UploadId})", call, True)}

    def delete_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:
        self._ask(f"delete {Key}", lambda: self._store.delete(Key), True)
        return {}

    def complete_multipart_upload(
        self, *, Bucket: str, Key: str, UploadId: str, MultipartUpload: dict[str, Any], IfNoneMatch: str = ""
    ) -> dict[str, Any]:
        etags = [part["ETag"] for part in MultipartUpload["Parts"]]

        def call() -> None:
            self._store.complete(Key, UploadId, etags, if_absent=bool(IfNoneMatch))

        self._ask(f"complete {Key} ({UploadId})", call, True)
        return {}

    def abort_multipart_upload(self, *, Bucket: str, Key: str, UploadId: str) -> dict[str, Any]:
        self._ask(f"abort {Key} ({UploadId})", lambda: self._store.abort(UploadId), True)
        return {}


def conflict() -> ClientError:
    """S3's answer to a conditional write during another one to the same key."""
    return _refusal("ConditionalRequestConflict", 409)


def refused() -> ClientError:
    return _refusal("PreconditionFailed", 412)


def _refusal(code: str, status: int) -> ClientError:
    answer = {"Error": {"Code": code, "Message": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "Model")  # type: ignore[arg-type]
