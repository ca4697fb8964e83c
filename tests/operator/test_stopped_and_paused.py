from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import yaml

from s3sink_operator.decide.children.workloads import WORKLOADS, spec_hash
from s3sink_operator.values.objects import ContainerExit
from s3sink_operator.values.observation import Observation
from tests.operator.samples import (
    NOW,
    SETTINGS,
    carried_out,
    children,
    decided,
    ended,
    hash_of,
    named,
    observed,
    pod,
    ready,
    report,
    resource,
    run_of,
    running,
    status_of,
)

STOPPED = {"state": "Stopped"}


@pytest.mark.parametrize("run", ["Continuous", "Once"])
def test_stopped_deletes_the_workload_and_keeps_the_rest(run: str) -> None:
    before = resource({"run": run})
    found = decided(observed(resource({"run": run, **STOPPED}), children=children(before), pods=(pod(before),)))
    assert [c.kind for c in found.delete] == ["Deployment" if run == "Continuous" else "Job"]
    assert not [d for d in found.apply if d["kind"] in {"Deployment", "Job"}]


@pytest.mark.parametrize(
    "broken",
    [{"flush": {"interval": 5}}, {"run": "Scheduled"}, {"spark": {"driver": {"podTemplate": {"spec": {"x": 1}}}}}],
)
def test_stopped_takes_effect_in_a_spec_that_is_not_valid(broken: dict[str, Any]) -> None:
    seen = running()
    stopped = replace(seen, resource=resource({**broken, **STOPPED}))
    assert [c.kind for c in decided(stopped).delete] == ["Deployment"]
    assert status_of(stopped)["phase"] == "Stopped"


@pytest.mark.parametrize(
    "trouble",
    [
        {"waiting": "CrashLoopBackOff", "last_exit": ContainerExit(1), "ready": False},
        {"waiting": "ImagePullBackOff", "ready": False},
        {"phase": "Failed", "ended": ContainerExit(2), "ready": False},
    ],
)
def test_stopped_takes_effect_on_a_failed_sink(trouble: dict[str, Any]) -> None:
    stopped = observed(resource(STOPPED), children=children(resource()), pods=(pod(**trouble),))
    assert [c.kind for c in decided(stopped).delete] == ["Deployment"]
    assert status_of(stopped)["phase"] == "Stopped"


def test_stopped_is_reported_once_the_pods_are_gone() -> None:
    stopping = observed(resource(STOPPED), pods=(pod(deleting=NOW),))
    assert ready(stopping) == ("False", "Stopping")
    assert ready(observed(resource(STOPPED))) == ("False", "Stopped")
    assert decided(observed(resource(STOPPED))).apply == ()


def test_paused_keeps_a_driver_that_gets_the_new_spec() -> None:
    found = decided(observed(resource({"state": "Paused"}))).apply
    assert "Deployment" in {d["kind"] for d in found}
    manifest = yaml.safe_load(next(d for d in found if d["kind"] == "ConfigMap")["data"]["sink.yaml"])
    assert manifest["spec"]["state"] == "Paused"
    status = status_of(running({"state": "Paused"}, report=report("Paused")))
    assert (status["phase"], named(status, "Ready")) == ("Paused", ("True", "Paused"))


def test_a_restart_waits_for_the_former_driver_to_shut_down() -> None:
    ending = pod(deleting=NOW + timedelta(seconds=20))
    seen = observed(resource(), pods=(ending,))
    assert "Deployment" not in {d["kind"] for d in decided(seen).apply}
    assert ready(seen) == ("False", "WaitingForFormerDriver")
    assert decided(seen).requeue_after is not None


def test_a_pod_on_a_lost_node_is_not_waited_for() -> None:
    seen = observed(resource(), pods=(pod(deleting=NOW - timedelta(seconds=31)),))
    assert "Deployment" in {d["kind"] for d in decided(seen).apply}


ONCE = {"run": "Once"}
HOURLY = {"run": "Scheduled", "schedule": "0 * * * *"}
MISTAKE = {"flush": {"interval": 5}}
BAD_POD = {"waiting": "CrashLoopBackOff", "last_exit": ContainerExit(1), "ready": False}
ENDED = {"phase": "Failed", "ready": False, "ended": ContainerExit(2, "Error", "boom")}


def held(spec: dict[str, Any], result: str = "", **fields: Any) -> Observation:
    """A sink of this spec that has all it needs, its Job as far as the result says."""
    sink = resource(spec)
    some = tuple(ended(c, result) if c.kind == "Job" and result else c for c in children(sink))
    return observed(sink, children=some, pods=(pod(sink, **fields),))


