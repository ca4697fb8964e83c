"""The status as types, as JSON and as a schema: one definition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from s3sink_api import conditions
from s3sink_api.definition import STATUS
from s3sink_api.status import (
    Condition,
    DriverReport,
    FlushStatus,
    GapsStatus,
    GapStatus,
    LagStatus,
    RetryStatus,
    Status,
    WorstLag,
)
from s3sink_job.report.status import Reporter


def test_a_status_is_written_in_camel_case_without_what_is_not_set() -> None:
    gap = GapStatus(topic="orders", partition=0, from_=3, to=7, reason="Retention")
    status = Status(
        phase=conditions.RUNNING,
        flush=FlushStatus(),
        lag=LagStatus(records_to_high_watermark=0, seconds=0.0, worst=WorstLag(topic="orders")),
        gaps=GapsStatus(count=1, recent=(gap,)),
        offsets=(),
    )
    assert status.to_document() == {
        "phase": "Running",
        "flush": {},
        "lag": {"recordsToHighWatermark": 0, "seconds": 0.0, "worst": {"topic": "orders"}},
        "offsets": [],
        "gaps": {
            "count": 1,
            "recent": [{"topic": "orders", "partition": 0, "from": 3, "to": 7, "reason": "Retention"}],
        },
    }


def test_conditions_and_phases_of_the_schema_are_those_of_the_contract() -> None:
    assert STATUS["properties"]["phase"]["enum"] == list(conditions.PHASES)
    described = STATUS["properties"]["conditions"]["items"]["properties"]["type"]["description"]
    assert all(name in described for name in (*conditions.ALWAYS, conditions.OFFSETS_PUBLISHED))
    assert STATUS["properties"]["conditions"]["items"]["required"] == [
        *("type", "status", "reason", "message", "lastTransitionTime"),
    ]


def unknown(schema: dict[str, Any], value: Any, path: str = "") -> Iterator[str]:
    """Fields of the value that the schema does not have."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in schema["properties"]:
                yield f"{path}.{name}"
            else:
                yield from unknown(schema["properties"][name], inner, f"{path}.{name}")
    elif isinstance(value, list):
        for item in value:
            yield from unknown(schema["items"], item, f"{path}[]")


def test_a_driver_reports_what_the_schema_has_and_when() -> None:
    reporter = Reporter(generation=7)
    reporter.phase(conditions.RUNNING)
    status = reporter.status()
    assert list(unknown(STATUS, status)) == [".reportedAt"]
    assert status["observedGeneration"] == 7
    assert {(c["type"], c["status"], c["reason"]) for c in status["conditions"]} == {
        (conditions.ACCEPTED, "True", "Valid"),
        (conditions.READY, "True", "Running"),
    }
    assert status["flush"] == {}
    assert status["retry"] == {"attempts": 0, "skippedRecords": 0, "deadLetteredRecords": 0}


def test_a_report_is_a_status() -> None:
    report = Reporter().report()
    assert isinstance(report, DriverReport)
    assert isinstance(report, Status)
    assert report.retry == RetryStatus(attempts=0, skipped_records=0, dead_lettered_records=0)
    assert report.conditions is not None
    assert all(isinstance(condition, Condition) for condition in report.conditions)
