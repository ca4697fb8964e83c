"""What an error of S3 means: transient, final, or an answer that the protocol expects."""

from __future__ import annotations

import re

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
)

from s3sink_job.base.aws_errors import (
    FINAL_STATUS,
    THROTTLED,
    TRANSIENT_STATUS,
    code_of,
    message_of,
    proxy_refused,
    role_refused,
    status_of,
)
from s3sink_job.base.errors import FinalError, S3SinkError
from s3sink_job.stores.errors import (
    Conflict,
    InvalidPart,
    NoSuchUpload,
    PreconditionFailed,
    StoreRefused,
    StoreUnavailable,
    Throttled,
)

DENIED = {
    *("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "403", "Forbidden"),
    "XAdminUserNotFound",  # versitygw's code for an unknown access key, with status 404
}
NO_OBJECT = "NoSuchKey"
NO_OBJECT_FOR_HEAD = {NO_OBJECT, "404", "NotFound"}
FAILED_CONDITION = {"PreconditionFailed", "412"}
CONFLICT = {"ConditionalRequestConflict", "OperationAborted"}
TOO_MANY_REQUESTS = 429
UNAVAILABLE = 503
TRANSIENT = {
    *("requesttimeout", "requesttimeoutexception", "internalerror", "internalfailure", "serviceunavailable"),
    # The body was damaged in transit.
    *("incompletebody", "baddigest", "xamzcontentsha256mismatch", "xamzcontentchecksummismatch"),
}
"""Codes of transient errors, whatever the status: many come with 400. In lower case, without punctuation."""
WRONG_CLOCK = {"RequestTimeTooSkewed", "RequestExpired"}


def translate(error: Exception, what: str) -> S3SinkError:
    """`what` is the request and its object, for example `PutObject s3://lake/raw/…`."""
    if isinstance(error, NoCredentialsError | PartialCredentialsError):
        return FinalError(
            f"{what}: no S3 credentials found: set spec.destination.credentials, or give the pod a cloud role",
            reason="NoCredentials",
        )
    if isinstance(error, ParamValidationError):
        return FinalError(f"{what}: {error}", reason="InvalidRequest")
    role, proxy = "spec.destination.assumeRole", "spec.destination.proxy"
    if refused := proxy_refused(error, what, proxy=proxy) or role_refused(
        error, what, role=role, reason="AssumeRoleRefused", later=StoreUnavailable
    ):
        return refused
    if isinstance(error, ClientError):
        return _translate_answer(error, what)
    if isinstance(error, BotoCoreError | OSError):
        return StoreUnavailable(f"{what}: {type(error).__name__}: {error}")
    raise error


def _translate_answer(error: ClientError, what: str) -> S3SinkError:
    code, status = code_of(error), status_of(error)
    text = f"{what}: {status} {code}: {message_of(error)}"
    if code in FAILED_CONDITION:
        return PreconditionFailed(text)
    if code == "NoSuchUpload":
        return NoSuchUpload(text)
    if code == "InvalidPart":
        return InvalidPart(text)
    if code in CONFLICT:
        return Conflict(text)
    if code == "NoSuchBucket":
        return FinalError(f"{text}: create the bucket, or correct spec.destination.bucket", reason="BucketMissing")
    if code == "AccessControlListNotSupported":
        return FinalError(
            f"{text}: leave spec.destination.acl out, or allow ACLs for the bucket", reason="AclNotSupported"
        )
    if code in DENIED:
        return FinalError(f"{text}: check the credentials and their permissions", reason="AccessDenied")
    if code in WRONG_CLOCK:
        return FinalError(f"{text}: set the clock of this machine or of the store", reason="ClockSkewed")
    plain = re.sub("[^a-z0-9]", "", code.lower())
    # The answer to a HEAD has no body, so its code is the status.
    if THROTTLED.search(plain) or status == TOO_MANY_REQUESTS or plain == str(UNAVAILABLE):
        return Throttled(text)
    if code in {"", str(status)} and not what.startswith("Head"):
        return StoreUnavailable(f"{text}: the answer has no error code; it may be incomplete")
    if status in FINAL_STATUS and status not in TRANSIENT_STATUS and plain not in TRANSIENT:
        return StoreRefused(text)
    return StoreUnavailable(text)