def in_mid_run(result: str = "") -> Observation:
    sink = resource(HOURLY)
    fields = ENDED if result else {}
    runs = (run_of(sink, 1, result),)
    return observed(sink, children=(*children(sink), *runs), pods=(pod(sink, job="orders-s3sink-1", **fields),))


BEFORE = {
    "nothing": ({}, observed()),
    "a driver that is well": ({}, running()),
    "a driver that crashes": ({}, held({}, **BAD_POD)),
    "a driver without an image": ({}, held({}, waiting="ImagePullBackOff", ready=False)),
    "a driver that is paused": ({}, running({"state": "Paused"})),
    "a run that goes on": (ONCE, held(ONCE)),
    "a run that is complete": (ONCE, held(ONCE, "Complete", phase="Succeeded", ready=False, ended=ContainerExit(0))),
    "a run that failed": (ONCE, held(ONCE, "Failed", **ENDED)),
    "a scheduled run that goes on": (HOURLY, in_mid_run()),
    "a scheduled run that failed": (HOURLY, in_mid_run("Failed")),
    "a scheduled sink between runs": (HOURLY, replace(in_mid_run("Complete"), pods=())),
    "another kind of run": (HOURLY, held(ONCE, "Failed", **ENDED)),
}


def at_rest(seen: Observation) -> Observation:
    """The observation once nothing is left to decide."""
    for _ in range(5):
        found = decided(seen)
        if found.delete:
            seen = replace(seen, pods=())
        seen = carried_out(seen, found)
    again = decided(seen)
    assert (again.apply, again.delete, again.status, again.events) == ((), (), None, ())
    return seen


def workloads(seen: Observation) -> list[str]:
    return [c.kind for c in seen.children if c.kind in WORKLOADS.values() and c.owner == seen.resource.uid]


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("state", ["Running", "Paused", "Stopped"])
def test_every_state_is_reached_from_every_other(before: str, state: str) -> None:
    spec, seen = BEFORE[before]
    sink = resource({**spec, "state": state}, generation=4)
    seen = at_rest(replace(seen, resource=sink))
    if state == "Stopped":
        assert workloads(seen) == []
        assert named(seen.resource.status, "Ready")[1] in {"Stopped", "Stopping"}
        return
    (kind,) = workloads(seen)
    assert kind == WORKLOADS[spec.get("run", "Continuous")]
    (found,) = (c for c in seen.children if c.kind == kind and c.owner == sink.uid)
    assert spec_hash(found.document) == hash_of(sink)
    manifest = next(c for c in seen.children if c.kind == "ConfigMap").document["data"]["sink.yaml"]
    assert yaml.safe_load(manifest)["spec"]["state"] == state
    if kind == "CronJob":
        assert found.document["spec"]["suspend"] is (state == "Paused")


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("state", ["Running", "Paused", "Stopped"])
def test_a_refused_spec_changes_nothing_unless_it_is_stopped(before: str, state: str) -> None:
    spec, seen = BEFORE[before]
    broken = at_rest(replace(seen, resource=resource({**spec, **MISTAKE, "state": state}, generation=4)))
    assert workloads(broken) == ([] if state == "Stopped" else workloads(seen))
    assert named(broken.resource.status, "Accepted") == ("False", "InvalidSpec")


@pytest.mark.parametrize("result", ["Complete", "Failed"])
def test_an_ended_run_runs_again_after_a_stop(result: str) -> None:
    seen = at_rest(held(ONCE, result, **ENDED))
    figures = {"lastTime": "2026-11-16T11:59:00Z", "totalRecords": 5}
    status = {**seen.resource.status, "flush": figures}
    seen = replace(seen, resource=replace(seen.resource, status=status))
    stopped = at_rest(replace(seen, resource=replace(resource({**ONCE, **STOPPED}, generation=4), status=status)))
    assert (workloads(stopped), stopped.resource.status["phase"]) == ([], "Stopped")
    assert stopped.resource.status["flush"] == figures
    again = replace(resource({**ONCE, "state": "Running"}, generation=5), status=stopped.resource.status)
    found = decided(replace(stopped, resource=again))
    assert "Job" in {d["kind"] for d in found.apply}
    assert found.status is not None
    assert named(found.status, "Ready") == ("False", "Creating")
    assert found.status["flush"]["totalRecords"] == 5


def test_a_completed_run_is_not_repeated_by_itself() -> None:
    seen = at_rest(held(ONCE, "Complete", phase="Succeeded", ready=False, ended=ContainerExit(0)))
    for later in (seen, replace(seen, pods=()), replace(seen, now=NOW + timedelta(days=30))):
        assert (decided(later).apply, decided(later).delete) == ((), ())
    newer = replace(SETTINGS, image="registry.example/s3sink:2", grace=5)
    assert decided(seen, newer).apply == ()
