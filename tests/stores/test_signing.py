"""Headers of the request that sends a part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest

from s3sink_api.spec import parse
from s3sink_job.base.secrets import write_secrets
from s3sink_job.stores.s3.client import connect


class Seen(Exception):
    """The request is ready and is not sent."""


def header(name: str, scheme: str, folder: Path) -> str:
    """Of the request that sends a part."""
    sink = parse(
        {
            "apiVersion": "s3sink.dev/v1alpha1",
            "kind": "S3Sink",
            "metadata": {"name": "sink"},
            "spec": {
                "source": {"bootstrapServers": "kafka:9092", "topics": ["t"]},
                "destination": {
                    "bucket": "lake",
                    "endpoint": f"{scheme}://store.invalid",
                    "credentials": {"secretRef": {"name": "s3"}},
                },
            },
        }
    )
    keys = {"AWS_ACCESS_KEY_ID": b"a", "AWS_SECRET_ACCESS_KEY": b"b"}
    client = connect(sink.spec.destination, write_secrets(folder, {"s3": keys}))

    def look(request: AWSPreparedRequest, **_: Any) -> None:
        value = request.headers[name]
        raise Seen(value.decode() if isinstance(value, bytes) else value)

    client.meta.events.register("before-send.s3.UploadPart", look)
    with pytest.raises(Seen) as seen:
        client.upload_part(Bucket="lake", Key="k", UploadId="u", PartNumber=1, Body=b"body")
    client.meta.events.unregister("before-send.s3.UploadPart", look)
    return str(seen.value)


@pytest.mark.parametrize(("scheme", "signed"), [("https", False), ("http", True)])
def test_bodies_are_hashed_only_where_nothing_else_protects_them(scheme: str, signed: bool, tmp_path: Path) -> None:
    assert (header("X-Amz-Content-SHA256", scheme, tmp_path) == "UNSIGNED-PAYLOAD") is not signed


def test_the_access_log_of_a_bucket_names_who_writes(tmp_path: Path) -> None:
    assert header("User-Agent", "https", tmp_path).startswith("s3sink Boto3/")
