"""A refused spec is never Ready, whatever still runs with the previous one."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from prometheus_client import CollectorRegistry

from s3sink_api.labels import EXECUTOR
from s3sink_operator.metrics import Metrics
from s3sink_operator.values.objects import Child, ContainerExit, Pod, SinkResource
from s3sink_operator.values.observation import Observation
from tests.operator.samples import (
    NOW,
    carried_out,
    children,
    decided,
    ended,
    message,
    named,
    observed,
    pod,
    report,
    resource,
    run_of,
    running,
    status_of,
)
from tests.operator.test_any_observation import observations

MISTAKE: dict[str, Any] = {"flush": {"interval": 5}}
CAUSE = "spec.flush.interval: must be a duration with its unit, such as 15m, got 5"
ONCE = {"run": "Once"}
HOURLY = {"run": "Scheduled", "schedule": "0 * * * *"}
SILENT = {"report": report(age=300), "report_problem": "timed out"}


def refused(seen: Observation, spec: dict[str, Any] | None = None, generation: int = 4) -> Observation:
    """The same sink after a refused change."""
    known = seen.resource
    sink = resource({**(spec or {}), **MISTAKE}, generation=generation, status=known.status)
    return replace(seen, resource=sink)


def well() -> Observation:
    """Running, and its status says so."""
    return carried_out(running(), decided(running()))


def test_a_deep_expression_is_a_mistake_and_no_error_of_the_operator() -> None:
    status = status_of(observed(resource({"transform": {"where": "a + " * 900 + "a > 1"}})))
    assert named(status, "Accepted") == ("False", "InvalidSpec")
    assert message(status, "Accepted").startswith("spec.transform.where: is nested too deeply at position 1: ")


def test_a_refused_change_of_a_running_sink_is_not_ready_and_says_why() -> None:
    status = status_of(refused(running()))
    assert (status["phase"], named(status, "Ready")) == ("Degraded", ("False", "SpecRefused"))
    assert message(status, "Ready") == f"{CAUSE}; the driver keeps running with the spec of generation 3"
    assert named(status, "Accepted") == ("False", "InvalidSpec")
    assert status["observedGeneration"] == 4
    assert {c["type"]: c["observedGeneration"] for c in status["conditions"]} == {
        **dict.fromkeys(("Accepted", "Ready"), 4),
        **dict.fromkeys(("LastFlushSucceeded", "ExactlyOnce", "CaughtUp"), 3),
    }


def test_a_pattern_that_is_no_regular_expression_is_not_ready() -> None:
    seen = running()
    source = {"bootstrapServers": "kafka:9092", "topicPattern": "ord(ers"}
    sink = replace(seen.resource, spec={**seen.resource.spec, "source": source}, generation=4)
    status = status_of(replace(seen, resource=sink))
    assert named(status, "Ready") == ("False", "SpecRefused")
    assert message(status, "Ready").startswith("spec.source.topicPattern: ")


def test_the_former_driver_runs_on_and_its_figures_are_updated() -> None:
    seen = refused(well())
    found = decided(seen)
    assert (found.apply, found.delete, found.rollout) == ((), (), False)
    at = NOW + timedelta(minutes=2)
    said = report(lag={"records": 9}, flush={"totalRecords": 77}, retry={"attempts": 2})
    later = replace(carried_out(seen, found), now=at, report=replace(said, received=at, changed=at))
    status = decided(later).status
    assert status is not None
    figures = (status["lag"]["records"], status["flush"]["totalRecords"], status["retry"]["attempts"])
    assert figures == (9, 77, 2)
    assert named(status, "Ready") == ("False", "SpecRefused")
    assert named(status, "CaughtUp") == ("True", "Level")


def test_a_refused_first_spec_is_failed_and_starts_nothing() -> None:
    status = status_of(refused(observed(), generation=1))
    assert (status["phase"], named(status, "Ready")) == ("Failed", ("False", "SpecRefused"))
    assert message(status, "Ready") == f"{CAUSE}; no driver runs"


def test_a_driver_that_is_being_deleted_does_not_count_as_running() -> None:
    sink = resource()
    going = tuple(replace(child, deleting=True) for child in children(sink))
    for held in ((), going):
        status = status_of(refused(observed(sink, children=held, pods=(pod(deleting=NOW),), report=report())))
        assert status["phase"] == "Failed"
        assert message(status, "Ready").endswith("no driver runs")


@pytest.mark.parametrize(
    ("seen", "phase", "said"),
    [
        (running(**SILENT), "Degraded", "(NoReport: no report from pod orders-s3sink-abc: timed out)"),
        (running(report=report("Degraded")), "Degraded", "(Degraded: the driver is Degraded)"),
        (running(report=report("Failed")), "Failed", "(Failed: the driver is Failed)"),
        (running(pods=(), report=None), "Degraded", "(Creating: waiting for Kubernetes to create the driver's pod)"),
        (
            running(pods=(pod(ready=False, waiting="CrashLoopBackOff", last_exit=ContainerExit(2)),), report=None),
            "Failed",
            "(CrashLoopBackOff: pod orders-s3sink-abc keeps crashing: exit code 2)",
        ),
    ],
)
def test_problems_of_the_former_driver_follow_the_mistake(seen: Observation, phase: str, said: str) -> None:
    status = status_of(refused(seen))
    assert (status["phase"], named(status, "Ready")) == (phase, ("False", "SpecRefused"))
    assert message(status, "Ready") == f"{CAUSE}; the driver stays on the spec of generation 3, not ready {said}"


def test_after_the_correction_ready_needs_a_report_of_the_new_driver() -> None:
    seen = carried_out(refused(well()), decided(refused(well())))
    mended = resource({"flush": {"records": 7}}, generation=5, status=seen.resource.status)
    seen = replace(seen, resource=mended)
    found = decided(seen)
    assert found.status is not None
    assert named(found.status, "Accepted") == ("True", "Valid")
    assert named(found.status, "Ready") == ("False", "Updating")
    seen = carried_out(seen, found)
    fresh = replace(report(generation=5), pod="new")
    seen = replace(seen, pods=(pod(mended, name="new"),))
    starting = decided(seen).status
    assert starting is not None
    assert named(starting, "Ready")[0] == "False"
    served = decided(replace(seen, report=fresh)).status
    assert served is not None
    assert (served["phase"], named(served, "Ready")) == ("Running", ("True", "Running"))


def events(seen: Observation) -> list[tuple[str, str]]:
    return [(event.type, event.reason) for event in decided(seen).events]


def test_each_refused_generation_is_one_event() -> None:
    first = refused(well())
    assert events(first) == [("Warning", "SpecRefused")]
    (event,) = decided(first).events
    assert event.message.startswith(CAUSE)
    seen = carried_out(first, decided(first))
    for minutes in (0, 1, 60):
        at = NOW + timedelta(minutes=minutes)
        moved = report(lag={"records": minutes})
        again = replace(seen, now=at, report=replace(moved, received=at, changed=at))
        assert events(again) == []
        seen = carried_out(again, decided(again))
    second = refused(seen, generation=5)
    assert events(second) == [("Warning", "SpecRefused")]
    seen = carried_out(second, decided(second))
    mended = replace(seen, resource=replace(resource(generation=6), status=seen.resource.status))
    assert ("Normal", "Accepted") in events(mended)


def test_stopped_takes_effect_and_the_mistake_still_shows() -> None:
    seen = refused(well(), {"state": "Stopped"})
    found = decided(seen)
    assert [child.kind for child in found.delete] == ["Deployment"]
    assert found.status is not None
    assert (found.status["phase"], named(found.status, "Ready")) == ("Stopped", ("False", "Stopping"))
    assert named(found.status, "Accepted") == ("False", "InvalidSpec")
    assert ("Warning", "InvalidSpec") in events(seen)


def test_paused_in_a_refused_spec_has_no_effect_and_says_so() -> None:
    seen = refused(running(), {"state": "Paused"})
    assert (decided(seen).apply, decided(seen).delete) == ((), ())
    status = status_of(seen)
    assert (status["phase"], named(status, "Ready")) == ("Degraded", ("False", "SpecRefused"))
    assert message(status, "Ready").endswith("spec.state: Paused takes effect once the spec is valid, Stopped at once")


@pytest.mark.parametrize(("asked", "phase"), [("Paused", "Paused"), ("Running", "Degraded")])
def test_a_paused_sink_stays_paused_if_the_refused_spec_is_paused_too(asked: str, phase: str) -> None:
    paused = running({"state": "Paused"}, report=report("Paused"))
    status = status_of(refused(paused, {"state": asked}))
    assert (status["phase"], named(status, "Ready")) == (phase, ("False", "SpecRefused"))
    assert message(status, "Ready") == f"{CAUSE}; the driver keeps running with the spec of generation 3"


def once(result: str, **fields: Any) -> Observation:
    sink = resource(ONCE)
    made = tuple(ended(c, result) if c.kind == "Job" and result else c for c in children(sink))
    return observed(sink, children=made, **fields)


def test_a_completed_run_keeps_its_figures_and_is_not_ready_for_the_new_spec() -> None:
    last = ContainerExit(0, "Completed", json.dumps(dict(report("Completed").document)))
    before = once("Complete", pods=(pod(resource(ONCE), phase="Succeeded", ready=False, ended=last),))
    before = carried_out(before, decided(before))
    for seen in (refused(before, ONCE), refused(replace(before, pods=()), ONCE)):
        status = decided(seen).status
        assert status is not None
        assert (status["phase"], named(status, "Ready")) == ("Degraded", ("False", "SpecRefused"))
        assert message(status, "Ready") == f"{CAUSE}; the run with the spec of generation 3 is complete"
        assert (status["lag"]["records"], named(status, "CaughtUp")) == (0, ("True", "Level"))


def test_a_failed_run_does_not_repeat_itself_in_the_message() -> None:
    seen = refused(once("Failed"), ONCE)
    for _ in range(3):
        seen = carried_out(seen, decided(seen))
    said = message(seen.resource.status, "Ready")
    assert said.count(CAUSE) == 1
    assert said.endswith("(DriverFailed: the run failed, and its pod was removed)")
    assert decided(seen).status is None


def hourly(*runs: Child, sink: SinkResource | None = None, **fields: Any) -> Observation:
    known = sink or resource(HOURLY)
    return observed(known, children=(*children(known), *runs), **fields)


def test_scheduled_runs_continue_and_are_not_ready() -> None:
    done = run_of(resource(HOURLY), 1, "Complete")
    status = status_of(refused(hourly(done), HOURLY))
    assert (status["phase"], named(status, "Ready")) == ("Degraded", ("False", "SpecRefused"))
    assert message(status, "Ready") == f"{CAUSE}; runs continue with the spec of generation 3"
    suspended = hourly(sink=resource({**HOURLY, "state": "Paused"}))
    said = message(status_of(refused(suspended, HOURLY)), "Ready")
    assert said == f"{CAUSE}; the spec of generation 3 is paused; no run starts"


def test_a_spec_accepted_by_another_operator_version_is_named_as_such() -> None:
    said = message(status_of(refused(running(), generation=3)), "Ready")
    assert said == f"{CAUSE}; the driver keeps running with this spec, which another version of the operator accepted"


def test_a_config_map_without_a_generation_is_tolerated() -> None:
    seen = running(pods=(), report=None)
    for content in ({"data": {"sink.yaml": "mine"}}, {"data": None}, {}):
        held = tuple(
            replace(c, document={"metadata": c.document["metadata"], **content}) if c.kind == "ConfigMap" else c
            for c in seen.children
        )
        assert "the driver stays on the previous spec" in message(
            status_of(refused(replace(seen, children=held))), "Ready"
        )


def test_a_long_list_of_mistakes_leaves_room_for_what_still_runs() -> None:
    wrong = {f"spark.kubernetes.x{number}.{'y' * 50}": "1" for number in range(200)}
    seen = running()
    said = message(status_of(replace(seen, resource=resource({"spark": {"conf": wrong}}, generation=4))), "Ready")
    assert len(said) <= 4096
    assert said.endswith("the driver keeps running with the spec of generation 3")


def test_running_executors_are_still_counted() -> None:
    cluster = {"spark": {"mode": "Cluster"}}
    seen = running(cluster)
    seen = replace(seen, pods=(*seen.pods, Pod("exec-1", EXECUTOR, "Running", ready=True)))
    known = carried_out(seen, decided(seen))
    status = decided(refused(known, cluster)).status
    assert status is not None
    assert status["executors"] == known.resource.status["executors"]


@pytest.mark.parametrize(("seen", "value"), [(running(), 0), (refused(running()), 1), (refused(observed()), 1)])
def test_a_gauge_shows_that_a_spec_is_refused(seen: Observation, value: int) -> None:
    registry = CollectorRegistry()
    Metrics(lambda: [(seen.resource.key, status_of(seen))], registry)
    labels = {"namespace": "shop", "sink": "orders"}
    assert registry.get_sample_value("s3sink_operator_sink_spec_refused", labels) == value


@given(observations())
@settings(max_examples=300, deadline=None)
def test_a_refused_spec_is_never_ready_whatever_is_observed(seen: Observation) -> None:
    sink = replace(seen.resource, spec={**seen.resource.spec, **MISTAKE})
    seen = replace(seen, resource=sink)
    status, found = status_of(seen), decided(seen)
    assert named(status, "Accepted") == ("False", "InvalidSpec")
    stopped = sink.spec.get("state") == "Stopped"
    assert named(status, "Ready")[0] == "False"
    assert (named(status, "Ready")[1] == "SpecRefused") is not stopped
    assert status["phase"] in ({"Stopped"} if stopped else {"Degraded", "Failed", "Paused"})
    assert stopped or (found.apply, found.delete) == ((), ())
