"""One boto3 client for each process and set of credentials."""

from __future__ import annotations

import base64
import binascii
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from s3sink_api.spec import Aes256, CustomerKey, Destination, Kms
from s3sink_job.base.aws_access import DEFAULT_REGION
from s3sink_job.base.aws_client import aws_client
from s3sink_job.base.errors import FinalError
from s3sink_job.base.secrets import Secrets
from s3sink_job.stores.s3.bucket import S3Bucket
from s3sink_job.stores.s3.connection import Connection, connection_of

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

KEY_BYTES = 32
CUSTOMER_KEY = "SSE_CUSTOMER_KEY"


def s3_bucket(destination: Destination, secrets: Secrets) -> S3Bucket:
    encryption: dict[str, Any] = {}
    customer_key: dict[str, Any] = {}
    match destination.encryption:
        case Aes256():
            encryption["ServerSideEncryption"] = "AES256"
        case Kms(key_id=key_id):
            encryption |= {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": key_id}
        case CustomerKey(secret_ref=secret):
            customer_key = _customer_key(secrets, secret.name)
    return S3Bucket(
        client=connect(destination, secrets),
        name=destination.bucket,
        encryption=encryption,
        data_options=_data_options(destination),
        customer_key=customer_key,
        state_prefix=destination.state_prefix,
    )


def _data_options(destination: Destination) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if destination.storage_class != "STANDARD":
        data["StorageClass"] = destination.storage_class
    if destination.tags:
        data["Tagging"] = urlencode(destination.tags)
    if destination.acl:
        # S3 writes them like bucket-owner-read.
        data["ACL"] = re.sub("(?<=[a-z])(?=[A-Z])", "-", destination.acl).lower()
    return data


def _customer_key(secrets: Secrets, name: str) -> dict[str, Any]:
    """boto3 encodes the key, and adds its MD5."""
    try:
        key = base64.b64decode(secrets.key(name, CUSTOMER_KEY).strip(), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise FinalError(
            f"Secret {name!r}, key {CUSTOMER_KEY!r}: must be {KEY_BYTES} bytes in base64, such as the output of"
            " `openssl rand -base64 32`",
            reason="InvalidCustomerKey",
        )
    return {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": key}


def connect(destination: Destination, secrets: Secrets) -> S3Client:
    """The client for a destination."""
    return _client(connection_of(destination, secrets))


@lru_cache(maxsize=4)
def _client(connection: Connection) -> S3Client:
    access = connection.access
    s3: Any = {"addressing_style": "path" if connection.path_style else "virtual"}
    if not access.endpoint.startswith("http://"):
        # TLS protects bodies already. A hash of each would take a tenth of a task's time.
        s3["payload_signing_enabled"] = False
    client: S3Client = aws_client(
        "s3",
        access,
        DEFAULT_REGION,
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3=s3,
    )
    if connection.requester_pays:
        client.meta.events.register("before-parameter-build.s3", _requester_pays)
    return client


def _requester_pays(params: dict[str, Any], model: Any, **_: Any) -> None:
    """For every request that has such a parameter: all but HeadBucket."""
    if "RequestPayer" in model.input_shape.members:
        params["RequestPayer"] = "requester"
