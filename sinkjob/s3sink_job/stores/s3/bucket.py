"""The requests of `stores.protocol` on S3, with boto3."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from s3sink_job.base.errors import S3SinkError
from s3sink_job.stores.protocol import Marker, Page, Part, PendingUpload, StoredObject
from s3sink_job.stores.s3.errors import NO_OBJECT, NO_OBJECT_FOR_HEAD, translate

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

T = TypeVar("T")
BAD_REQUEST = 400


@dataclass(frozen=True)
class S3Bucket:
    client: S3Client
    name: str
    encryption: Mapping[str, Any] = field(default_factory=dict)
    data_options: Mapping[str, Any] = field(default_factory=dict)
    """Storage class, tags and ACL. Not for what is below the state prefix: it must stay readable at once, and private.
    Dead letters wait there, too."""
    customer_key: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The user's own key that data objects are encrypted with. The state is not: with another key the sink goes on."""
    state_prefix: str = ""

    def named(self, name: str) -> S3Bucket:
        return replace(self, name=name)

    def url(self, key: str) -> str:
        return f"s3://{self.name}/{key}"

    def check(self) -> None:
        try:
            self._send("HeadBucket", "", lambda: self.client.head_bucket(Bucket=self.name))
        except S3SinkError as error:
            # The answer to a HEAD has no body, so a 404 or 403 has no code. A GET returns it.
            if not error.retryable:
                self.first_key("")
            raise

    def get(self, key: str) -> tuple[bytes, str] | None:
        def call(encryption: Mapping[str, Any]) -> tuple[bytes, str]:
            answer = self.client.get_object(Bucket=self.name, Key=key, **encryption)
            return answer["Body"].read(), answer["ETag"]

        return self._send("GetObject", key, _none_if({NO_OBJECT}, lambda: self._read(key, call)))

    def head(self, key: str) -> StoredObject | None:
        def call(encryption: Mapping[str, Any]) -> StoredObject:
            answer = self.client.head_object(Bucket=self.name, Key=key, **encryption)
            metadata = {k.lower(): v for k, v in answer["Metadata"].items()}
            return StoredObject(key, answer["ContentLength"], answer["ETag"], metadata)

        return self._send("HeadObject", key, _none_if(NO_OBJECT_FOR_HEAD, lambda: self._read(key, call)))

    def put(self, key: str, body: bytes, *, if_match: str, if_absent: bool) -> str:
        options = {"ContentType": "application/json", **self.encryption, **_condition(if_match, if_absent=if_absent)}
        answer = self._send(
            "PutObject", key, lambda: self.client.put_object(Bucket=self.name, Key=key, Body=body, **options)
        )
        return answer["ETag"]

    def put_data(
        self,
        key: str,
        body: bytes,
        metadata: dict[str, str],
        content_type: str,
        content_encoding: str,
        *,
        if_match: str,
        if_absent: bool,
    ) -> None:
        options = self._data_options(key, metadata, content_type, content_encoding)
        options |= _condition(if_match, if_absent=if_absent)
        self._send("PutObject", key, lambda: self.client.put_object(Bucket=self.name, Key=key, Body=body, **options))

    def delete(self, key: str) -> None:
        self._send("DeleteObject", key, lambda: self.client.delete_object(Bucket=self.name, Key=key))

    def first_key(self, prefix: str) -> str | None:
        answer = self._send(
            "ListObjectsV2",
            prefix,
            lambda: self.client.list_objects_v2(Bucket=self.name, Prefix=prefix, MaxKeys=1),
        )
        return next((o["Key"] for o in answer.get("Contents", [])), None)

    def list_page(self, prefix: str, after: str, marker: Marker) -> Page[tuple[str, int]]:
        wanted = {"Prefix": prefix} | ({"StartAfter": after} if after else {})
        page = self._list("ListObjectsV2", prefix, self.client.list_objects_v2, wanted, marker)
        found = [(each["Key"], each["Size"]) for each in page.get("Contents", [])]
        return Page(found, _next(page, ContinuationToken="NextContinuationToken"))

    def list_uploads_page(self, prefix: str, marker: Marker) -> Page[PendingUpload]:
        request = self.client.list_multipart_uploads
        page = self._list("ListMultipartUploads", prefix, request, {"Prefix": prefix}, marker)
        found = [PendingUpload(each["Key"], each["UploadId"], each["Initiated"]) for each in page.get("Uploads", [])]
        return Page(found, _next(page, KeyMarker="NextKeyMarker", UploadIdMarker="NextUploadIdMarker"))

    def list_parts_page(self, key: str, upload_id: str, marker: Marker) -> Page[Part]:
        wanted = {"Key": key, "UploadId": upload_id}
        page = self._list("ListParts", key, self.client.list_parts, wanted, marker)
        found = [Part(each["PartNumber"], each["Size"], each["ETag"]) for each in page.get("Parts", [])]
        return Page(found, _next(page, PartNumberMarker="NextPartNumberMarker"))

    def create_upload(self, key: str, metadata: dict[str, str], content_type: str, content_encoding: str) -> str:
        options = self._data_options(key, metadata, content_type, content_encoding)
        answer = self._send(
            "CreateMultipartUpload",
            key,
            lambda: self.client.create_multipart_upload(Bucket=self.name, Key=key, **options),
        )
        return answer["UploadId"]

    def upload_part(self, key: str, upload_id: str, number: int, body: bytes | memoryview) -> str:
        answer = self._send(
            "UploadPart",
            key,
            lambda: self.client.upload_part(
                Bucket=self.name,
                Key=key,
                UploadId=upload_id,
                PartNumber=number,
                Body=bytes(body),
                **self.customer_key,
            ),
        )
        return answer["ETag"]

    def complete_upload(self, key: str, upload_id: str, etags: tuple[str, ...], *, exclusive: bool) -> None:
        parts = [{"PartNumber": n, "ETag": etag} for n, etag in enumerate(etags, start=1)]
        condition = _condition("", if_absent=exclusive)
        self._send(
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
        self._send(
            "AbortMultipartUpload",
            key,
            lambda: self.client.abort_multipart_upload(Bucket=self.name, Key=key, UploadId=upload_id),
        )

    def _list(
        self, operation: str, below: str, request: Callable[..., Any], wanted: Mapping[str, Any], marker: Marker
    ) -> Mapping[str, Any]:
        page: Mapping[str, Any] = self._send(
            operation, below, lambda: request(Bucket=self.name, **wanted, **dict(marker))
        )
        return page

    def _data_options(
        self, key: str, metadata: dict[str, str], content_type: str, content_encoding: str
    ) -> dict[str, Any]:
        coding = {"ContentEncoding": content_encoding} if content_encoding else {}
        how = {**self.encryption, **self.customer_key, **({} if self._is_of_state(key) else self.data_options)}
        return {"Metadata": metadata, "ContentType": content_type, **coding, **how}

    def _is_of_state(self, key: str) -> bool:
        return key.startswith(f"{self.state_prefix}/")

    def _read(self, key: str, call: Callable[[Mapping[str, Any]], T]) -> T:
        """With the user's key where the object needs it. S3 answers 400 to a key too much as to a missing one.

        Objects from before the key was set do not need it, and staged dead letters beside the state do.
        """
        if not self.customer_key:
            return call({})
        first, second = ({}, self.customer_key) if self._is_of_state(key) else (self.customer_key, {})
        try:
            return call(first)
        except ClientError as error:
            if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") != BAD_REQUEST:
                raise
            return call(second)

    def _send(self, operation: str, key: str, call: Callable[[], T]) -> T:
        try:
            return call()
        except (ClientError, BotoCoreError, OSError) as error:
            raise translate(error, f"{operation} {self.url(key)}") from error


def _condition(if_match: str, *, if_absent: bool) -> dict[str, Any]:
    matching: dict[str, Any] = {"IfMatch": if_match} if if_match else {}
    return matching | ({"IfNoneMatch": "*"} if if_absent else {})


def _next(page: Mapping[str, Any], **markers: str) -> Marker | None:
    """`markers`: the arguments for the next page, and what the answer calls them."""
    if not page.get("IsTruncated"):
        return None
    return tuple((argument, page[name]) for argument, name in markers.items() if page.get(name))


def _none_if(codes: Sequence[str] | set[str], call: Callable[[], T]) -> Callable[[], T | None]:
    def wrapped() -> T | None:
        try:
            return call()
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in codes:
                return None
            raise

    return wrapped
