"""How the store is reached: proxy, timeouts, assumed roles, requester pays, ACLs, the user's own key."""

from __future__ import annotations

import base64
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from s3sink_api.spec import parse
from s3sink_job.base.errors import FinalError, S3SinkError
from s3sink_job.base.retry import NO_RETRIES
from s3sink_job.base.secrets import Secrets, write_secrets
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.errors import StoreUnavailable
from s3sink_job.stores.factory import open_bucket
from s3sink_job.stores.probe import probe
from tests.decode.glue_registry import always, refusal_of_sts, sessions
from tests.decode.registry_answers import Answer, answering
from tools.parts.forward_proxy import ForwardProxy
from tools.parts.proxy import Call, Delay, FaultProxy, Request, Status, request_is
from tools.parts.s3 import Moto, S3Server

ROLE = "arn:aws:iam::123456789012:role/sink"
KEY = os.urandom(32)
PASSWORD = "p@ss/w:rd%"


def secrets_of(server: S3Server, folder: Path, **more: dict[str, bytes]) -> Secrets:
    keys = {"AWS_ACCESS_KEY_ID": server.access_key.encode(), "AWS_SECRET_ACCESS_KEY": server.secret_key.encode()}
    return write_secrets(folder, {"s3": keys, **more})


def opened(endpoint: str, name: str, secrets: Secrets, **destination: Any) -> Bucket:
    place = {"bucket": name, "endpoint": endpoint, "credentials": {"secretRef": {"name": "s3"}}, **destination}
    sink = parse(
        {
            "apiVersion": "s3sink.dev/v1alpha1",
            "kind": "S3Sink",
            "metadata": {"name": "sink"},
            "spec": {"source": {"bootstrapServers": "kafka:9092", "topics": ["t"]}, "destination": place},
        }
    )
    return open_bucket(sink.spec.destination, secrets, NO_RETRIES)


def write_upload(bucket: Bucket, key: str, *parts: bytes) -> None:
    upload = bucket.create_upload(key, {"s3sink-flush": "1"}, "text/plain")
    etags = tuple(bucket.upload_part(key, upload, number, part) for number, part in enumerate(parts, 1))
    bucket.complete_upload(key, upload, etags)


def test_every_request_goes_through_the_proxy_with_the_password_of_the_secret(
    s3: S3Server, bucket: str, tmp_path: Path
) -> None:
    secrets = secrets_of(s3, tmp_path, proxy={"username": b"sink", "password": PASSWORD.encode()})
    with ForwardProxy("sink", PASSWORD) as proxy:
        settings = {"url": proxy.url, "credentialsFrom": {"secretRef": {"name": "proxy"}}}
        store = opened(s3.endpoint, bucket, secrets, proxy=settings)
        store.check()
        write_upload(store, "a/b c", b"data")
        assert store.get("a/b c") is not None
        assert PASSWORD not in repr(store)

    assert {target.startswith(f"{s3.endpoint}/{bucket}") for _, target in proxy.requests} == {True}
    assert [method for method, _ in proxy.requests] == ["HEAD", "POST", "PUT", "POST", "GET"]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_refuses_the_password_is_named_and_the_password_is_not(
    s3: S3Server, bucket: str, tmp_path: Path, scheme: str
) -> None:
    secrets = secrets_of(s3, tmp_path, proxy={"username": b"sink", "password": b"wrong-one"})
    with ForwardProxy("sink", PASSWORD) as proxy:
        settings = {"url": proxy.url, "credentialsFrom": {"secretRef": {"name": "proxy"}}}
        store = opened(f"{scheme}://{s3.endpoint.partition('://')[2]}", bucket, secrets, proxy=settings)
        with pytest.raises(FinalError, match=r"spec\.destination\.proxy\.credentialsFrom") as refused:
            store.get("a")

    assert refused.value.reason == "ProxyLoginRefused"
    assert "wrong-one" not in str(refused.value)


