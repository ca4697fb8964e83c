"""What errors mean that come before the answer of the service itself: those of STS, and of a proxy."""

from __future__ import annotations

import re

from botocore.exceptions import BotoCoreError, ClientError, ProxyConnectionError

from s3sink_job.base.errors import FinalError, S3SinkError, TransientError

FINAL_STATUS = range(400, 500)
TRANSIENT_STATUS = {408, 409, 425, 429}
THROTTLED = re.compile(
    "slowdown|throttl|toomanyrequests|requestlimit|ratelimit|rateexceeded|bandwidthlimit|qpslimit|serverbusy"
)
"""Parts of error codes, in lower case and without punctuation: stores and the services behind them differ here."""
_PROXY_LOGIN = 407


class RoleError(BotoCoreError):
    """What STS answered instead of credentials. No ClientError: its code says nothing about the service's objects."""

    fmt = "AssumeRole: {cause}"

    def __init__(self, cause: Exception) -> None:
        super().__init__(cause=cause)
        self.cause = cause


def proxy_refused(error: Exception, what: str, *, proxy: str) -> S3SinkError | None:
    """None unless the proxy refuses the login. `what` is the request, `proxy` the field of the spec."""
    if isinstance(error, RoleError):
        error = error.cause
    if isinstance(error, ClientError):
        refused = status_of(error) == _PROXY_LOGIN
    else:
        refused = isinstance(error, ProxyConnectionError) and f": {_PROXY_LOGIN} " in str(error.kwargs.get("error"))
    why = f"the proxy refuses the user and password, or needs one: check {proxy}.credentialsFrom"
    return FinalError(f"{what}: {_PROXY_LOGIN}: {why}", reason="ProxyLoginRefused") if refused else None


def role_refused(
    error: Exception, what: str, *, role: str, reason: str, later: type[TransientError]
) -> S3SinkError | None:
    """None unless STS did not answer with credentials. `role` is the field of the spec."""
    if not isinstance(error, RoleError):
        return None
    if not isinstance(error.cause, ClientError):
        name = type(error.cause).__name__
        return later(f"{what}: AssumeRole: the answer cannot be read: {name}: check {role}.endpoint")
    code, status = code_of(error.cause), status_of(error.cause)
    text = f"{what}: AssumeRole: {status} {code}: {message_of(error.cause)}"
    if status in FINAL_STATUS and status not in TRANSIENT_STATUS and not THROTTLED.search(code.lower()):
        why = f"check {role}, and who the role's trust policy lets in, with which external id"
        return FinalError(f"{text}: {why}", reason=reason)
    return later(text)


def code_of(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def status_of(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def message_of(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Message", ""))
