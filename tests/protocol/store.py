"""S3 in memory, as a boto3 client sees it: the model under the real `stores.bucket.Bucket`.

Every request passes through `ask`, which decides whether it reaches the store, when, and whether its
answer comes back. The store itself is strongly consistent, as S3 is.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

Ask = Callable[[str, Callable[[], Any], bool], Any]
"""What to do with a request: its name, the request itself, whether it writes."""

TWICE = ("NoSuchUpload", "Done", "PreconditionFailed")
"""How stores answer to completing what was completed before."""


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
    parts: dict[int, bytes] = field(default_factory=dict)


class ModelS3:
    """`on_change` is told of every write that takes effect: (key, before, after)."""

    def __init__(
        self,
        on_change: Callable[[str, Stored | None, Stored], None],
        *,
        conditional: bool = True,
        twice: str = "NoSuchUpload",
    ) -> None:
        self.on_change = on_change
        self.conditional = conditional
        self.twice = twice
        self.objects: dict[str, Stored] = {}
        self.uploads: dict[str, Pending] = {}
        self.completed: set[str] = set()
        self._made = 0

    def put(self, key: str, body: bytes, *, if_match: str | None, if_absent: bool) -> str:
        self._check(key, if_match=if_match, if_absent=if_absent)
        return self._store(key, Stored(body, etag_of(body), {}))

    def create(self, key: str, metadata: dict[str, str]) -> str:
        self._made += 1
        self.uploads[f"upload-{self._made}"] = Pending(key, metadata)
        return f"upload-{self._made}"

    def upload(self, upload_id: str, number: int, body: bytes) -> str:
        self._pending(upload_id).parts[number] = body
        return etag_of(body)

    def complete(self, key: str, upload_id: str, etags: list[str], *, if_absent: bool) -> None:
        if upload_id in self.completed and self.twice == "Done":
            return
        if upload_id in self.completed and key in self.objects and self.twice == "PreconditionFailed":
            raise _refusal("PreconditionFailed", 412)
        pending = self._pending(upload_id)
        self._check(key, if_match=None, if_absent=if_absent)
        bodies = [pending.parts[number] for number in range(1, len(etags) + 1)]
        if pending.key != key or [etag_of(b) for b in bodies] != etags:
            raise _refusal("InvalidPart", 400)
        del self.uploads[upload_id]
        self.completed.add(upload_id)
        body = b"".join(bodies)
        self._store(key, Stored(body, f'{etag_of(body)[:-1]}-{len(bodies)}"', pending.metadata, upload_id))

    def abort(self, upload_id: str) -> None:
        self._pending(upload_id)
        del self.uploads[upload_id]

    def copy(self, on_change: Callable[[str, Stored | None, Stored], None]) -> ModelS3:
        made = ModelS3(on_change, conditional=self.conditional, twice=self.twice)
        made.objects, made.completed, made._made = dict(self.objects), set(self.completed), self._made
        made.uploads = {name: Pending(p.key, p.metadata, dict(p.parts)) for name, p in self.uploads.items()}
        return made

    def keys(self, prefix: str) -> list[str]:
        return sorted(key for key in self.objects if key.startswith(prefix))

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
        return {"ContentLength": len(found.body), "ETag": found.etag, "Metadata": found.metadata}

    def list_objects_v2(self, *, Bucket: str, Prefix: str, MaxKeys: int = 1000, StartAfter: str = "") -> dict[str, Any]:
        def call() -> list[str]:
            return [key for key in self._store.keys(Prefix) if key > StartAfter][:MaxKeys]

        keys = self._ask(f"list {Prefix}", call, False)
        return {"Contents": [{"Key": k, "Size": len(self._store.objects[k].body)} for k in keys]}

    def get_paginator(self, operation: str) -> ModelClient:
        assert operation == "list_objects_v2"
        return self

    def paginate(self, *, Bucket: str, Prefix: str, StartAfter: str) -> Iterator[dict[str, Any]]:
        yield self.list_objects_v2(Bucket=Bucket, Prefix=Prefix, StartAfter=StartAfter)

    def put_object(
        self, *, Bucket: str, Key: str, Body: bytes, IfMatch: str = "", IfNoneMatch: str = "", **_: Any
    ) -> dict[str, Any]:
        def call() -> str:
            return self._store.put(Key, Body, if_match=IfMatch, if_absent=bool(IfNoneMatch))

        return {"ETag": self._ask(f"put {Key}", call, True)}

    def create_multipart_upload(self, *, Bucket: str, Key: str, Metadata: dict[str, str], **_: Any) -> dict[str, Any]:
        return {"UploadId": self._ask(f"create {Key}", lambda: self._store.create(Key, Metadata), True)}

    def upload_part(self, *, Bucket: str, Key: str, UploadId: str, PartNumber: int, Body: bytes) -> dict[str, Any]:
        def call() -> str:
            return self._store.upload(UploadId, PartNumber, Body)

        return {"ETag": self._ask(f"part {PartNumber} of {Key} ({UploadId})", call, True)}

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
    """S3's answer to a conditional write while another one to the same key is under way."""
    return _refusal("ConditionalRequestConflict", 409)


def _refusal(code: str, status: int) -> ClientError:
    answer = {"Error": {"Code": code, "Message": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "Model")  # type: ignore[arg-type]


def etag_of(body: bytes) -> str:
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'
