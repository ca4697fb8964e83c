"""Requests to AWS Glue Schema Registry. An id that it does not know is None; all else that goes wrong is an error.

Which error means what is the same as for other registries: see docs/schemas.md, "When the registry fails".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    NoRegionError,
    ParamValidationError,
    PartialCredentialsError,
    SSLError,
)

from s3sink_api.spec import SchemaRegistry
from s3sink_job.base.aws_access import AwsAccess, aws_keys, ca_file, proxy_url
from s3sink_job.base.aws_client import aws_client
from s3sink_job.base.aws_errors import code_of, message_of, proxy_refused, role_refused, status_of
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
_LOGIN = "schemaRegistry.credentialsFrom, or the role of the pod"
_ROLE = "schemaRegistry.assumeRole"
_HINT = "are schemaRegistry.region and endpoint right?"


class GlueClient:
    def __init__(self, registry: SchemaRegistry, secrets: Secrets, retry: RetryPolicy) -> None:
        """Reads the secrets: a client that is kept does not follow their changes."""
        access = AwsAccess(
            region=registry.region or "",
            endpoint=registry.endpoint or "",
            role=registry.assume_role,
            ca=ca_file(registry.ca_from, secrets),
            keys=aws_keys(registry.credentials_from, secrets),
            proxy=proxy_url(registry.proxy, secrets),
            connect_timeout=CONNECT_TIMEOUT,
            read_timeout=READ_TIMEOUT,
        )
        self._retry = retry
        try:
            self._client = _client(access)
        except NoRegionError:
            raise FinalError("AWS Glue: no region found: set schemaRegistry.region", reason="RegistryRefused") from None
        self._login, role = (_ROLE, f" with role {access.role.arn}") if access.role else (_LOGIN, "")
        self.url = f"AWS Glue at {self._client.meta.endpoint_url}{role}"

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
        except Exception as error:
            translated = self._error(error, what)
            if translated is None:
                return None
            raise translated from None

    def _error(self, error: Exception, what: str) -> S3SinkError | None:
        """None if Glue does not have it."""
        # First what comes before Glue: its codes say nothing about schemas.
        if refused := proxy_refused(error, what, proxy="schemaRegistry.proxy") or role_refused(
            error, what, role=_ROLE, reason="RegistryDenied", later=RegistryUnavailable
        ):
            return refused
        match error:
            case ClientError():
                return None if code_of(error) == UNKNOWN else _refused(error, what, self._login)
            case BotoCoreError() | OSError():
                return _no_answer(error, what)
            case _:
                # botocore's parser raises anything for an answer that is not AWS'.
                message = f"{what}: the answer cannot be read: {type(error).__name__}: {_HINT}"
                return FinalError(message, reason="RegistryNotJson")


@lru_cache(maxsize=4)
def _client(access: AwsAccess) -> Any:
    """Cached by credentials, so that not every task assumes the role."""
    return aws_client("glue", access)


def _refused(error: ClientError, what: str, login: str) -> S3SinkError:
    code, status = code_of(error), status_of(error)
    text = f"{what}: {status} {code}: {message_of(error)[:200]}"
    if code.startswith(_DENIED) or status in _DENIED_STATUS:
        return FinalError(f"{text}: check {login}, and its permission glue:GetSchemaVersion", reason="RegistryDenied")
    if code.startswith(_TRANSIENT) or status in _TRANSIENT_STATUS or status >= 500:
        return RegistryUnavailable(text)
    return FinalError(f"{text}: {_HINT}", reason="RegistryRefused")


def _no_answer(error: Exception, what: str) -> S3SinkError:
    match error:
        case NoCredentialsError() | PartialCredentialsError():
            hint = "set schemaRegistry.credentialsFrom, or give the pod a cloud role"
            return FinalError(f"{what}: no AWS credentials found: {hint}", reason="RegistryDenied")
        case ParamValidationError():
            return FinalError(f"{what}: {error}", reason="RegistryRefused")
        case SSLError():
            hint = "check schemaRegistry.caFrom and the endpoint's certificate"
            return FinalError(f"{what}: TLS failed: {error}: {hint}", reason="RegistryTls")
        case _:
            return RegistryUnavailable(f"{what}: {type(error).__name__}: {error}")