def test_a_proxy_that_does_not_answer_is_retried_and_its_password_is_not_shown(
    s3: S3Server, bucket: str, tmp_path: Path
) -> None:
    secrets = secrets_of(s3, tmp_path, proxy={"username": b"sink", "password": b"hidden-one"})
    settings = {"url": "http://127.0.0.1:9", "credentialsFrom": {"secretRef": {"name": "proxy"}}}
    with pytest.raises(StoreUnavailable) as failed:
        opened(s3.endpoint, bucket, secrets, proxy=settings).get("a")

    assert "127.0.0.1:9" in str(failed.value)
    assert "hidden-one" not in str(failed.value)


def test_https_goes_through_a_tunnel_of_the_proxy(s3: S3Server, bucket: str, tmp_path: Path) -> None:
    """The server has no TLS, so that the request fails behind the proxy."""
    with ForwardProxy() as proxy:
        store = opened(f"https://127.0.0.1:{s3.port}", bucket, secrets_of(s3, tmp_path), proxy={"url": proxy.url})
        with pytest.raises(StoreUnavailable):
            store.get("a")

    assert proxy.requests == [("CONNECT", f"127.0.0.1:{s3.port}")]


def test_a_request_is_given_up_after_the_read_timeout(
    s3: S3Server, bucket: str, proxy: FaultProxy, tmp_path: Path
) -> None:
    proxy.on(request_is("GET"), Delay(3))
    store = opened(proxy.endpoint, bucket, secrets_of(s3, tmp_path), timeouts={"connect": "500ms", "read": "200ms"})
    begun = time.monotonic()
    with pytest.raises(StoreUnavailable, match="Read timeout"):
        store.get("a")
    assert time.monotonic() - begun < 2


def test_a_connection_is_given_up_after_the_connect_timeout(s3: S3Server, bucket: str, tmp_path: Path) -> None:
    store = opened("http://127.0.0.1:9", bucket, secrets_of(s3, tmp_path), timeouts={"connect": "300ms"})
    config = store.requests.client.meta.config  # type: ignore[attr-defined]
    assert (config.connect_timeout, config.read_timeout) == (0.3, 60)
    with pytest.raises(StoreUnavailable):
        store.get("a")


class Sent:
    """Requests with their headers."""

    def __init__(self, proxy: FaultProxy) -> None:
        self.requests: list[Request] = []
        proxy.on(self._note, Call())

    def _note(self, request: Request) -> bool:
        self.requests.append(request)
        return False

    def headers(self, name: str) -> list[str]:
        return [request.headers.get(name, "") for request in self.requests]


def access_key(request: Request) -> str:
    return request.headers["authorization"].partition("Credential=")[2].partition("/")[0]


def test_a_role_is_assumed_once_and_its_credentials_are_renewed_before_they_expire(
    moto: Moto, unsigned: FaultProxy, topic_name: str, tmp_path: Path
) -> None:
    with FaultProxy("127.0.0.1", moto.port) as sts:
        role = {"arn": ROLE, "externalId": "ours:42", "sessionName": "orders", "endpoint": sts.endpoint}
        sent = Sent(unsigned)
        store = opened(unsigned.endpoint, moto.create_bucket(topic_name), secrets_of(moto, tmp_path), assumeRole=role)
        store.put("a", b"1")
        store.get("a")
        assert len(sts.requests) == 1
        first = {access_key(request) for request in sent.requests}
        sent.requests.clear()

        signer = store.requests.client._request_signer  # type: ignore[attr-defined]
        signer._credentials._time_fetcher = lambda: datetime.now(UTC) + timedelta(minutes=50)
        store.get("a")
        assert len(sts.requests) == 2
        second = {access_key(request) for request in sent.requests}

    assumed = sessions(moto, "orders")
    assert [first, second] == [{one["access_key_id"]} for one in assumed]
    assert {(one["role_arn"], one["external_id"]) for one in assumed} == {(ROLE, "ours:42")}


