"""Errors of a store in the product's terms, whatever the store. `stores/s3/errors.py` translates those of S3."""

from __future__ import annotations

from s3sink_job.base.errors import FinalError, S3SinkError, TransientError


class PreconditionFailed(S3SinkError):
    """The condition of a conditional write did not hold."""


class NoSuchUpload(S3SinkError):
    """The upload was completed or aborted before."""


class InvalidPart(S3SinkError):
    """The upload does not have the listed parts, by number and ETag."""


class StoreRefused(FinalError):
    """The store rejects the request. A retry would not help."""

    reason = "StoreRefused"


class KeyRefused(StoreRefused):
    """The store rejects the first request for a key. The key need not be the cause."""


class StoreUnavailable(TransientError):
    reason = "StoreUnavailable"


class Throttled(StoreUnavailable):
    """The store asks for fewer requests."""


class Conflict(StoreUnavailable):
    """One of several concurrent conditional requests for the same key."""


def key_taken(url: str, flush: str) -> FinalError:
    return FinalError(
        f"{url} exists already and was not written by flush {flush}. It was not overwritten. Move it away; the sink "
        "then continues by itself",
        reason="KeyTaken",
    )
