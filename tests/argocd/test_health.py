"""What Argo CD says of a sink, by the status that the operator gives it; in a real Lua, with Argo CD's libraries."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings

from s3sink_operator.values.observation import Observation
from tests.argocd.lua import FOLDER, health
from tests.argocd.situations import (
    CASES,
    DEGRADED,
    HEALTHY,
    PROGRESSING,
    SUSPENDED,
    document,
    operator_error,
    shown,
)
from tests.operator.samples import message, named, resource, status_of
from tests.operator.test_any_observation import observations
from tools.argocd.program import Health

PAGE = Path(__file__).parents[2] / "docs" / "argocd.md"
FIXTURES = yaml.safe_load((FOLDER / "health_test.yaml").read_text())["tests"]


@pytest.mark.parametrize("name", CASES)
def test_every_situation_has_its_health(name: str) -> None:
    case = CASES[name]
    sink = shown(case)
    found = health(sink)
    assert found.status == case.health
    if case.reason:
        assert named(sink["status"], "Ready")[1] == case.reason
    told = named(sink["status"], "Accepted")[0] == "True" or named(sink["status"], "Ready")[1] == "SpecRefused"
    assert found.message == message(sink["status"], "Ready" if told else "Accepted")


@pytest.mark.parametrize("name", CASES)
def test_a_change_that_the_operator_has_not_seen_is_progressing(name: str) -> None:
    sink = shown(CASES[name])
    sink["metadata"]["generation"] += 1
    assert health(sink).status == PROGRESSING


def test_a_sink_without_a_status_is_progressing() -> None:
    assert health(document(resource(), {})).status == PROGRESSING


def test_an_operator_error_is_degraded() -> None:
    found = health(operator_error())
    assert found.status == DEGRADED
    assert "out of luck" in found.message


def test_an_unknown_phase_is_judged_by_its_condition() -> None:
    sink = shown(CASES["running"])
    sink["status"]["phase"] = "Dancing"
    assert health(sink).status == HEALTHY
    sink["status"]["conditions"] = []
    assert health(sink) == Health(DEGRADED, "the phase is Dancing")


@given(observations())
@settings(max_examples=150, deadline=None)
def test_healthy_needs_ready_and_problems_are_never_healthy(seen: Observation) -> None:
    status = status_of(seen)
    found = health(document(seen.resource, status))
    ready, reason = named(status, "Ready")
    assert found.message
    if named(status, "Accepted")[0] == "False" or status["phase"] in {"Degraded", "Failed"}:
        assert found.status == DEGRADED
    elif status["phase"] in {"Paused", "Stopped"}:
        assert found.status in {SUSPENDED, PROGRESSING}
    elif found.status == HEALTHY:
        waiting = {"WaitingForSchedule", "Creating", "Starting"}
        assert ready == "True" or (seen.resource.spec["run"] == "Scheduled" and reason in waiting)
    else:
        assert ready != "True"


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture["inputPath"])
def test_the_fixtures_hold(fixture: dict[str, dict[str, str]]) -> None:
    sink = yaml.safe_load((FOLDER / str(fixture["inputPath"])).read_text())
    assert health(sink) == Health(**fixture["healthStatus"])


def test_there_is_a_fixture_of_every_health() -> None:
    assert {fixture["healthStatus"]["status"] for fixture in FIXTURES} == {HEALTHY, PROGRESSING, DEGRADED, SUSPENDED}


def test_the_page_says_what_the_script_does() -> None:
    rows = [line.split("|")[1:-1] for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    told = {(phase.strip(" `"), word.strip()) for phases, *_, word in rows for phase in phases.split(",")}
    for name, case in CASES.items():
        status = status_of(case.seen)
        if named(status, "Accepted")[0] == "True":
            assert (status["phase"], case.health) in told, name
