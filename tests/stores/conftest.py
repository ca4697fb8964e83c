"""A bucket of a real server with the proxy before it, as the sink uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from s3sink_api.spec import parse
from s3sink_job.base.retry import RetryPolicy
from s3sink_job.base.secrets import write_secrets
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.factory import open_bucket
from tools.parts.proxy import FaultProxy
from tools.parts.s3 import Moto, S3Server

SMALL_PAGES = {"ListObjectsV2": "MaxKeys", "ListMultipartUploads": "MaxUploads", "ListParts": "MaxParts"}


def bucket_at(endpoint: str, server: S3Server, name: str, folder: Path) -> Bucket:
    """Lists come on pages of two."""
    destination = {"bucket": name, "endpoint": endpoint, "credentials": {"secretRef": {"name": "s3"}}}
    source = {"bootstrapServers": "kafka:9092", "topics": ["t"]}
    sink = parse(
        {
            "apiVersion": "s3sink.dev/v1alpha1",
            "kind": "S3Sink",
            "metadata": {"name": "sink"},
            "spec": {"source": source, "destination": destination},
        }
    )
    keys = {"AWS_ACCESS_KEY_ID": server.access_key.encode(), "AWS_SECRET_ACCESS_KEY": server.secret_key.encode()}
    found = open_bucket(sink.spec.destination, write_secrets(folder, {"s3": keys}), RetryPolicy(2, 0.01))
    for operation, most in SMALL_PAGES.items():
        found.requests.client.meta.events.register(f"provide-client-params.s3.{operation}", _at_most(most, 2))
    return found


def _at_most(argument: str, count: int) -> Callable[..., dict[str, Any]]:
    return lambda params, **_: {**params, argument: count}


@pytest.fixture
def through(s3: S3Server, bucket: str, proxy: FaultProxy, tmp_path: Path) -> Bucket:
    return bucket_at(proxy.endpoint, s3, bucket, tmp_path)


@pytest.fixture(scope="session")
def moto() -> Iterator[Moto]:
    """A server that does not check signatures, so that the proxy can remove headers."""
    with Moto() as server:
        yield server


@pytest.fixture
def unsigned(moto: Moto) -> Iterator[FaultProxy]:
    with FaultProxy("127.0.0.1", moto.port) as between:
        yield between


@pytest.fixture
def loose(moto: Moto, topic_name: str, unsigned: FaultProxy, tmp_path: Path) -> Bucket:
    return bucket_at(unsigned.endpoint, moto, moto.create_bucket(topic_name), tmp_path)
