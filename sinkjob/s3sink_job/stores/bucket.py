"""A bucket as the product uses it: the store's requests with retries, a limit on parallel requests, and paging."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from s3sink_job.base.errors import FinalError
from s3sink_job.base.retry import NO_RETRIES, RetryPolicy
from s3sink_job.stores.errors import KeyRefused, NoSuchUpload, StoreRefused
from s3sink_job.stores.protocol import Marker, Page, Part, PendingUpload, StoredObject, StoreRequests
from s3sink_job.stores.request_limit import RequestLimit

T = TypeVar("T")


@dataclass
class Bucket:
    requests: StoreRequests
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    limit: RequestLimit = field(default_factory=RequestLimit)
    on_retry: Callable[[], None] = lambda: None

    @property
    def name(self) -> str:
        return self.requests.name

    def named(self, name: str) -> Bucket:
        """Another bucket of the same store; this one if the name is empty."""
        return replace(self, requests=self.requests.named(name)) if name else self

    @property
    def once(self) -> Bucket:
        """The same bucket without retries."""
        return replace(self, retry=NO_RETRIES)

    def url(self, key: str) -> str:
        return self.requests.url(key)

    def check(self) -> None:
        """Raises if the bucket does not exist, access is denied or the store cannot be reached."""
        self._run(self.requests.check)

    def get(self, key: str) -> tuple[bytes, str] | None:
        """Content and ETag; None if there is no such object."""
        return self._run(lambda: self.requests.get(key))

    def head(self, key: str) -> StoredObject | None:
        return self._run(lambda: self.requests.head(key))

    def put(self, key: str, body: bytes, *, if_match: str = "", if_absent: bool = False) -> str:
        """Writes a small object of the state folder and returns its ETag. Raises PreconditionFailed."""
        return self._run(lambda: self.requests.put(key, body, if_match=if_match, if_absent=if_absent))

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
        """Writes a whole data object. Raises PreconditionFailed, or KeyRefused."""
        described = (metadata, content_type, content_encoding)
        self._begin(lambda: self.requests.put_data(key, body, *described, if_match=if_match, if_absent=if_absent))

    def delete(self, key: str) -> None:
        self._run(lambda: self.requests.delete(key))

    def first_key(self, prefix: str) -> str | None:
        return self._run(lambda: self.requests.first_key(prefix))

    def list(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        """Keys and sizes of all objects below the prefix."""
        return self._pages(prefix, lambda marker: self.requests.list_page(prefix, after, marker))

    def list_uploads(self, prefix: str) -> Iterator[PendingUpload]:
        return self._pages(prefix, lambda marker: self.requests.list_uploads_page(prefix, marker))

    def list_parts(self, key: str, upload_id: str) -> Iterator[Part]:
        return self._pages(key, lambda marker: self.requests.list_parts_page(key, upload_id, marker))

    def create_upload(self, key: str, metadata: dict[str, str], content_type: str, content_encoding: str = "") -> str:
        """Returns the upload's id. Raises KeyRefused."""
        return self._begin(lambda: self.requests.create_upload(key, metadata, content_type, content_encoding))

    def upload_part(self, key: str, upload_id: str, number: int, body: bytes | memoryview) -> str:
        """Returns the part's ETag."""
        return self._run(lambda: self.requests.upload_part(key, upload_id, number, body))

    def complete_upload(self, key: str, upload_id: str, etags: tuple[str, ...], *, exclusive: bool = True) -> None:
        """With `exclusive` only if the key is free; otherwise raises PreconditionFailed."""
        self._run(lambda: self.requests.complete_upload(key, upload_id, etags, exclusive=exclusive))

    def abort_upload(self, key: str, upload_id: str) -> None:
        """No error if the upload is gone already."""
        try:
            self._run(lambda: self.requests.abort_upload(key, upload_id))
        except NoSuchUpload:
            return

    def _run(self, call: Callable[[], T]) -> T:
        def limited() -> T:
            with self.limit.slot():
                return call()

        return self.retry.run(limited, self.on_retry)

    def _begin(self, call: Callable[[], T]) -> T:
        """The first request for a key. A refusal is tried once more: an unknown error code may be transient."""
        try:
            return self._run(call)
        except StoreRefused:
            time.sleep(self.retry.wait(self.retry.max))
        try:
            return self._run(call)
        except StoreRefused as error:
            raise KeyRefused(str(error)) from error

    def _pages(self, below: str, list_page: Callable[[Marker], Page[T]]) -> Iterator[T]:
        """All pages, each retried by itself. Not boto3's paginator: that ends silently after a failure."""
        requested: set[Marker] = set()
        marker: Marker = ()
        while marker not in requested:
            requested.add(marker)
            page = self._run(partial(list_page, marker))
            yield from page.items
            if page.next is None:
                return
            marker = page.next
        raise FinalError(
            f"list of {self.url(below)}: page {len(requested)} says that more follows, but has no new marker: "
            f"{dict(marker) or 'none'}. The list may be incomplete, so it is not used. Report this to the vendor of "
            "the store, or use another store",
            reason="ListingBroken",
        )
