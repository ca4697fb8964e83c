"""Reasons are a public interface: people look them up, and alerts use them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from s3sink_api.conditions import PHASES, SPEC_REFUSED
from s3sink_operator.decide import conditions
from s3sink_operator.decide.status import pod_problems
from s3sink_operator.values.driver_report import DriverReport
from s3sink_operator.values.objects import ContainerExit
from tests.operator.samples import NOW, carried_out, condition, decided, pod, report, running

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / name for name in ("kubernetes.md", "status.md", "troubleshooting.md")]
STATUSES = {"True", "False", "Unknown"}
CALLS = {"not_ready", "_without_driver", "PodProblem", "RunFailure", "Condition", "Event"}


def reasons() -> Iterator[str]:
    """Every reason that the operator may write."""
    yield from pod_problems.REMOVED.values()
    yield from pod_problems.CANNOT_START - set(pod_problems.SYNONYMS)
    yield conditions.UNREADABLE
    yield SPEC_REFUSED
    # A driver's reason for Ready is its phase.
    yield from PHASES
    for path in (ROOT / "operator" / "s3sink_operator" / "decide").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
                for value in node.args:
                    if isinstance(value, ast.Constant) and re.fullmatch(r"[A-Z][a-z]\w*|OOM\w+", str(value.value)):
                        yield str(value.value)


def test_the_scan_finds_reasons() -> None:
    assert {"Creating", "OOMKilled", "WaitingForSchedule", "DriverRestarted", "NodeLost"} <= set(reasons())


@pytest.mark.parametrize("reason", sorted(set(reasons()) - STATUSES - {"Normal", "Warning"}))
def test_every_reason_is_one_word_that_a_page_explains(reason: str) -> None:
    assert re.fullmatch(r"[A-Z][A-Za-z0-9]*", reason)
    assert any(f"`{reason}`" in page.read_text(encoding="utf-8") for page in PAGES)


def told(caught_up: str, records: int, **fields: Any) -> Any:
    conditions = [
        condition("Ready", True, "Running", "the driver runs"),
        condition("LastFlushSucceeded", True, "Succeeded"),
        condition("CaughtUp", caught_up == "Level", caught_up, f"{records} offsets wait"),
    ]
    at = fields.pop("at", NOW)
    said = report(conditions=conditions, lag={"records": records}, **fields)
    return replace(said, received=at, changed=at)


def test_changing_figures_cause_no_events() -> None:
    seen = carried_out(running(), decided(running()))
    for turn in range(1, 20):
        at = NOW + timedelta(minutes=turn)
        word = ("Level", "Waiting", "Throttled", "OpenTransaction")[turn % 4]
        seen = replace(seen, now=at, report=told(word, turn, flush={"records": turn}, at=at))
        found = decided(seen)
        assert found.events == ()
        seen = carried_out(seen, found)


def test_a_failure_and_its_end_are_one_event_each() -> None:
    seen = carried_out(running(), decided(running()))
    lost = replace(seen, report=told("DataLoss", 5))
    found = decided(lost)
    assert [(e.type, e.reason) for e in found.events] == [("Warning", "DataLoss")]
    over = replace(carried_out(lost, found), report=told("Level", 0))
    assert [(e.type, e.reason) for e in decided(over).events] == [("Normal", "CaughtUp")]


def test_a_restart_event_has_the_exit_code() -> None:
    seen = carried_out(running(), decided(running()))
    again = replace(seen, pods=(pod(restarts=1, last_exit=ContainerExit(137, "OOMKilled")),))
    (event,) = decided(again).events
    assert (event.reason, event.message) == (
        "DriverRestarted",
        "the driver restarted after exit code 137 (OOMKilled)",
    )


def test_dead_letters_are_one_event_an_hour() -> None:
    def told(offset: int, time: str, age: float = -120) -> DriverReport:
        letter = {"topic": "orders", "partition": 0, "offset": offset, "message": "value is not JSON", "time": time}
        return report(age=age, retry={"attempts": 0, "deadLetteredRecords": offset, "lastDeadLetter": letter})

    seen = carried_out(running(), decided(running()))
    first = replace(seen, now=NOW + timedelta(minutes=2), report=told(7, "2026-11-16T11:00:00Z"))
    found = decided(first)
    (event,) = found.events
    assert (event.type, event.reason) == ("Warning", "DeadLetter")
    counted = "7 records became dead letters since the first start; the last one: orders-0 offset 7: value is not JSON"
    assert event.message == counted
    seen = replace(carried_out(first, found), now=NOW + timedelta(minutes=2, seconds=90))
    assert decided(replace(seen, report=told(8, "2026-11-16T11:59:59Z", age=-210))).events == ()
    later = replace(seen, report=told(9, "2026-11-16T12:00:00Z", age=-210))
    assert [event.reason for event in decided(later).events] == ["DeadLetter"]


def test_a_reset_is_one_event_at_once() -> None:
    seen = carried_out(running(), decided(running()))
    done = {"nonce": "2026-11-01", "time": "2026-11-16T11:59:30Z"}
    reset = replace(seen, report=report(reset=done))
    found = decided(reset)
    assert found.status is not None
    assert found.status["reset"] == done
    (event,) = found.events
    assert (event.type, event.reason) == ("Normal", "Reset")
    assert event.message == "reset '2026-11-01' done at 2026-11-16T11:59:30Z: every topic starts a new generation"
    silent = replace(carried_out(reset, found), report=report())
    assert decided(silent).events == ()


@pytest.mark.parametrize("reason", ["not one word", "no-luck", "kafka", "", "x" * 500, "Ünglück", "A\nB"])
def test_an_invalid_reason_of_a_driver_becomes_unreadable(reason: str) -> None:
    told = report("Degraded", conditions=[condition("Ready", False, reason, "no luck")])
    (event,) = decided(running(report=told)).events
    assert event.reason == "Unreadable"
    assert event.message == "no luck"
