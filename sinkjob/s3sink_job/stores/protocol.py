"""What the product needs of a store. A new store implements `StoreRequests`; `Bucket` adds retries and paging."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")
Marker = tuple[tuple[str, str | int], ...]
"""The arguments for the next page of a list. Empty for the first page."""


@dataclass(frozen=True)
class Page(Generic[T]):
    items: Sequence[T]
    next: Marker | None
    """None on the last page. Empty if the store says that more follows, but not where."""


@dataclass(frozen=True)
class StoredObject:
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


class StoreRequests(Protocol):
    """The requests to one bucket, each sent once. They raise the errors of `stores.errors`."""

    @property
    def name(self) -> str:
        """Of the bucket."""

    def named(self, name: str) -> StoreRequests:
        """Another bucket of the same store."""

    def url(self, key: str) -> str:
        """For messages."""

    def check(self) -> None:
        """Raises if the bucket does not exist or access is denied."""

    def get(self, key: str) -> tuple[bytes, str] | None:
        """Content and ETag; None if there is no such object."""

    def head(self, key: str) -> StoredObject | None: ...

    def put(self, key: str, body: bytes, *, if_match: str, if_absent: bool) -> str:
        """Writes a small object of the state folder and returns its ETag."""

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
        """Writes a whole data object."""

    def delete(self, key: str) -> None: ...

    def first_key(self, prefix: str) -> str | None: ...

    def list_page(self, prefix: str, after: str, marker: Marker) -> Page[tuple[str, int]]:
        """Keys and sizes."""

    def list_uploads_page(self, prefix: str, marker: Marker) -> Page[PendingUpload]: ...

    def list_parts_page(self, key: str, upload_id: str, marker: Marker) -> Page[Part]: ...

    def create_upload(self, key: str, metadata: dict[str, str], content_type: str, content_encoding: str) -> str: ...

    def upload_part(self, key: str, upload_id: str, number: int, body: bytes | memoryview) -> str:
        """Returns the part's ETag."""

    def complete_upload(self, key: str, upload_id: str, etags: tuple[str, ...], *, exclusive: bool) -> None:
        """`exclusive`: only if the key is free."""

    def abort_upload(self, key: str, upload_id: str) -> None: ...
