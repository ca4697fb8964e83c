from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import yaml

from s3sink_operator.model import Exit
from tests.operator.facts import (
    NOW,
    children,
    decided,
    named,
    observed,
    pod,
    ready,
    report,
    resource,
    running,
    status_of,
)

STOPPED = {"state": "Stopped"}


@pytest.mark.parametrize("run", ["Continuous", "Once"])
def test_stopped_removes_what_runs_and_keeps_the_rest(run: str) -> None:
    before = resource({"run": run})
    found = decided(observed(resource({"run": run, **STOPPED}), children=children(before), pods=(pod(before),)))
    assert [c.kind for c in found.delete] == ["Deployment" if run == "Continuous" else "Job"]
    assert not [d for d in found.apply if d["kind"] in {"Deployment", "Job"}]


@pytest.mark.parametrize(
    "broken",
    [{"flush": {"interval": 5}}, {"run": "Scheduled"}, {"spark": {"driver": {"podTemplate": {"spec": {"x": 1}}}}}],
)
def test_stopped_wins_over_a_spec_that_is_not_valid(broken: dict[str, Any]) -> None:
    facts = running()
    found = decided(replace(facts, resource=resource({**broken, **STOPPED})))
    assert [c.kind for c in found.delete] == ["Deployment"]
    assert found.phase == "Stopped"


@pytest.mark.parametrize(
    "trouble",
    [
        {"waiting": "CrashLoopBackOff", "last_exit": Exit(1), "ready": False},
        {"waiting": "ImagePullBackOff", "ready": False},
        {"phase": "Failed", "ended": Exit(2), "ready": False},
    ],
)
def test_stopped_wins_over_a_failure(trouble: dict[str, Any]) -> None:
    found = decided(observed(resource(STOPPED), children=children(resource()), pods=(pod(**trouble),)))
    assert [c.kind for c in found.delete] == ["Deployment"]
    assert found.phase == "Stopped"


def test_stopped_says_so_once_the_pods_are_gone() -> None:
    stopping = observed(resource(STOPPED), pods=(pod(deleting=NOW),))
    assert ready(stopping) == ("False", "Stopping")
    assert ready(observed(resource(STOPPED))) == ("False", "Stopped")
    assert decided(observed(resource(STOPPED))).apply == ()


def test_paused_runs_a_driver_that_knows_it() -> None:
    found = decided(observed(resource({"state": "Paused"}))).apply
    assert "Deployment" in {d["kind"] for d in found}
    manifest = yaml.safe_load(next(d for d in found if d["kind"] == "ConfigMap")["data"]["sink.yaml"])
    assert manifest["spec"]["state"] == "Paused"
    status = status_of(running({"state": "Paused"}, report=report("Paused")))
    assert (status["phase"], named(status, "Ready")) == ("Paused", ("True", "Paused"))


def test_started_again_it_waits_for_the_driver_that_is_ending() -> None:
    ending = pod(deleting=NOW + timedelta(seconds=20))
    facts = observed(resource(), pods=(ending,))
    assert "Deployment" not in {d["kind"] for d in decided(facts).apply}
    assert ready(facts) == ("False", "WaitingForFormerDriver")
    assert decided(facts).look_again is not None


def test_a_pod_on_a_node_that_is_gone_is_not_waited_for() -> None:
    facts = observed(resource(), pods=(pod(deleting=NOW - timedelta(seconds=31)),))
    assert "Deployment" in {d["kind"] for d in decided(facts).apply}
