"""The test S3 servers support the conditional writes that the commit protocol needs."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ClientError

from tools.parts.s3 import Moto, S3Server


@pytest.fixture(scope="module", params=["best", "moto"])
def server(request: pytest.FixtureRequest) -> Iterator[S3Server]:
    if request.param == "best":
        yield request.getfixturevalue("s3")
    else:
        with Moto() as moto:
            yield moto


def code_of(error: pytest.ExceptionInfo[ClientError]) -> int:
    return error.value.response["ResponseMetadata"]["HTTPStatusCode"]


def test_one_of_sixteen_concurrent_creates_wins(server: S3Server) -> None:
    bucket = server.create_bucket("concurrent-creates")
    client = server.client()

    def create(number: int) -> bool:
        try:
            client.put_object(Bucket=bucket, Key="one", Body=b"%d" % number, IfNoneMatch="*")
        except ClientError:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        won = list(pool.map(create, range(16)))
    assert won.count(True) == 1
    assert client.get_object(Bucket=bucket, Key="one")["Body"].read() == b"%d" % won.index(True)


def test_a_swap_with_an_old_etag_is_refused(server: S3Server) -> None:
    bucket = server.create_bucket("swaps")
    client = server.client()
    first = client.put_object(Bucket=bucket, Key="state", Body=b"1")["ETag"]
    client.put_object(Bucket=bucket, Key="state", Body=b"2", IfMatch=first)
    with pytest.raises(ClientError) as refused:
        client.put_object(Bucket=bucket, Key="state", Body=b"3", IfMatch=first)
    assert code_of(refused) == 412
    assert client.get_object(Bucket=bucket, Key="state")["Body"].read() == b"2"


def test_an_upload_is_invisible_until_completed_and_never_overwrites(server: S3Server) -> None:
    bucket = server.create_bucket("uploads")
    client = server.client()
    uploads = []
    for body in (b"first", b"second"):
        upload = client.create_multipart_upload(Bucket=bucket, Key="o", Metadata={"by": "us"})["UploadId"]
        etag = client.upload_part(Bucket=bucket, Key="o", UploadId=upload, PartNumber=1, Body=body)["ETag"]
        uploads.append((upload, {"Parts": [{"PartNumber": 1, "ETag": etag}]}))
    assert "Contents" not in client.list_objects_v2(Bucket=bucket)
    for expected, (upload, parts) in zip((200, 412), uploads, strict=True):
        try:
            answer = client.complete_multipart_upload(
                Bucket=bucket, Key="o", UploadId=upload, MultipartUpload=parts, IfNoneMatch="*"
            )
        except ClientError as error:
            answer = error.response
        assert answer["ResponseMetadata"]["HTTPStatusCode"] == expected
    whole = client.get_object(Bucket=bucket, Key="o")
    assert (whole["Body"].read(), whole["Metadata"]) == (b"first", {"by": "us"})


def test_wrong_keys_are_refused(s3: S3Server, bucket: str) -> None:
    if isinstance(s3, Moto):
        pytest.skip("Moto checks no key")
    with pytest.raises(ClientError) as refused:
        s3.client(secret_key="wrong").put_object(Bucket=bucket, Key="k", Body=b"")
    assert code_of(refused) == 403
