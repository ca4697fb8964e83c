"""Reasons are a contract: people look them up, and alerts are made of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from s3sink_operator.decide import causes, conditions
from s3sink_operator.model import Exit
from tests.operator.facts import NOW, carried_out, condition, decided, pod, report, running

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / name for name in ("kubernetes.md", "status.md", "troubleshooting.md")]
STATUSES = {"True", "False", "Unknown"}
CALLS = {"_not_ready", "_no_driver", "Cause", "Condition", "Event"}


def reasons() -> Iterator[str]:
    """Every word that the operator may give as a reason."""
    yield from causes._REMOVED.values()
    yield from causes._CANNOT_START - set(causes._SAME)
    yield conditions.UNREADABLE
    yield conditions.SPEC_REFUSED
    for path in (ROOT / "operator" / "s3sink_operator" / "decide").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
                for value in node.args:
                    if isinstance(value, ast.Constant) and re.fullmatch(r"[A-Z][a-z]\w*|OOM\w+", str(value.value)):
                        yield str(value.value)


def test_there_are_reasons_to_look_at() -> None:
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
    return replace(said, heard=at, changed=at)


def test_figures_that_flap_make_no_events() -> None:
    facts = carried_out(running(), decided(running()))
    for turn in range(1, 20):
        at = NOW + timedelta(minutes=turn)
        word = ("Level", "Waiting", "Throttled", "OpenTransaction")[turn % 4]
        seen = replace(facts, now=at, report=told(word, turn, flush={"records": turn}, at=at))
        found = decided(seen)
        assert found.events == ()
        facts = carried_out(seen, found)


def test_an_end_of_trouble_is_told_as_well_as_its_beginning() -> None:
    facts = carried_out(running(), decided(running()))
    lost = replace(facts, report=told("DataLoss", 5))
    found = decided(lost)
    assert [(e.type, e.reason) for e in found.events] == [("Warning", "DataLoss")]
    over = replace(carried_out(lost, found), report=told("Level", 0))
    assert [(e.type, e.reason) for e in decided(over).events] == [("Normal", "CaughtUp")]


def test_a_restart_is_told_with_how_the_driver_ended() -> None:
    facts = carried_out(running(), decided(running()))
    again = replace(facts, pods=(pod(restarts=1, last_exit=Exit(137, "OOMKilled")),))
    (event,) = decided(again).events
    assert (event.reason, event.message) == (
        "DriverRestarted",
        "the driver was started again after exit code 137, OOMKilled",
    )


def test_a_reset_is_told_once_and_at_once() -> None:
    facts = carried_out(running(), decided(running()))
    done = {"nonce": "2026-11-01", "time": "2026-11-16T11:59:30Z"}
    reset = replace(facts, report=report(reset=done))
    found = decided(reset)
    assert found.status is not None
    assert found.status["reset"] == done
    (event,) = found.events
    assert (event.type, event.reason) == ("Normal", "Reset")
    assert event.message == "reset '2026-11-01': every topic began anew at 2026-11-16T11:59:30Z"
    silent = replace(carried_out(reset, found), report=report())
    assert decided(silent).events == ()


@pytest.mark.parametrize("reason", ["not one word", "no-luck", "kafka", "", "x" * 500, "Ünglück", "A\nB"])
def test_a_driver_cannot_put_just_anything_into_an_event(reason: str) -> None:
    told = report("Degraded", conditions=[condition("Ready", False, reason, "no luck")])
    (event,) = decided(running(report=told)).events
    assert event.reason == "Unreadable"
    assert event.message == "no luck"
