"""The root of every error that the job raises on purpose.

`retryable` is whether the same call may work later. `reason` is a stable CamelCase word for conditions, events and
metrics. The message has the cause, the place, and what to do.
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
    """It fails until somebody changes a bucket, a permission or a manifest."""


class TransientError(S3SinkError):
    """The same call may work later."""

    retryable = True


class FencedError(S3SinkError):
    """Another driver of the same sink has taken over: this one must stop writing."""

    reason = "Fenced"


class ProtocolError(S3SinkError):
    """A state that the protocol rules out. Nothing is written after it."""

    reason = "ProtocolViolation"
