"""The fault proxy changes nothing without faults, and each fault does what its docstring says."""

from __future__ import annotations

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ConnectionClosedError

from tools.parts.proxy import (
    Call,
    Delay,
    DropResponse,
    FaultProxy,
    Late,
    Refuse,
    Request,
    Reset,
    Slow,
    Status,
    StripHeaders,
    Truncate,
    request_is,
)
from tools.parts.s3 import Moto, S3Server


@pytest.fixture
def client(s3: S3Server, proxy: FaultProxy) -> Any:
    """A client through the proxy that never retries, so that one call is one request."""
    return boto3.client(
        "s3",
        endpoint_url=proxy.endpoint,
        aws_access_key_id=s3.access_key,
        aws_secret_access_key=s3.secret_key,
        region_name=s3.region,
        config=Config(
            s3={"addressing_style": "path"},
            retries={"total_max_attempts": 1},
            proxies={},
            signature_version="s3v4",
        ),
    )


def test_bodies_pass_unchanged_both_ways(bucket: str, client: Any, proxy: FaultProxy) -> None:
    large = bytes(range(256)) * 50_000
    client.put_object(Bucket=bucket, Key="a/b c+é/large", Body=large, Metadata={"m": "1"})
    answer = client.get_object(Bucket=bucket, Key="a/b c+é/large")
    assert answer["Body"].read() == large
    assert client.head_object(Bucket=bucket, Key="a/b c+é/large")["ContentLength"] == len(large)
    assert [o["Key"] for o in client.list_objects_v2(Bucket=bucket)["Contents"]] == ["a/b c+é/large"]
    client.put_object(Bucket=bucket, Key="empty", Body=b"")
    assert client.get_object(Bucket=bucket, Key="empty")["Body"].read() == b""
    client.delete_object(Bucket=bucket, Key="empty")
    with pytest.raises(ClientError, match="304"):
        client.get_object(Bucket=bucket, Key="a/b c+é/large", IfNoneMatch=answer["ETag"])
    assert [(r.method, r.status) for r in proxy.requests if r.path.endswith("/empty")] == [
        ("PUT", 200),
        ("GET", 200),
        ("DELETE", 204),
    ]


def test_many_clients_at_once_get_their_own_answers(bucket: str, client: Any, proxy: FaultProxy) -> None:
    def round_trip(number: int) -> bool:
        body = b"%d," % number * 1000
        client.put_object(Bucket=bucket, Key=f"{number}", Body=body)
        return client.get_object(Bucket=bucket, Key=f"{number}")["Body"].read() == body

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(round_trip, range(40)))
    assert len(proxy.requests) == 80


def test_a_dropped_response_took_effect(s3: S3Server, bucket: str, client: Any, proxy: FaultProxy) -> None:
    rule = proxy.on(request_is("PUT", "/state$"), DropResponse(), times=1)
    with pytest.raises(ConnectionClosedError):
        client.put_object(Bucket=bucket, Key="state", Body=b"1")
    assert rule.hits == 1
    assert s3.client().get_object(Bucket=bucket, Key="state")["Body"].read() == b"1"
    client.put_object(Bucket=bucket, Key="state", Body=b"2")
    assert rule.hits == 1
    assert [r.status for r in proxy.requests] == [None, 200]


def test_a_refused_request_never_arrives(s3: S3Server, bucket: str, client: Any, proxy: FaultProxy) -> None:
    rule = proxy.on(request_is("PUT"), Refuse())
    with pytest.raises(ConnectionClosedError):
        client.put_object(Bucket=bucket, Key="k", Body=b"1" * 100_000)
    assert rule.hits == 1
    assert "Contents" not in s3.client().list_objects_v2(Bucket=bucket)
    proxy.remove(rule)
    client.put_object(Bucket=bucket, Key="k", Body=b"1")


def test_a_request_with_a_made_up_status_never_arrives(
    s3: S3Server, bucket: str, client: Any, proxy: FaultProxy
) -> None:
    proxy.on(request_is("PUT", query="partNumber=1"), Status(503, "SlowDown"), times=1)
    upload = client.create_multipart_upload(Bucket=bucket, Key="k")["UploadId"]
    part = {"Bucket": bucket, "Key": "k", "UploadId": upload, "PartNumber": 1, "Body": b"x" * 100_000}
    with pytest.raises(ClientError) as refused:
        client.upload_part(**part)
    assert refused.value.response["Error"]["Code"] == "SlowDown"
    assert "Parts" not in s3.client().list_parts(Bucket=bucket, Key="k", UploadId=upload)
    client.upload_part(**part)
    proxy.on(request_is("HEAD"), Status(403, "AccessDenied"))
    with pytest.raises(ClientError, match="403"):
        client.head_object(Bucket=bucket, Key="k")


