"""Conditions and phases of a sink, as `status` has them. Driver and operator both write them."""

from __future__ import annotations

ACCEPTED = "Accepted"
READY = "Ready"
LAST_FLUSH_SUCCEEDED = "LastFlushSucceeded"
EXACTLY_ONCE = "ExactlyOnce"
CAUGHT_UP = "CaughtUp"
OFFSETS_PUBLISHED = "OffsetsPublished"
"""Only of sinks with `source.publishOffsetsTo`."""
ON_SCHEDULE = "OnSchedule"
"""Only of sinks with `run: Scheduled`."""
ALWAYS = (ACCEPTED, READY, LAST_FLUSH_SUCCEEDED, EXACTLY_ONCE, CAUGHT_UP)
"""Conditions that every sink has."""

PENDING = "Pending"
STARTING = "Starting"
RUNNING = "Running"
PAUSED = "Paused"
STOPPED = "Stopped"
COMPLETED = "Completed"
DEGRADED = "Degraded"
FAILED = "Failed"
PHASES = (PENDING, STARTING, RUNNING, PAUSED, STOPPED, COMPLETED, DEGRADED, FAILED)

SPEC_REFUSED = "SpecRefused"
"""Reason of Ready while Accepted is False."""
LONGEST_MESSAGE = 4096
