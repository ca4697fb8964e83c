"""A new operator restarts drivers a few at a time; a new spec restarts its own at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from s3sink_operator.model import Exit, Observed
from tests.operator.facts import NOW, SETTINGS, decided, merged, observed, pod, resource, running, status_of

NEWER = replace(SETTINGS, image="registry.example/s3sink:2")
CLUSTER = {"spark": {"mode": "Cluster"}}


@pytest.mark.parametrize("spec", [{}, CLUSTER])
def test_a_new_version_rolls_a_driver_that_is_well(spec: dict[str, Any]) -> None:
    found = decided(running(spec), NEWER)
    assert found.rolls
    assert "Deployment" in {d["kind"] for d in found.apply}
    assert not decided(running(spec)).rolls


@pytest.mark.parametrize("spec", [{}, CLUSTER])
def test_until_its_turn_has_come_the_driver_is_left_alone(spec: dict[str, Any]) -> None:
    facts = running(spec)
    found = decided(facts, NEWER, hold_rolls=True)
    assert (found.apply, found.delete, found.rolls) == ((), (), False)
    assert found.look_again is not None
    assert decided(facts, SETTINGS, hold_rolls=True).look_again is None
    assert found.status == status_of(facts)


def test_what_else_is_missing_is_made_while_the_driver_waits() -> None:
    facts = running(CLUSTER)
    some = tuple(c for c in facts.children if c.kind != "Role")
    found = decided(replace(facts, children=some), NEWER, hold_rolls=True)
    assert [d["kind"] for d in found.apply] == ["Role"]


def test_a_default_that_a_new_definition_brings_is_a_new_version_too() -> None:
    facts = running()
    richer = replace(facts.resource, spec=merged(facts.resource.spec, {"errors": {"maxPerFlush": 1000}}))
    found = decided(replace(facts, resource=richer))
    assert found.rolls
    held = decided(replace(facts, resource=richer), hold_rolls=True)
    # A driver that waits must not read the words of an operator it does not know.
    assert held.apply == ()


def changed(facts: Observed) -> Observed:
    return replace(facts, resource=resource({"flush": {"records": 7}}, generation=4))


def without_pod(facts: Observed) -> Observed:
    return replace(facts, pods=())


def crashed(facts: Observed) -> Observed:
    return replace(facts, pods=(pod(ready=False, waiting="CrashLoopBackOff", last_exit=Exit(1)),))


def ending(facts: Observed) -> Observed:
    return replace(facts, pods=(pod(deleting=NOW),))


def without_deployment(facts: Observed) -> Observed:
    return replace(facts, children=tuple(c for c in facts.children if c.kind != "Deployment"))


def scaled(facts: Observed) -> Observed:
    some = tuple(
        replace(c, document=merged(c.document, {"spec": {"replicas": 2}})) if c.kind == "Deployment" else c
        for c in facts.children
    )
    return replace(facts, children=some)


@pytest.mark.parametrize("change", [changed, without_pod, crashed, ending, without_deployment])
def test_what_is_the_sinks_own_or_broken_already_does_not_wait(change: Any) -> None:
    facts = change(running())
    for hold in (False, True):
        found = decided(facts, NEWER, hold_rolls=hold)
        assert not found.rolls
        assert "Deployment" in {d["kind"] for d in found.apply}


def test_drift_that_leaves_the_pods_alone_is_put_right_at_once() -> None:
    found = decided(scaled(running()), hold_rolls=True)
    assert [d["kind"] for d in found.apply] == ["Deployment"]
    assert not found.rolls


def with_status(facts: Observed, generation: int, **status: int) -> Observed:
    some = tuple(
        replace(c, document=merged(c.document, {"metadata": {"generation": generation}, "status": status}))
        if c.kind == "Deployment"
        else c
        for c in facts.children
    )
    return replace(facts, children=some)


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
def test_a_roll_is_over_when_the_new_driver_is_ready_and_not_while_the_old_one_is(
    status: dict[str, int], settled: bool
) -> None:
    facts = with_status(running(), 2, **status)
    assert decided(facts).settled is settled
    # The old driver reports all the time that it is well.
    assert status_of(facts)["phase"] == "Running"
    assert not decided(facts, NEWER).settled


def test_a_sink_without_a_deployment_holds_up_nobody() -> None:
    for spec in ({"state": "Stopped"}, {"run": "Once"}):
        facts = running(spec) if "run" in spec else observed(resource(spec))
        assert decided(facts).settled


def test_a_job_is_never_rolled() -> None:
    once = running({"run": "Once"})
    found = decided(once, NEWER)
    assert (found.apply, found.rolls) == ((), False)