def test_a_delay_holds_only_matching_requests(bucket: str, client: Any, proxy: FaultProxy) -> None:
    proxy.on(request_is("PUT"), Delay(0.3), times=1)
    proxy.on(request_is("GET"), Delay(0.3, after=True), times=1)
    took = []
    for call in (client.put_object, client.get_object, client.head_object):
        start = time.monotonic()
        call(Bucket=bucket, Key="k")
        took.append(time.monotonic() - start)
    assert took[0] >= 0.3
    assert took[1] >= 0.3
    assert took[2] < 0.3


def test_calls_come_before_the_server_and_before_the_answer(
    s3: S3Server, bucket: str, client: Any, proxy: FaultProxy
) -> None:
    there: list[bool] = []

    def look(request: Request) -> None:
        there.append("Contents" in s3.client().list_objects_v2(Bucket=bucket))

    proxy.on(request_is("PUT", "/k$"), Call(before=look, after=look), times=1)
    client.put_object(Bucket=bucket, Key="k", Body=b"1" * 300_000)
    assert there == [False, True]
    assert len(s3.client().get_object(Bucket=bucket, Key="k")["Body"].read()) == 300_000


def test_after_a_call_a_request_can_still_be_refused_or_its_answer_lost(
    s3: S3Server, bucket: str, client: Any, proxy: FaultProxy
) -> None:
    calls: list[str] = []
    proxy.on(request_is("PUT", "/refused$"), Call(before=lambda r: calls.append(r.path), then=Refuse()))
    proxy.on(request_is("PUT", "/lost$"), Call(after=lambda r: calls.append(r.path), then=DropResponse()))
    for key in ("refused", "lost"):
        with pytest.raises(ConnectionClosedError):
            client.put_object(Bucket=bucket, Key=key, Body=b"1")
    assert calls == [f"/{bucket}/refused", f"/{bucket}/lost"]
    assert [o["Key"] for o in s3.client().list_objects_v2(Bucket=bucket)["Contents"]] == ["lost"]


def test_a_held_request_arrives_after_its_client_is_gone(
    s3: S3Server, bucket: str, client: Any, proxy: FaultProxy
) -> None:
    url = client.generate_presigned_url("put_object", {"Bucket": bucket, "Key": "late"})
    held, go = threading.Event(), threading.Event()

    def hold(request: Request) -> None:
        held.set()
        go.wait(10)

    proxy.on(request_is("PUT", "/late$"), Call(before=hold))
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as raw:
        target = url.removeprefix(proxy.endpoint)
        raw.sendall(f"PUT {target} HTTP/1.1\r\nHost: 127.0.0.1:{proxy.port}\r\nContent-Length: 4\r\n\r\nlate".encode())
        assert held.wait(10)
    assert "Contents" not in s3.client().list_objects_v2(Bucket=bucket)
    go.set()
    while not proxy.requests:
        time.sleep(0.01)
    assert s3.client().get_object(Bucket=bucket, Key="late")["Body"].read() == b"late"


def test_a_late_request_arrives_after_its_client_gave_up(
    s3: S3Server, bucket: str, client: Any, proxy: FaultProxy
) -> None:
    proxy.on(request_is("PUT"), Late(0.5), times=1)
    with pytest.raises(ConnectionClosedError):
        client.put_object(Bucket=bucket, Key="k", Body=b"late" * 10_000)
    assert "Contents" not in s3.client().list_objects_v2(Bucket=bucket)
    time.sleep(1)
    assert s3.client().get_object(Bucket=bucket, Key="k")["Body"].read() == b"late" * 10_000
    assert [r.status for r in proxy.requests] == [None]


def test_a_status_after_the_effect_hides_the_effect(s3: S3Server, bucket: str, client: Any, proxy: FaultProxy) -> None:
    proxy.on(request_is("PUT"), Status(503, "SlowDown", after=True), times=1)
    with pytest.raises(ClientError) as refused:
        client.put_object(Bucket=bucket, Key="k", Body=b"1" * 100_000)
    assert refused.value.response["Error"]["Code"] == "SlowDown"
    assert s3.client().head_object(Bucket=bucket, Key="k")["ContentLength"] == 100_000
    assert [r.status for r in proxy.requests] == [503]
    client.put_object(Bucket=bucket, Key="k", Body=b"2")


