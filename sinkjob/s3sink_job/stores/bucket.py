"""The requests the sink makes, each with jittered retries and errors in our own terms."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from s3sink_job.errors import FinalError
from s3sink_job.stores.errors import (
    NO_OBJECT,
    NO_OBJECT_FOR_HEAD,
    KeyRefused,
    NoSuchUpload,
    PreconditionFailed,
    StoreRefused,
    Throttled,
    translate,
)
from s3sink_job.stores.share import Share

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

T = TypeVar("T")


@dataclass(frozen=True)
class Retrying:
    """Waits of `backoff`, twice that, and so on, each times a random factor so that tasks spread out."""

    max: int = 5
    backoff: float = 0.05

    def wait(self, attempt: int) -> float:
        return self.backoff * float(2**attempt) * random.uniform(0.5, 1.5)


@dataclass(frozen=True)
class Found:
    key: str
    size: int
    etag: str
    metadata: dict[str, str]


@dataclass(frozen=True)
class PendingUpload:
    key: str
    upload_id: str
    initiated: datetime


@dataclass(frozen=True)
class Part:
    number: int
    size: int
    etag: str


@dataclass
class Bucket:
    client: S3Client
    name: str
    retrying: Retrying = field(default_factory=Retrying)
    encryption: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    """Storage class and tags: for data objects only, the state must stay at hand."""
    on_retry: Callable[[str], None] = lambda what: None
    share: Share = field(default_factory=Share)
    """How many of its requests may be under way at a time."""

    def named(self, name: str) -> Bucket:
        """Another bucket of the same store; this one for no name."""
        return replace(self, name=name) if name else self

    def ask(self, operation: str, key: str, call: Callable[[], T], *, retry: bool = True) -> T:
        what = f"{operation} s3://{self.name}/{key}"
        attempt = 0
        while True:
            began = self.share.begin()
            try:
                return call()
            except (ClientError, BotoCoreError, OSError) as error:
                failure = translate(error, what)
                if isinstance(failure, Throttled):
                    self.share.halve(began)
                if not (retry and failure.retryable and attempt < self.retrying.max):
                    raise failure from error
            finally:
                self.share.end()
            self.on_retry(what)
            time.sleep(self.retrying.wait(attempt))
            attempt += 1

    def check(self) -> None:
        """Raises what is wrong with the bucket: missing, denied, unreachable."""
        try:
            self.ask("HeadBucket", "", lambda: self.client.head_bucket(Bucket=self.name))
        except Exception as error:
            # A HEAD has no body, so a 404 or 403 comes without its code: ask once more for the words.
            if not getattr(error, "retryable", True):
                self.list_first("")
            raise

    def list_first(self, prefix: str) -> str | None:
        answer = self.ask(
            "ListObjectsV2",
            prefix,
            lambda: self.client.list_objects_v2(Bucket=self.name, Prefix=prefix, MaxKeys=1),
        )
        return next((o["Key"] for o in answer.get("Contents", [])), None)

    def list(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        marker = {"ContinuationToken": "NextContinuationToken"}
        wanted = {"Prefix": prefix} | ({"StartAfter": after} if after else {})
        for page in self._pages("ListObjectsV2", prefix, self.client.list_objects_v2, marker, **wanted):
            for found in page.get("Contents", []):
                yield found["Key"], found["Size"]

    def list_uploads(self, prefix: str) -> Iterator[PendingUpload]:
        after = {"KeyMarker": "NextKeyMarker", "UploadIdMarker": "NextUploadIdMarker"}
        list_page = self.client.list_multipart_uploads
        for page in self._pages("ListMultipartUploads", prefix, list_page, after, Prefix=prefix):
            for found in page.get("Uploads", []):
                yield PendingUpload(found["Key"], found["UploadId"], found["Initiated"])

    def list_parts(self, key: str, upload_id: str) -> Iterator[Part]:
        after, wanted = {"PartNumberMarker": "NextPartNumberMarker"}, {"Key": key, "UploadId": upload_id}
        for page in self._pages("ListParts", key, self.client.list_parts, after, **wanted):
            for found in page.get("Parts", []):
                yield Part(found["PartNumber"], found["Size"], found["ETag"])

    def _pages(
        self, operation: str, below: str, list_page: Callable[..., Any], after: Mapping[str, str], **wanted: Any
    ) -> Iterator[Any]:
        """Every page, each asked for by itself: botocore's paginator ends without a word after a failure.

        `after` has the arguments for the next page and what they are called in the answer.
        """
        asked: set[tuple[tuple[str, Any], ...]] = set()
        at: tuple[tuple[str, Any], ...] = ()
        while at not in asked:
            asked.add(at)
            page = self.ask(operation, below, partial(list_page, Bucket=self.name, **wanted, **dict(at)))
            yield page
            if not page.get("IsTruncated"):
                return
            at = tuple((argument, page[name]) for argument, name in after.items() if page.get(name))
        raise FinalError(
            f"{operation} s3://{self.name}/{below}: page {len(asked)} says that more follows, but not where: "
            f"{dict(at) or 'it has no marker'}. The list is not complete, so nothing is concluded from it: "
            "tell the store's makers, or use another store",
            reason="ListingBroken",
        )

    def get(self, key: str) -> tuple[bytes, str] | None:
        def call() -> tuple[bytes, str] | None:
            try:
                answer = self.client.get_object(Bucket=self.name, Key=key)
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") == NO_OBJECT:
                    return None
                raise
            return answer["Body"].read(), answer["ETag"]

        return self.ask("GetObject", key, call)

    def head(self, key: str) -> Found | None:
        def call() -> Found | None:
            try:
                answer = self.client.head_object(Bucket=self.name, Key=key)
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") in NO_OBJECT_FOR_HEAD:
                    return None
                raise
            metadata = {k.lower(): v for k, v in answer["Metadata"].items()}
            return Found(key, answer["ContentLength"], answer["ETag"], metadata)

        return self.ask("HeadObject", key, call)

    def put(self, key: str, body: bytes, *, if_match: str = "", if_absent: bool = False, retry: bool = True) -> str:
        """Writes a small object and returns its ETag. Raises PreconditionFailed if the condition fails."""
        condition = _condition(if_match, if_absent=if_absent)
        answer = self.ask(
            "PutObject",
            key,
            lambda: self.client.put_object(
                Bucket=self.name,
                Key=key,
                Body=body,
                ContentType="application/json",
                **self.encryption,
                **condition,
            ),
            retry=retry,
        )
        return answer["ETag"]

    def delete(self, key: str) -> None:
        self.ask("DeleteObject", key, lambda: self.client.delete_object(Bucket=self.name, Key=key))

    def put_data(
        self,
        key: str,
        body: bytes,
        metadata: dict[str, str],
        content_type: str,
        content_encoding: str = "",
        *,
        if_match: str = "",
        if_absent: bool = False,
    ) -> None:
        """Writes a whole data object at once. Raises PreconditionFailed if the condition fails."""
        condition = _condition(if_match, if_absent=if_absent)
        described = self._described(metadata, content_type, content_encoding)
        self._begin(
            "PutObject",
            key,
            lambda: self.client.put_object(Bucket=self.name, Key=key, Body=body, **described, **condition),
        )

    def create_upload(self, key: str, metadata: dict[str, str], content_type: str, content_encoding: str = "") -> str:
        described = self._described(metadata, content_type, content_encoding)
        answer = self._begin(
            "CreateMultipartUpload",
            key,
            lambda: self.client.create_multipart_upload(Bucket=self.name, Key=key, **described),
        )
        return answer["UploadId"]

    def _begin(self, operation: str, key: str, call: Callable[[], T]) -> T:
        """Refused twice, with some time between: once may be a passing trouble with a code that nobody knows."""
        try:
            return self.ask(operation, key, call)
        except StoreRefused:
            time.sleep(self.retrying.wait(self.retrying.max))
        try:
            return self.ask(operation, key, call)
        except StoreRefused as error:
            raise KeyRefused(str(error)) from error

    def _described(self, metadata: dict[str, str], content_type: str, content_encoding: str) -> dict[str, Any]:
        """What a data object is told beside its content."""
        coding = {"ContentEncoding": content_encoding} if content_encoding else {}
        return {"Metadata": metadata, "ContentType": content_type, **coding, **self.encryption, **self.data}

    def upload_part(self, key: str, upload_id: str, number: int, body: bytes | memoryview) -> str:
        answer = self.ask(
            "UploadPart",
            key,
            lambda: self.client.upload_part(
                Bucket=self.name, Key=key, UploadId=upload_id, PartNumber=number, Body=bytes(body)
            ),
        )
        return answer["ETag"]

    def complete_upload(self, key: str, upload_id: str, etags: tuple[str, ...], *, exclusive: bool = True) -> None:
        parts = [{"PartNumber": n, "ETag": etag} for n, etag in enumerate(etags, start=1)]
        condition: dict[str, Any] = {"IfNoneMatch": "*"} if exclusive else {}
        self.ask(
            "CompleteMultipartUpload",
            key,
            lambda: self.client.complete_multipart_upload(
                Bucket=self.name,
                Key=key,
                UploadId=upload_id,
                MultipartUpload={"Parts": parts},  # type: ignore[typeddict-item]
                **condition,
            ),
        )

    def abort_upload(self, key: str, upload_id: str) -> None:
        try:
            self.ask(
                "AbortMultipartUpload",
                key,
                lambda: self.client.abort_multipart_upload(Bucket=self.name, Key=key, UploadId=upload_id),
            )
        except NoSuchUpload:
            return


def _condition(if_match: str, *, if_absent: bool) -> dict[str, Any]:
    matching: dict[str, Any] = {"IfMatch": if_match} if if_match else {}
    return matching | ({"IfNoneMatch": "*"} if if_absent else {})


__all__ = ["Bucket", "Found", "NoSuchUpload", "Part", "PendingUpload", "PreconditionFailed", "Retrying"]
