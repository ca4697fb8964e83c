"""Time zones by their IANA names. The package tzdata has them all, so an image needs no database of its own."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from s3sink_job.base.errors import FinalError


def zone_of(name: str, field: str) -> ZoneInfo:
    """`field` is where the spec has the name."""
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        raise FinalError(f"{field}: unknown time zone {name!r}", reason="UnknownTimeZone") from None
