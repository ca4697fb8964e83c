"""A new operator restarts a few drivers at a time; a new spec restarts its own driver at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from s3sink_operator.values.objects import ContainerExit
from s3sink_operator.values.observation import Observation
from tests.operator.samples import NOW, SETTINGS, decided, merged, observed, pod, resource, running, status_of

NEWER = replace(SETTINGS, image="registry.example/s3sink:2")
CLUSTER = {"spark": {"mode": "Cluster"}}


@pytest.mark.parametrize("spec", [{}, CLUSTER])
def test_a_new_operator_version_restarts_a_healthy_driver(spec: dict[str, Any]) -> None:
    found = decided(running(spec), NEWER)
    assert found.rollout
    assert "Deployment" in {d["kind"] for d in found.apply}
    assert not decided(running(spec)).rollout


@pytest.mark.parametrize("spec", [{}, CLUSTER])
def test_a_held_driver_is_left_alone(spec: dict[str, Any]) -> None:
    seen = running(spec)
    found = decided(seen, NEWER, hold_rollout=True)
    assert (found.apply, found.delete, found.rollout) == ((), (), False)
    assert found.requeue_after is not None
    assert decided(seen, SETTINGS, hold_rollout=True).requeue_after is None
    assert found.status == status_of(seen)


def test_missing_objects_are_created_while_the_driver_is_held() -> None:
    seen = running(CLUSTER)
    some = tuple(c for c in seen.children if c.kind != "Role")
    found = decided(replace(seen, children=some), NEWER, hold_rollout=True)
    assert [d["kind"] for d in found.apply] == ["Role"]


def test_a_new_default_in_the_definition_is_a_rollout_too() -> None:
    seen = running()
    richer = replace(seen.resource, spec=merged(seen.resource.spec, {"errors": {"maxPerFlush": 1000}}))
    found = decided(replace(seen, resource=richer))
    assert found.rollout
    held = decided(replace(seen, resource=richer), hold_rollout=True)
    # A driver that is held must not get a manifest of the new operator.
    assert held.apply == ()


def changed(seen: Observation) -> Observation:
    return replace(seen, resource=resource({"flush": {"records": 7}}, generation=4))


def without_pod(seen: Observation) -> Observation:
    return replace(seen, pods=())


def crashed(seen: Observation) -> Observation:
    return replace(seen, pods=(pod(ready=False, waiting="CrashLoopBackOff", last_exit=ContainerExit(1)),))


def ending(seen: Observation) -> Observation:
    return replace(seen, pods=(pod(deleting=NOW),))


def without_deployment(seen: Observation) -> Observation:
    return replace(seen, children=tuple(c for c in seen.children if c.kind != "Deployment"))


def scaled(seen: Observation) -> Observation:
    some = tuple(
        replace(c, document=merged(c.document, {"spec": {"replicas": 2}})) if c.kind == "Deployment" else c
        for c in seen.children
    )
    return replace(seen, children=some)


@pytest.mark.parametrize("change", [changed, without_pod, crashed, ending, without_deployment])
def test_changed_sinks_and_broken_drivers_do_not_wait(change: Any) -> None:
    seen = change(running())
    for hold in (False, True):
        found = decided(seen, NEWER, hold_rollout=hold)
        assert not found.rollout
        assert "Deployment" in {d["kind"] for d in found.apply}


def test_drift_that_does_not_touch_pods_is_corrected_at_once() -> None:
    found = decided(scaled(running()), hold_rollout=True)
    assert [d["kind"] for d in found.apply] == ["Deployment"]
    assert not found.rollout


def with_status(seen: Observation, generation: int, **status: int) -> Observation:
    some = tuple(
        replace(c, document=merged(c.document, {"metadata": {"generation": generation}, "status": status}))
        if c.kind == "Deployment"
        else c
        for c in seen.children
    )
    return replace(seen, children=some)


WELL = {"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1}


@pytest.mark.parametrize(
    ("status", "settled"),
    [
        (WELL, True),
        # The controller has not seen the new template yet; the old pod is there; the new one is not ready.
        (WELL | {"observedGeneration": 1}, False),
        (WELL | {"updatedReplicas": 0}, False),
        (WELL | {"readyReplicas": 0}, False),
        ({}, False),
    ],
)
def test_a_rollout_ends_only_when_the_new_driver_is_ready(status: dict[str, int], settled: bool) -> None:
    seen = with_status(running(), 2, **status)
    assert decided(seen).settled is settled
    # The old driver reports Running all the time.
    assert status_of(seen)["phase"] == "Running"
    assert not decided(seen, NEWER).settled


def test_a_sink_without_a_deployment_does_not_hold_up_the_rollout() -> None:
    for spec in ({"state": "Stopped"}, {"run": "Once"}):
        seen = running(spec) if "run" in spec else observed(resource(spec))
        assert decided(seen).settled


def test_a_job_is_never_restarted_by_a_rollout() -> None:
    once = running({"run": "Once"})
    found = decided(once, NEWER)
    assert (found.apply, found.rollout) == ((), False)
