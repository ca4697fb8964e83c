"""What a person may do to a sink in Argo CD's window, and what it changes; in a real Lua."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
import yaml

from deploy.generate import ACTIONS
from s3sink_operator.decide.children.workloads import spec_hash
from tests.argocd.lua import FOLDER, run
from tests.argocd.situations import CASES, shown
from tests.operator.samples import decided, hash_of, running

FOLDER_OF_ACTIONS = FOLDER / "actions"
TESTS = yaml.safe_load((FOLDER_OF_ACTIONS / "action_test.yaml").read_text())
RESTARTED = "s3sink.dev/restarted-at"
TIME = "2026-11-16T12:00:00Z"


def fixture(path: str) -> Any:
    return yaml.safe_load((FOLDER_OF_ACTIONS / path).read_text())


def offered(sink: dict[str, Any]) -> set[str]:
    return {name for name, action in run("actions/discovery.lua", sink).items() if not action["disabled"]}


def acted(action: str, sink: dict[str, Any]) -> dict[str, Any]:
    """With another time in place of now."""
    found: dict[str, Any] = run(f"actions/{action}/action.lua", sink)
    changed, name = {
        "restart": (found["metadata"].get("annotations"), RESTARTED),
        "reset": (found["spec"].get("reset"), "nonce"),
    }.get(action, (None, ""))
    if changed:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", changed[name])
        changed[name] = TIME
    return found


@pytest.mark.parametrize(
    ("situation", "expected"),
    [
        ("running", {"pause", "stop", "restart", "reset"}),
        ("silent", {"pause", "stop", "restart", "reset"}),
        ("paused", {"resume", "stop", "restart", "reset"}),
        ("stopped", {"resume", "reset"}),
        ("once, tried again", {"pause", "stop", "restart", "reset"}),
        ("once, complete", {"restart", "reset"}),
        ("once, failed", {"stop", "restart", "reset"}),
        ("scheduled, between runs", {"pause", "stop", "reset"}),
        ("scheduled, a run is under way", {"pause", "stop", "reset"}),
        ("scheduled, paused", {"resume", "stop", "reset"}),
    ],
)
def test_only_what_makes_sense_now_is_offered(situation: str, expected: set[str]) -> None:
    assert offered(shown(CASES[situation])) == expected


def test_a_sink_without_a_status_can_be_paused_and_stopped() -> None:
    sink = shown(CASES["running"])
    del sink["status"]
    assert offered(sink) == {"pause", "stop", "restart", "reset"}


def test_every_action_that_is_offered_is_there() -> None:
    there = {path.parent.name for path in FOLDER_OF_ACTIONS.glob("*/action.lua")}
    assert set(run("actions/discovery.lua", shown(CASES["running"]))) == there == set(ACTIONS)


@pytest.mark.parametrize("test", TESTS["actionTests"], ids=lambda test: test["expectedOutputPath"])
def test_an_action_changes_what_its_fixture_says(test: dict[str, str]) -> None:
    assert acted(test["action"], fixture(test["inputPath"])) == fixture(test["expectedOutputPath"])


@pytest.mark.parametrize("test", TESTS["discoveryTests"], ids=lambda test: test["inputPath"])
def test_what_is_offered_is_what_its_fixture_says(test: dict[str, Any]) -> None:
    found = run("actions/discovery.lua", fixture(test["inputPath"]))
    assert found == {wanted.pop("name"): wanted for wanted in [dict(each) for each in test["result"]]}


def test_a_restart_gives_the_driver_another_pod() -> None:
    seen = running()
    restarted = replace(seen.resource, annotations={RESTARTED: TIME})
    (deployment,) = (d for d in decided(replace(seen, resource=restarted)).apply if d["kind"] == "Deployment")
    assert spec_hash(deployment) != hash_of(seen.resource)


def test_a_restart_of_a_run_that_is_over_runs_it_again() -> None:
    seen = CASES["once, complete"].seen
    again = replace(seen, resource=replace(seen.resource, annotations={RESTARTED: TIME}))
    assert [child.kind for child in decided(again).delete] == ["Job"]
