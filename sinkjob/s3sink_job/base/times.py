"""Times as Kubernetes writes them."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