@pytest.mark.parametrize("code", ["NoSuchKey", "404", "AccessDenied"])
def test_no_answer_of_sts_is_taken_for_one_of_the_store(moto: Moto, topic_name: str, tmp_path: Path, code: str) -> None:
    """A state that looks missing would be a first start."""
    with answering(always(refusal_of_sts(code))) as sts:
        role = {"arn": ROLE, "endpoint": sts}
        store = opened(moto.endpoint, moto.create_bucket(topic_name), secrets_of(moto, tmp_path), assumeRole=role)
        for request in (store.get, store.head):
            with pytest.raises(FinalError, match=f"AssumeRole: 403 {code}") as refused:
                request("a")
            assert refused.value.reason == "AssumeRoleRefused"


def test_an_answer_of_sts_that_cannot_be_read_is_retried(moto: Moto, topic_name: str, tmp_path: Path) -> None:
    with answering(always(Answer(404, b"<html>not here<br>"))) as sts:
        role = {"arn": ROLE, "endpoint": sts}
        store = opened(moto.endpoint, moto.create_bucket(topic_name), secrets_of(moto, tmp_path), assumeRole=role)
        with pytest.raises(StoreUnavailable, match=r"AssumeRole: .*check spec\.destination\.assumeRole\.endpoint"):
            store.get("a")


def test_a_role_that_may_not_be_assumed_is_a_final_error_that_says_what_to_check(
    moto: Moto, unsigned: FaultProxy, topic_name: str, tmp_path: Path
) -> None:
    with FaultProxy("127.0.0.1", moto.port) as sts:
        refusal = sts.on(request_is("POST"), Status(403, "AccessDenied"))
        role = {"arn": ROLE, "endpoint": sts.endpoint}
        store = opened(unsigned.endpoint, moto.create_bucket(topic_name), secrets_of(moto, tmp_path), assumeRole=role)
        with pytest.raises(FinalError, match=r"AssumeRole: .*check spec\.destination\.assumeRole") as refused:
            store.get("a")
        assert refused.value.reason == "AssumeRoleRefused"

        sts.remove(refusal)
        sts.on(request_is("POST"), Status(503, "ServiceUnavailable"), times=1)
        with pytest.raises(StoreUnavailable):
            store.get("a")
        assert store.get("a") is None, "the role is assumed as soon as STS answers"


def test_every_request_says_that_the_requester_pays(
    moto: Moto, unsigned: FaultProxy, topic_name: str, tmp_path: Path
) -> None:
    sent = Sent(unsigned)
    secrets = secrets_of(moto, tmp_path)
    name = moto.create_bucket(topic_name)
    store = opened(unsigned.endpoint, name, secrets, requesterPays=True)
    store.check()
    assert sent.headers("x-amz-request-payer") == [""], "HeadBucket has no such header"
    sent.requests.clear()
    _every_request(store)
    assert set(sent.headers("x-amz-request-payer")) == {"requester"}

    sent.requests.clear()
    opened(unsigned.endpoint, name, secrets).get("a")
    assert sent.headers("x-amz-request-payer") == [""]


def _every_request(store: Bucket) -> None:
    store.put("state", b"1")
    store.put_data("whole", b"1", {}, "text/plain")
    write_upload(store, "parts", b"1")
    aborted = store.create_upload("aborted", {}, "text/plain")
    assert list(store.list_uploads(""))
    assert not list(store.list_parts("aborted", aborted))
    store.abort_upload("aborted", aborted)
    assert store.head("whole")
    assert store.get("whole")
    assert store.first_key("")
    assert list(store.list(""))
    store.delete("whole")


def test_data_objects_have_the_acl_and_state_objects_do_not(
    moto: Moto, unsigned: FaultProxy, topic_name: str, tmp_path: Path
) -> None:
    sent = Sent(unsigned)
    store = opened(
        unsigned.endpoint, moto.create_bucket(topic_name), secrets_of(moto, tmp_path), acl="BucketOwnerFullControl"
    )
    _every_request(store)
    with_acl = {(r.method, r.path.rpartition("/")[2]) for r in sent.requests if "x-amz-acl" in r.headers}
    assert with_acl == {("PUT", "whole"), ("POST", "parts"), ("POST", "aborted")}
    assert set(sent.headers("x-amz-acl")) == {"", "bucket-owner-full-control"}


