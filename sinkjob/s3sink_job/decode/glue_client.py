"""Requests to AWS Glue Schema Registry. An id that it does not know is None; all else that goes wrong is an error.

Which error means what is the same as for other registries: see docs/schemas.md, "When the registry fails".
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    SSLError,
)

from s3sink_api.spec import SchemaRegistry
from s3sink_job.base.aws import AwsKeys, aws_keys, ca_file
from s3sink_job.base.errors import FinalError, S3SinkError
from s3sink_job.base.retry import RetryPolicy
from s3sink_job.base.secrets import Secrets
from s3sink_job.decode.registry_http import CONNECT_TIMEOUT, READ_TIMEOUT, RegistryUnavailable
from s3sink_job.decode.writer_schemas import RegisteredSchema, SchemaId, WriterSchema

UNKNOWN = "EntityNotFoundException"
NOBODY = SchemaId("Glue schema version", "00000000-0000-0000-0000-000000000000")
REGISTRY = "default-registry"
"""Where AWS' serializers register schemas, unless they have another setting."""
_DENIED = (
    *("AccessDenied", "UnrecognizedClient", "InvalidSignature", "SignatureDoesNotMatch", "InvalidClientTokenId"),
    *("ExpiredToken", "MissingAuthenticationToken", "IncompleteSignature", "NotAuthorized", "OptInRequired"),
)
"""Beginnings of error codes."""
_TRANSIENT = (
    *("Throttl", "TooManyRequests", "RequestLimit", "RequestTimeout", "OperationTimeout"),
    *("InternalService", "InternalFailure", "InternalError", "ServiceUnavailable"),
)
_DENIED_STATUS = {401, 403}
_TRANSIENT_STATUS = {408, 425, 429}
_HINT = "are schemaRegistry.region and endpoint right?"


class GlueClient:
    def __init__(self, registry: SchemaRegistry, secrets: Secrets, retry: RetryPolicy) -> None:
        """Reads the secrets: a client that is kept does not follow their changes."""
        keys, ca = aws_keys(registry.credentials_from, secrets), ca_file(registry.ca_from, secrets)
        self._retry = retry
        try:
            self._client = _client(registry.region or "", registry.endpoint or "", keys, ca, os.getpid())
        except NoRegionError:
            raise FinalError("AWS Glue: no region found: set schemaRegistry.region", reason="RegistryRefused") from None
        self.url = f"AWS Glue at {self._client.meta.endpoint_url}"

    def schema(self, schema: SchemaId) -> WriterSchema | None:
        """None if Glue does not have it."""
        if schema.kind != "Glue schema version":
            return None
        found = self._found(str(schema), SchemaVersionId=schema.value)
        return None if found is None else found.schema

    def usual_name(self, topic: str, part: str) -> str:
        """AWS' serializers name schemas after the topic, those of keys as well. It is taken for that of values."""
        return f"schema {topic} in {REGISTRY}" if topic and part == "value" else ""

    def latest(self, topic: str, part: str) -> RegisteredSchema | None:
        """Tests whether Glue answers, in any case."""
        name = self.usual_name(topic, part)
        if not name:
            self.schema(NOBODY)
            return None
        by_name = {"SchemaName": topic, "RegistryName": REGISTRY}
        return self._found(name, SchemaId=by_name, SchemaVersionNumber={"LatestVersion": True})

    def newest(self, topic: str, part: str, most: int) -> Iterator[RegisteredSchema]:
        return iter(())

    def _found(self, what: str, **request: Any) -> RegisteredSchema | None:
        answer = self._retry.run(lambda: self._answer(what, request))
        if answer is None:
            return None
        try:
            schema = WriterSchema(str(answer["DataFormat"]), str(answer["SchemaDefinition"]))
        except KeyError as missing:
            message = f"{self.url}: the answer for {what} has no {missing}: {_HINT}"
            raise FinalError(message, reason="RegistryInvalid") from None
        number = str(answer.get("SchemaVersionId", ""))
        name = f"{what}, version {answer.get('VersionNumber')}, id {number}"
        return RegisteredSchema(name, (SchemaId("Glue schema version", number),), schema)

    def _answer(self, of: str, request: Mapping[str, Any]) -> Any:
        what = f"schema registry: {self.url}: GetSchemaVersion of {of}"
        try:
            return self._client.get_schema_version(**request)
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") == UNKNOWN:
                return None
            raise _refused(error, what) from None
        except (BotoCoreError, OSError) as error:
            raise _no_answer(error, what) from None
        except Exception as error:
            # botocore's parser raises anything for an answer that is not AWS'.
            message = f"{what}: the answer cannot be read: {type(error).__name__}: {_HINT}"
            raise FinalError(message, reason="RegistryNotJson") from None


@lru_cache(maxsize=4)
def _client(region: str, endpoint: str, keys: AwsKeys, ca: str | None, pid: int) -> Any:
    """Cached by credentials, and by process: a forked worker must not share the sockets of its parent."""
    options = keys.client_options
    if endpoint:
        options["endpoint_url"] = endpoint
    if ca is not None:
        options["verify"] = ca
    config = Config(
        connect_timeout=CONNECT_TIMEOUT,
        read_timeout=READ_TIMEOUT,
        # `base/retry.py` retries, within the limits of the spec.
        retries={"total_max_attempts": 1, "mode": "standard"},
        user_agent=f"s3sink Boto3/{boto3.__version__}",
    )
    return boto3.session.Session(region_name=region or None).client("glue", config=config, **options)


def _refused(error: ClientError, what: str) -> S3SinkError:
    found = error.response.get("Error", {})
    code, status = str(found.get("Code", "")), int(error.response["ResponseMetadata"].get("HTTPStatusCode", 0))
    text = f"{what}: {status} {code}: {str(found.get('Message', ''))[:200]}"
    if code.startswith(_DENIED) or status in _DENIED_STATUS:
        hint = "check schemaRegistry.credentialsFrom, or the role of the pod, and its permission glue:GetSchemaVersion"
        return FinalError(f"{text}: {hint}", reason="RegistryDenied")
    if code.startswith(_TRANSIENT) or status in _TRANSIENT_STATUS or status >= 500:
        return RegistryUnavailable(text)
    return FinalError(f"{text}: {_HINT}", reason="RegistryRefused")


def _no_answer(error: Exception, what: str) -> S3SinkError:
    match error:
        case NoCredentialsError() | PartialCredentialsError():
            hint = "set schemaRegistry.credentialsFrom, or give the pod a cloud role"
            return FinalError(f"{what}: no AWS credentials found: {hint}", reason="RegistryDenied")
        case SSLError():
            hint = "check schemaRegistry.caFrom and the endpoint's certificate"
            return FinalError(f"{what}: TLS failed: {error}: {hint}", reason="RegistryTls")
        case _:
            return RegistryUnavailable(f"{what}: {type(error).__name__}: {error}")
