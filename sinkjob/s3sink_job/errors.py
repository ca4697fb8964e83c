"""The root of every error the job raises on purpose.

`retryable` is the one question callers ask: may trying again, unchanged, mend it? `reason` is a stable
CamelCase word for conditions, events and metrics; the message says what happened, where, and what to do.
"""

from __future__ import annotations


class S3SinkError(Exception):
    retryable = False
    reason = "Error"

    def __init__(self, message: str, *, reason: str | None = None) -> None:
        super().__init__(message)
        if reason is not None:
            self.reason = reason


class FinalError(S3SinkError):
    """A person has to change something: a bucket, a permission, a manifest."""


class TransientError(S3SinkError):
    """The same call may work later."""

    retryable = True


class FencedError(S3SinkError):
    """Another driver of the same sink has taken over; this one must not write any more."""

    reason = "Fenced"


class ProtocolError(S3SinkError):
    """Something the protocol rules out was seen. Nothing is written after it."""

    reason = "ProtocolViolation"