def test_staged_dead_letters_beside_the_state_have_no_acl_storage_class_or_tags(
    moto: Moto, unsigned: FaultProxy, topic_name: str, tmp_path: Path
) -> None:
    """With `acl: PublicRead` everybody could read bad records."""
    sent = Sent(unsigned)
    options = {"acl": "PublicRead", "storageClass": "GLACIER", "tags": {"team": "lake"}, "statePrefix": "own/state"}
    store = opened(unsigned.endpoint, moto.create_bucket(topic_name), secrets_of(moto, tmp_path), **options)
    for folder in ("own/state/default/sink/letters", "own/statement"):
        store.put_data(f"{folder}/1", b"1", {}, "text/plain")
        store.create_upload(f"{folder}/2", {}, "text/plain")

    options_of = {
        (request.method, request.path.partition("/own/")[2]): {
            name for name in ("x-amz-acl", "x-amz-storage-class", "x-amz-tagging") if name in request.headers
        }
        for request in sent.requests
    }
    everything = {"x-amz-acl", "x-amz-storage-class", "x-amz-tagging"}
    assert options_of == {
        ("PUT", "state/default/sink/letters/1"): set(),
        ("POST", "state/default/sink/letters/2"): set(),
        ("PUT", "statement/1"): everything,
        ("POST", "statement/2"): everything,
    }


def test_a_bucket_without_acls_is_no_fault_of_the_records(
    moto: Moto, unsigned: FaultProxy, topic_name: str, tmp_path: Path
) -> None:
    unsigned.on(request_is("POST"), Status(400, "AccessControlListNotSupported"))
    store = opened(unsigned.endpoint, moto.create_bucket(topic_name), secrets_of(moto, tmp_path), acl="PublicRead")
    with pytest.raises(FinalError, match=r"leave spec\.destination\.acl out") as refused:
        store.create_upload("a", {}, "text/plain")
    assert refused.value.reason == "AclNotSupported"


class KeyedStore:
    """As S3 does, a proxy refuses requests without the key that an object was begun with, or with one too much."""

    def __init__(self, proxy: FaultProxy) -> None:
        self.keys: dict[str, str] = {}
        self.refused: list[Request] = []
        self._uploads: dict[str, str] = {}
        proxy.on(self._wrong, Status(400, "InvalidRequest"))
        proxy.on(self._denied, Status(403, "AccessDenied"))

    def _given(self, request: Request) -> str:
        given = request.headers.get("x-amz-server-side-encryption-customer-key", "")
        if given:
            assert len(base64.b64decode(given)) == 32
            assert request.headers["x-amz-server-side-encryption-customer-algorithm"] == "AES256"
            assert request.headers["x-amz-server-side-encryption-customer-key-md5"]
        return given

    def _wrong(self, request: Request) -> bool:
        given = self._given(request)
        begins = request.query.startswith("uploads") and request.method == "POST"
        whole = request.method == "PUT" and not request.query
        if begins or whole:
            self.keys[request.path] = given
            return False
        if request.method not in {"GET", "HEAD", "PUT"} or request.path.count("/") < 2 or "uploads" in request.query:
            return False
        wrong = bool(given) != bool(self.keys.get(request.path))
        if wrong and request.path in self.keys:
            self.refused.append(request)
            return True
        return False

    def _denied(self, request: Request) -> bool:
        given, known = self._given(request), self.keys.get(request.path, "")
        return request.method in {"GET", "HEAD"} and bool(given and known) and given != known


@pytest.fixture
def keyed(unsigned: FaultProxy) -> KeyedStore:
    return KeyedStore(unsigned)


