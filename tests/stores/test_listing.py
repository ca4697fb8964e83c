"""A list is complete or an error: `gc` aborts uploads that no listed state needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ConnectTimeoutError

from s3sink_job.base.errors import FinalError
from s3sink_job.base.retry import RetryPolicy
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.errors import StoreUnavailable
from s3sink_job.stores.s3.bucket import S3Bucket
from tests.protocol.store import ModelClient, ModelS3
from tools.parts.proxy import FaultProxy, Refuse, Status, request_is

KEYS = [f"raw/{number}" for number in range(7)]
LISTS = request_is("GET", query="list-type=2")


@pytest.fixture
def filled(through: Bucket) -> Bucket:
    for key in KEYS:
        through.put(key, b"x")
    return through


@pytest.mark.parametrize("page", range(4))
@pytest.mark.parametrize("fault", [Status(503, "SlowDown"), Status(500), Refuse()], ids=["503", "500", "cut off"])
def test_a_page_of_a_list_that_fails_once_is_requested_again(
    filled: Bucket, proxy: FaultProxy, page: int, fault: Status | Refuse
) -> None:
    rule = proxy.on(LISTS, fault, times=1, skip=page)

    assert [key for key, _ in filled.list("raw/")] == KEYS
    assert rule.hits == 1


def test_a_page_that_keeps_failing_is_an_error_not_the_end(filled: Bucket, proxy: FaultProxy) -> None:
    proxy.on(LISTS, Status(503, "SlowDown"), skip=2)

    with pytest.raises(StoreUnavailable, match="ListObjectsV2"):
        list(filled.list("raw/"))


def test_parts_are_listed_page_by_page_too(through: Bucket, proxy: FaultProxy) -> None:
    upload_id = through.create_upload("k", {}, "text/plain")
    etags = [through.upload_part("k", upload_id, number, b"x" * number) for number in range(1, 6)]
    failing = proxy.on(request_is("GET", query="uploadId="), Status(503, "SlowDown"), times=1, skip=1)

    parts = list(through.list_parts("k", upload_id))

    assert [(p.number, p.size, p.etag) for p in parts] == [(n, n, etag) for n, etag in enumerate(etags, start=1)]
    assert failing.hits == 1


def test_uploads_are_listed_page_by_page_too() -> None:
    """With the model: neither of the real servers here returns a second page of uploads."""
    asked: list[str] = []

    def ask(name: str, call: Callable[[], Any], writes: bool) -> Any:
        asked.append(name)
        if len(asked) == 2:
            raise ConnectTimeoutError(endpoint_url="http://model")
        return call()

    store = ModelS3(lambda key, before, after: None)
    ids = {store.create(f"raw/{number // 3}", {}) for number in range(7)}
    client: Any = ModelClient(store, ask)

    assert {u.upload_id for u in Bucket(S3Bucket(client, "lake"), RetryPolicy(1, 0)).list_uploads("raw/")} == ids
    assert len(asked) == 5


class Answers:
    """A client whose pages always say that more follows."""

    def __init__(self, *markers: dict[str, Any]) -> None:
        self.left = list(markers)

    def list_objects_v2(self, **_: Any) -> dict[str, Any]:
        return {"Contents": [{"Key": "k", "Size": 1}], "IsTruncated": True, **self.left.pop(0)}


@pytest.mark.parametrize(
    "client",
    [
        Answers({}),
        Answers({"NextContinuationToken": ""}),
        Answers({"NextContinuationToken": "a"}, {"NextContinuationToken": "a"}),
        Answers({"NextContinuationToken": "a"}, {"NextContinuationToken": "b"}, {"NextContinuationToken": "a"}),
    ],
    ids=["no token", "an empty token", "the same token again", "tokens in a circle"],
)
def test_a_list_without_a_marker_for_its_next_page_is_an_error(client: Any) -> None:
    with pytest.raises(FinalError, match=r"list of s3://lake/raw/: page \d says that more follows") as caught:
        list(Bucket(S3Bucket(client, "lake")).list("raw/"))
    assert caught.value.reason == "ListingBroken"
