"""Names of the metadata by which the sink recognises its own objects."""

from __future__ import annotations

FLUSH_TAG = "s3sink-flush"
"""The name of the flush's manifest."""
SINK_TAG = "s3sink-sink"
RECORD_TAG, VALUE_TAG = "s3sink-record", "s3sink-value"
"""For an object of a single record: which record it is, and the SHA-256 of its value."""
