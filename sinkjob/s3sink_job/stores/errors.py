"""What an S3 error means for us: mendable by trying again, or by a person, or an answer of the protocol."""

from __future__ import annotations

import re

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
)

from s3sink_job.errors import FinalError, S3SinkError, TransientError

DENIED = {
    *("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "403", "Forbidden"),
    "XAdminUserNotFound",  # versitygw's word for an unknown access key, with the status 404
}
NO_OBJECT = "NoSuchKey"
NO_OBJECT_FOR_HEAD = {NO_OBJECT, "404", "NotFound"}
FAILED_CONDITION = {"PreconditionFailed", "412"}
CONFLICT = {"ConditionalRequestConflict", "OperationAborted"}
FINAL_STATUS = range(400, 500)
TRANSIENT_STATUS = {408, 409, 425, 429}
TOO_MANY_REQUESTS = 429
UNAVAILABLE = 503
THROTTLED = re.compile(
    "slowdown|throttl|toomanyrequests|requestlimit|ratelimit|rateexceeded|bandwidthlimit|qpslimit|serverbusy"
)
"""Within a code, in small letters and without signs: stores, and the services behind them, spell it in many ways."""
PASSING = {
    *("requesttimeout", "requesttimeoutexception", "internalerror", "internalfailure", "serviceunavailable"),
    # The body did not arrive as it was sent.
    *("incompletebody", "baddigest", "xamzcontentsha256mismatch", "xamzcontentchecksummismatch"),
}
"""Codes that trying again may mend, whatever the status: many come with 400. Spelled as above."""
WRONG_CLOCK = {"RequestTimeTooSkewed", "RequestExpired"}


class PreconditionFailed(S3SinkError):
    """The condition of a conditional write did not hold."""


class NoSuchUpload(S3SinkError):
    """The upload was completed before, or aborted."""


class InvalidPart(S3SinkError):
    """The upload has not the parts, by number and ETag, that it is to be completed with."""


class StoreRefused(FinalError):
    """The store does not take the request, and would not take it again."""

    reason = "StoreRefused"


class KeyRefused(StoreRefused):
    """The store does not begin an object of this key; whether the key is to blame is another question."""


class StoreUnavailable(TransientError):
    reason = "StoreUnavailable"


class Throttled(StoreUnavailable):
    """The store asks for fewer requests."""


class Conflict(StoreUnavailable):
    """S3's answer to one of several conditional requests for one key at the same moment."""


def translate(error: Exception, what: str) -> S3SinkError:
    """`what` names the request and its object, e.g. `PutObject s3://lake/raw/…`."""
    if isinstance(error, NoCredentialsError | PartialCredentialsError):
        return FinalError(
            f"{what}: no S3 credentials found: set spec.destination.credentials or provide the default chain",
            reason="NoCredentials",
        )
    if isinstance(error, ParamValidationError):
        return FinalError(f"{what}: {error}", reason="InvalidRequest")
    if isinstance(error, ClientError):
        return _translate_answer(error, what)
    if isinstance(error, BotoCoreError | OSError):
        return StoreUnavailable(f"{what}: {type(error).__name__}: {error}")
    raise error


def _translate_answer(error: ClientError, what: str) -> S3SinkError:
    code = str(error.response.get("Error", {}).get("Code", ""))
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    text = f"{what}: {status} {code}: {error.response.get('Error', {}).get('Message', '')}"
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
    if code in DENIED:
        return FinalError(f"{text}: check the credentials and that they allow this request", reason="AccessDenied")
    if code in WRONG_CLOCK:
        return FinalError(f"{text}: set the clock of this machine, or of the store", reason="ClockSkewed")
    plain = re.sub("[^a-z0-9]", "", code.lower())
    # The answer to a HEAD has no body, so no code either: the status stands for it.
    if THROTTLED.search(plain) or status == TOO_MANY_REQUESTS or plain == str(UNAVAILABLE):
        return Throttled(text)
    if code in {"", str(status)} and not what.startswith("Head"):
        return StoreUnavailable(f"{text}: the answer does not say why; it may have been cut off")
    if status in FINAL_STATUS and status not in TRANSIENT_STATUS and plain not in PASSING:
        return StoreRefused(text)
    return StoreUnavailable(text)
