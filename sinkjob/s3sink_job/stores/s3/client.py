"""One boto3 client for each process and set of credentials."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import boto3
from botocore.config import Config

from s3sink_api.spec import Aes256, Destination, Kms
from s3sink_job.base.aws import AwsKeys, aws_keys, ca_file
from s3sink_job.base.secrets import Secrets
from s3sink_job.stores.s3.bucket import S3Bucket

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

CONNECT_TIMEOUT = 10
READ_TIMEOUT = 60


def s3_bucket(destination: Destination, secrets: Secrets) -> S3Bucket:
    encryption: dict[str, Any] = {}
    match destination.encryption:
        case Aes256():
            encryption["ServerSideEncryption"] = "AES256"
        case Kms(key_id=key_id):
            encryption |= {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": key_id}
    data: dict[str, Any] = {}
    if destination.storage_class != "STANDARD":
        data["StorageClass"] = destination.storage_class
    if destination.tags:
        data["Tagging"] = urlencode(destination.tags)
    return S3Bucket(connect(destination, secrets), destination.bucket, encryption, data)


def connect(destination: Destination, secrets: Secrets) -> S3Client:
    """The client for a destination. It does not retry: `base/retry.py` does, within the limits of the spec."""
    return _client(
        *(destination.endpoint or "", destination.region or "", destination.use_path_style),
        *(destination.max_connections, aws_keys(destination.credentials, secrets)),
        *(ca_file(destination.ca_from, secrets), os.getpid()),
    )


@lru_cache(maxsize=4)
def _client(
    endpoint: str,
    region: str,
    path_style: bool,
    connections: int,
    keys: AwsKeys,
    ca: str | None,
    pid: int,
) -> S3Client:
    """Cached by credentials, and by process: a forked worker must not share the sockets of its parent."""
    options = keys.client_options
    if endpoint:
        options["endpoint_url"] = endpoint
    if ca is not None:
        options["verify"] = ca
    s3: Any = {"addressing_style": "path" if path_style else "virtual"}
    if not endpoint.startswith("http://"):
        # TLS protects bodies already. A hash of each would take a tenth of a task's time.
        s3["payload_signing_enabled"] = False
    config = Config(
        connect_timeout=CONNECT_TIMEOUT,
        read_timeout=READ_TIMEOUT,
        max_pool_connections=connections,
        retries={"total_max_attempts": 1, "mode": "standard"},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        # botocore would build its own one twice for each request.
        user_agent=f"s3sink Boto3/{boto3.__version__}",
        s3=s3,
    )
    session = boto3.session.Session(region_name=region or None)
    # SigV4 needs a region. S3-compatible stores accept this one.
    return session.client("s3", region_name=session.region_name or "us-east-1", config=config, **options)