@pytest.mark.parametrize("after", [False, True])
def test_a_reset_connection_is_reset_and_not_closed(
    s3: S3Server, bucket: str, client: Any, proxy: FaultProxy, after: bool
) -> None:
    url = client.generate_presigned_url("put_object", {"Bucket": bucket, "Key": "k"})
    proxy.on(request_is("PUT"), Reset(after=after), times=1)
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as raw:
        target = url.removeprefix(proxy.endpoint)
        raw.sendall(f"PUT {target} HTTP/1.1\r\nHost: 127.0.0.1:{proxy.port}\r\nContent-Length: 1\r\n\r\n1".encode())
        with pytest.raises(ConnectionResetError):
            raw.recv(100)
    assert ("Contents" in s3.client().list_objects_v2(Bucket=bucket)) == after
    assert [r.status for r in proxy.requests] == [None]
    client.put_object(Bucket=bucket, Key="k", Body=b"1")


def test_half_of_a_truncated_answer_arrives(s3: S3Server, bucket: str, client: Any, proxy: FaultProxy) -> None:
    client.put_object(Bucket=bucket, Key="k", Body=b"1" * 100_000)
    proxy.on(request_is("GET"), Truncate(), times=1)
    body = client.get_object(Bucket=bucket, Key="k")["Body"]
    with pytest.raises(BotoCoreError):
        body.read()
    proxy.on(request_is("POST", query=r"\buploads\b"), Truncate(), times=1)
    # boto3 reports incomplete XML as its own status 500.
    with pytest.raises((ClientError, BotoCoreError)):
        client.create_multipart_upload(Bucket=bucket, Key="k2")
    (upload,) = s3.client().list_multipart_uploads(Bucket=bucket)["Uploads"]
    assert upload["Key"] == "k2"
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"1" * 100_000


def test_slow_bodies_arrive_whole(bucket: str, client: Any, proxy: FaultProxy) -> None:
    rule = proxy.on(request_is(), Slow(0.5))
    body = bytes(range(256)) * 1_001
    took = []
    for call in (
        lambda: client.put_object(Bucket=bucket, Key="k", Body=body),
        lambda: client.get_object(Bucket=bucket, Key="k")["Body"].read() == body,
    ):
        start = time.monotonic()
        assert call()
        took.append(time.monotonic() - start)
    assert rule.hits == 2
    assert min(took) >= 0.5
    assert max(took) < 5


def test_skipped_requests_pass_before_the_fault(bucket: str, client: Any, proxy: FaultProxy) -> None:
    rule = proxy.on(request_is("PUT"), Status(503, "SlowDown"), times=1, skip=2)
    for key in ("a", "b"):
        client.put_object(Bucket=bucket, Key=key, Body=b"1")
    assert rule.hits == 0
    with pytest.raises(ClientError, match="SlowDown"):
        client.put_object(Bucket=bucket, Key="c", Body=b"1")
    client.put_object(Bucket=bucket, Key="d", Body=b"1")
    assert rule.hits == 1


def test_without_its_condition_a_second_create_overwrites() -> None:
    with Moto() as moto, FaultProxy("127.0.0.1", moto.port) as proxy:
        moto.create_bucket("plain")
        rule = proxy.on(request_is("PUT", header="If-None-Match"), StripHeaders({"If-None-Match"}))
        client = moto.client(endpoint=proxy.endpoint)
        for body in (b"1", b"2"):
            client.put_object(Bucket="plain", Key="k", Body=body, IfNoneMatch="*")
        assert rule.hits == 2
        assert client.get_object(Bucket="plain", Key="k")["Body"].read() == b"2"


def test_chunked_requests_and_expectations_are_passed_on() -> None:
    """Written by hand, because no client of ours sends both."""
    with Moto() as moto, FaultProxy("127.0.0.1", moto.port) as proxy:
        moto.create_bucket("chunked")
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as raw:
            raw.sendall(
                b"PUT /chunked/k HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
                b"Expect: 100-continue\r\nConnection: close\r\n\r\n"
            )
            assert raw.recv(100).startswith(b"HTTP/1.1 100")
            raw.sendall(b"5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n")
            answer = raw.recv(1000)
        assert answer.startswith(b"HTTP/1.1 200"), answer
        assert moto.client().get_object(Bucket="chunked", Key="k")["Body"].read() == b"hello world"


def test_a_server_that_is_gone_is_a_lost_connection(s3: S3Server, bucket: str) -> None:
    with FaultProxy("127.0.0.1", 9) as proxy, pytest.raises(ConnectionClosedError):
        boto3.client(
            "s3",
            endpoint_url=proxy.endpoint,
            aws_access_key_id="a",
            aws_secret_access_key="b",
            region_name="us-east-1",
            config=Config(retries={"total_max_attempts": 1}, proxies={}),
        ).list_buckets()
