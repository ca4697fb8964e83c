"""A spec that is refused is never green, whatever goes on with the spec before it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from prometheus_client import CollectorRegistry

from s3sink_operator.metrics import Metrics
from s3sink_operator.model import EXECUTOR, Child, Exit, Observed, Pod, Resource
from tests.operator.facts import (
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
from tests.operator.test_any_facts import facts as any_facts

MISTAKE: dict[str, Any] = {"flush": {"interval": 5}}
CAUSE = "spec.flush.interval: must be a duration with its unit, such as 15m, got 5"
ONCE = {"run": "Once"}
HOURLY = {"run": "Scheduled", "schedule": "0 * * * *"}
SILENT = {"report": report(age=300), "report_problem": "timed out"}


def refused(facts: Observed, spec: dict[str, Any] | None = None, generation: int = 4) -> Observed:
    """The same, after a change that is refused."""
    known = facts.resource
    sink = resource({**(spec or {}), **MISTAKE}, generation=generation, status=known.status)
    return replace(facts, resource=sink)


def well() -> Observed:
    """Running, and its status says so."""
    return carried_out(running(), decided(running()))


def test_a_refused_change_of_a_running_sink_is_not_ready_and_says_why() -> None:
    status = status_of(refused(running()))
    assert (status["phase"], named(status, "Ready")) == ("Degraded", ("False", "SpecRefused"))
    assert message(status, "Ready") == f"{CAUSE}; the driver goes on with the spec of generation 3"
    assert named(status, "Accepted") == ("False", "InvalidSpec")
    assert status["observedGeneration"] == 4
    assert {c["type"]: c["observedGeneration"] for c in status["conditions"]} == {
        **dict.fromkeys(("Accepted", "Ready"), 4),
        **dict.fromkeys(("LastFlushSucceeded", "ExactlyOnce", "CaughtUp"), 3),
    }


def test_a_pattern_that_is_no_regular_expression_is_not_ready() -> None:
    facts = running()
    source = {"bootstrapServers": "kafka:9092", "topicPattern": "ord(ers"}
    sink = replace(facts.resource, spec={**facts.resource.spec, "source": source}, generation=4)
    status = status_of(replace(facts, resource=sink))
    assert named(status, "Ready") == ("False", "SpecRefused")
    assert message(status, "Ready").startswith("spec.source.topicPattern: ")


def test_the_driver_before_it_is_left_alone_and_its_figures_go_on() -> None:
    facts = refused(well())
    found = decided(facts)
    assert (found.apply, found.delete, found.rolls) == ((), (), False)
    at = NOW + timedelta(minutes=2)
    said = report(lag={"records": 9}, flush={"totalRecords": 77}, retry={"attempts": 2})
    later = replace(carried_out(facts, found), now=at, report=replace(said, heard=at, changed=at))
    status = decided(later).status
    assert status is not None
    figures = (status["lag"]["records"], status["flush"]["totalRecords"], status["retry"]["attempts"])
    assert figures == (9, 77, 2)
    assert named(status, "Ready") == ("False", "SpecRefused")
    assert named(status, "CaughtUp") == ("True", "Level")


def test_a_first_spec_that_is_refused_has_failed_and_nothing_runs() -> None:
    status = status_of(refused(observed(), generation=1))
    assert (status["phase"], named(status, "Ready")) == ("Failed", ("False", "SpecRefused"))
    assert message(status, "Ready") == f"{CAUSE}; nothing runs"


def test_a_driver_that_is_going_does_not_count_as_going_on() -> None:
    sink = resource()
    going = tuple(replace(child, deleting=True) for child in children(sink))
    for held in ((), going):
        status = status_of(refused(observed(sink, children=held, pods=(pod(deleting=NOW),), report=report())))
        assert status["phase"] == "Failed"
        assert message(status, "Ready").endswith("nothing runs")


@pytest.mark.parametrize(
    ("facts", "phase", "said"),
    [
        (running(**SILENT), "Degraded", "(NoReport: pod orders-s3sink-abc does not report: timed out)"),
        (running(report=report("Degraded")), "Degraded", "(Degraded: the driver is Degraded)"),
        (running(report=report("Failed")), "Failed", "(Failed: the driver is Failed)"),
        (running(pods=(), report=None), "Degraded", "(Creating: the driver's pod is not there yet)"),
        (
            running(pods=(pod(ready=False, waiting="CrashLoopBackOff", last_exit=Exit(2)),), report=None),
            "Failed",
            "(CrashLoopBackOff: pod orders-s3sink-abc ends again and again: it ended with code 2)",
        ),
    ],
)
def test_trouble_of_the_driver_before_it_is_said_beside_the_cause(facts: Observed, phase: str, said: str) -> None:
    status = status_of(refused(facts))
    assert (status["phase"], named(status, "Ready")) == (phase, ("False", "SpecRefused"))
    assert message(status, "Ready") == f"{CAUSE}; the driver keeps the spec of generation 3 {said}"


def test_mended_it_is_ready_by_a_report_of_the_new_driver_and_not_before() -> None:
    facts = carried_out(refused(well()), decided(refused(well())))
    mended = resource({"flush": {"records": 7}}, generation=5, status=facts.resource.status)
    facts = replace(facts, resource=mended)
    found = decided(facts)
    assert found.status is not None
    assert named(found.status, "Accepted") == ("True", "Valid")
    assert named(found.status, "Ready") == ("False", "Updating")
    facts = carried_out(facts, found)
    fresh = replace(report(generation=5), pod="new")
    facts = replace(facts, pods=(pod(mended, name="new"),))
    starting = decided(facts).status
    assert starting is not None
    assert named(starting, "Ready")[0] == "False"
    served = decided(replace(facts, report=fresh)).status
    assert served is not None
    assert (served["phase"], named(served, "Ready")) == ("Running", ("True", "Running"))


def events(facts: Observed) -> list[tuple[str, str]]:
    return [(event.type, event.reason) for event in decided(facts).events]


def test_each_refused_generation_is_one_event() -> None:
    first = refused(well())
    assert events(first) == [("Warning", "SpecRefused")]
    (event,) = decided(first).events
    assert event.message.startswith(CAUSE)
    seen = carried_out(first, decided(first))
    for minutes in (0, 1, 60):
        at = NOW + timedelta(minutes=minutes)
        moved = report(lag={"records": minutes})
        again = replace(seen, now=at, report=replace(moved, heard=at, changed=at))
        assert events(again) == []
        seen = carried_out(again, decided(again))
    second = refused(seen, generation=5)
    assert events(second) == [("Warning", "SpecRefused")]
    seen = carried_out(second, decided(second))
    mended = replace(seen, resource=replace(resource(generation=6), status=seen.resource.status))
    assert ("Normal", "Accepted") in events(mended)


def test_stopped_wins_over_the_refusal_and_its_mistake_still_shows() -> None:
    facts = refused(well(), {"state": "Stopped"})
    found = decided(facts)
    assert [child.kind for child in found.delete] == ["Deployment"]
    assert found.status is not None
    assert (found.status["phase"], named(found.status, "Ready")) == ("Stopped", ("False", "Stopping"))
    assert named(found.status, "Accepted") == ("False", "InvalidSpec")
    assert ("Warning", "InvalidSpec") in events(facts)


def test_a_pause_within_a_refused_spec_has_no_effect_and_says_so() -> None:
    facts = refused(running(), {"state": "Paused"})
    assert (decided(facts).apply, decided(facts).delete) == ((), ())
    status = status_of(facts)
    assert (status["phase"], named(status, "Ready")) == ("Degraded", ("False", "SpecRefused"))
    assert message(status, "Ready").endswith("spec.state: Paused waits for a spec that is valid, Stopped would not")


@pytest.mark.parametrize(("asked", "phase"), [("Paused", "Paused"), ("Running", "Degraded")])
def test_a_sink_that_is_paused_and_shall_be_stays_paused(asked: str, phase: str) -> None:
    paused = running({"state": "Paused"}, report=report("Paused"))
    status = status_of(refused(paused, {"state": asked}))
    assert (status["phase"], named(status, "Ready")) == (phase, ("False", "SpecRefused"))
    assert message(status, "Ready") == f"{CAUSE}; the driver goes on with the spec of generation 3"


def once(result: str, **fields: Any) -> Observed:
    sink = resource(ONCE)
    made = tuple(ended(c, result) if c.kind == "Job" and result else c for c in children(sink))
    return observed(sink, children=made, **fields)


def test_a_complete_run_keeps_its_figures_and_is_not_taken_for_the_one_asked_for() -> None:
    last = Exit(0, "Completed", json.dumps(dict(report("Completed").document)))
    before = once("Complete", pods=(pod(resource(ONCE), phase="Succeeded", ready=False, ended=last),))
    before = carried_out(before, decided(before))
    for facts in (refused(before, ONCE), refused(replace(before, pods=()), ONCE)):
        status = decided(facts).status
        assert status is not None
        assert (status["phase"], named(status, "Ready")) == ("Degraded", ("False", "SpecRefused"))
        assert message(status, "Ready") == f"{CAUSE}; the run with the spec of generation 3 is complete"
        assert (status["lag"]["records"], named(status, "CaughtUp")) == (0, ("True", "Level"))


def test_a_failed_run_is_not_said_twice_however_often_it_is_looked_at() -> None:
    facts = refused(once("Failed"), ONCE)
    for _ in range(3):
        facts = carried_out(facts, decided(facts))
    said = message(facts.resource.status, "Ready")
    assert said.count(CAUSE) == 1
    assert said.endswith("(DriverFailed: the run failed, and its pod is gone)")
    assert decided(facts).status is None


def hourly(*runs: Child, sink: Resource | None = None, **fields: Any) -> Observed:
    known = sink or resource(HOURLY)
    return observed(known, children=(*children(known), *runs), **fields)


def test_runs_of_a_schedule_go_on_and_are_not_green() -> None:
    done = run_of(resource(HOURLY), 1, "Complete")
    status = status_of(refused(hourly(done), HOURLY))
    assert (status["phase"], named(status, "Ready")) == ("Degraded", ("False", "SpecRefused"))
    assert message(status, "Ready") == f"{CAUSE}; runs go on with the spec of generation 3"
    suspended = hourly(sink=resource({**HOURLY, "state": "Paused"}))
    said = message(status_of(refused(suspended, HOURLY)), "Ready")
    assert said == f"{CAUSE}; the spec of generation 3 is paused: no run starts"


def test_a_spec_that_another_operator_accepted_is_told_from_an_earlier_one() -> None:
    said = message(status_of(refused(running(), generation=3)), "Ready")
    assert said == f"{CAUSE}; the driver goes on with this spec, which another version of the operator accepted"


def test_a_config_map_that_names_no_generation_is_no_obstacle() -> None:
    facts = running(pods=(), report=None)
    for content in ({"data": {"sink.yaml": "mine"}}, {"data": None}, {}):
        held = tuple(
            replace(c, document={"metadata": c.document["metadata"], **content}) if c.kind == "ConfigMap" else c
            for c in facts.children
        )
        assert "the driver keeps the spec before it" in message(
            status_of(refused(replace(facts, children=held))), "Ready"
        )


def test_a_long_list_of_mistakes_leaves_room_for_what_goes_on() -> None:
    wrong = {f"spark.kubernetes.x{number}.{'y' * 50}": "1" for number in range(200)}
    facts = running()
    said = message(status_of(replace(facts, resource=resource({"spark": {"conf": wrong}}, generation=4))), "Ready")
    assert len(said) <= 4096
    assert said.endswith("the driver goes on with the spec of generation 3")


def test_executors_that_go_on_are_still_counted() -> None:
    cluster = {"spark": {"mode": "Cluster"}}
    facts = running(cluster)
    facts = replace(facts, pods=(*facts.pods, Pod("exec-1", EXECUTOR, "Running", ready=True)))
    known = carried_out(facts, decided(facts))
    status = decided(refused(known, cluster)).status
    assert status is not None
    assert status["executors"] == known.resource.status["executors"]


@pytest.mark.parametrize(("facts", "value"), [(running(), 0), (refused(running()), 1), (refused(observed()), 1)])
def test_a_gauge_shows_that_a_spec_is_refused(facts: Observed, value: int) -> None:
    registry = CollectorRegistry()
    Metrics(lambda: [(facts.resource.key, status_of(facts))], registry)
    labels = {"namespace": "shop", "sink": "orders"}
    assert registry.get_sample_value("s3sink_operator_sink_spec_refused", labels) == value


@given(any_facts())
@settings(max_examples=300, deadline=None)
def test_whatever_is_seen_a_refused_spec_is_never_ready(seen: Observed) -> None:
    sink = replace(seen.resource, spec={**seen.resource.spec, **MISTAKE})
    facts = replace(seen, resource=sink)
    status, found = status_of(facts), decided(facts)
    assert named(status, "Accepted") == ("False", "InvalidSpec")
    stopped = sink.spec.get("state") == "Stopped"
    assert named(status, "Ready")[0] == "False"
    assert (named(status, "Ready")[1] == "SpecRefused") is not stopped
    assert status["phase"] in ({"Stopped"} if stopped else {"Degraded", "Failed", "Paused"})
    assert stopped or (found.apply, found.delete) == ((), ())
