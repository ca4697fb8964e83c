"""What a driver reports about itself at /status, or in its termination message."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta

from s3sink_operator.values.objects import Document
from s3sink_operator.values.status_schema import is_timestamp, valid_part


class InvalidReport(Exception):
    """The driver answered with something that is not a report."""


@dataclass(frozen=True)
class DriverReport:
    document: Document
    received: datetime
    pod: str = ""
    changed: datetime | None = None
    """When, by our clock, its `reportedAt` last changed; None for a first report."""

    def is_fresh(self, now: datetime, stale_after: float) -> bool:
        """Received and renewed lately. The driver's clock may be wrong, so only that it advances counts."""
        limit = timedelta(seconds=stale_after)
        return now - self.received <= limit and now - (self.changed or self.received) <= limit


def parse_report(text: bytes | str) -> Document:
    """Only the fields that the status may hold: a driver may be old, broken or malicious."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidReport("the report is not JSON") from error
    if not isinstance(document, dict):
        raise InvalidReport("the report is not a JSON object")
    kept = valid_part(document)
    if "phase" not in kept or "conditions" not in kept:
        raise InvalidReport("the report lacks phase or conditions")
    if isinstance(at := document.get("reportedAt"), str) and is_timestamp(at):
        kept["reportedAt"] = at
    return kept


def report_in(termination_message: str) -> Document | None:
    """None if the driver left a log line instead, or nothing."""
    try:
        return parse_report(termination_message)
    except InvalidReport:
        return None