def with_key(folder: Path, moto: Moto, endpoint: str, name: str, key: bytes = KEY) -> Bucket:
    secrets = secrets_of(moto, folder, mine={"SSE_CUSTOMER_KEY": base64.b64encode(key) + b"\n"})
    return opened(endpoint, name, secrets, encryption={"type": "CustomerKey", "secretRef": {"name": "mine"}})


def test_data_is_encrypted_with_the_users_key_and_the_state_is_not(
    moto: Moto, unsigned: FaultProxy, keyed: KeyedStore, topic_name: str, tmp_path: Path
) -> None:
    store = with_key(tmp_path, moto, unsigned.endpoint, moto.create_bucket(topic_name))
    write_upload(store, "raw/t/0/0", b"x" * 5 * 2**20, b"y")
    store.put_data("raw/t/0/1", b"z", {}, "text/plain")
    store.put(".s3sink/a/state.json", b"{}")
    store.put_data(".s3sink/a/letters/1", b"letter", {}, "text/plain")

    assert (store.get("raw/t/0/0") or (b"",))[0][-2:] == b"xy"
    assert store.head("raw/t/0/1") is not None
    assert (store.get(".s3sink/a/state.json") or (b"",))[0] == b"{}"
    assert keyed.refused == [], "each of them was sent rightly the first time"
    assert (store.get(".s3sink/a/letters/1") or (b"",))[0] == b"letter"
    assert store.get("raw/t/0/7") is None
    encrypted = {path.partition("/")[2].partition("/")[2] for path, key in keyed.keys.items() if key}
    assert encrypted == {"raw/t/0/0", "raw/t/0/1", ".s3sink/a/letters/1"}
    assert base64.b64encode(KEY).decode() not in repr(store)
    assert repr(KEY) not in repr(store)


def test_a_store_is_probed_with_the_users_key(
    moto: Moto, unsigned: FaultProxy, keyed: KeyedStore, topic_name: str, tmp_path: Path
) -> None:
    store = with_key(tmp_path, moto, unsigned.endpoint, moto.create_bucket(topic_name))
    assert (
        probe(store, ".s3sink/default/sink").fault
        == probe(opened(moto.endpoint, topic_name, secrets_of(moto, tmp_path)), ".s3sink/default/sink").fault
    )


def test_objects_from_before_the_key_can_be_read_and_those_of_another_key_cannot(
    moto: Moto, unsigned: FaultProxy, keyed: KeyedStore, topic_name: str, tmp_path: Path
) -> None:
    name = moto.create_bucket(topic_name)
    opened(unsigned.endpoint, name, secrets_of(moto, tmp_path)).put_data("raw/old", b"old", {}, "text/plain")
    with_key(tmp_path / "1", moto, unsigned.endpoint, name).put_data("raw/mine", b"mine", {}, "text/plain")

    store = with_key(tmp_path / "2", moto, unsigned.endpoint, name, os.urandom(32))
    assert (store.get("raw/old") or (b"",))[0] == b"old"
    with pytest.raises(S3SinkError, match="AccessDenied"):
        store.get("raw/mine")
    store.put(".s3sink/state.json", b"{}")
    assert store.get(".s3sink/state.json")


@pytest.mark.parametrize(
    "key", [b"short", base64.b64encode(b"31 bytes" * 4)[:-4], b"*" * 44, base64.b64encode(bytes(33))]
)
def test_a_key_of_another_length_is_refused_and_not_shown(moto: Moto, tmp_path: Path, key: bytes) -> None:
    secrets = secrets_of(moto, tmp_path, mine={"SSE_CUSTOMER_KEY": key})
    with pytest.raises(FinalError, match="must be 32 bytes in base64") as refused:
        opened(moto.endpoint, "lake", secrets, encryption={"type": "CustomerKey", "secretRef": {"name": "mine"}})
    assert key.decode() not in str(refused.value)
    assert refused.value.reason == "InvalidCustomerKey"
