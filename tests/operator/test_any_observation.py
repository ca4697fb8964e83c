"""For any observation: decisions are idempotent, Stopped takes effect, children hold no secrets."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3sink_api.definition import STATUS
from s3sink_api.labels import DRIVER, EXECUTOR
from s3sink_operator.decide.children.workloads import WORKLOADS
from s3sink_operator.values.driver_report import DriverReport, InvalidReport, parse_report
from s3sink_operator.values.objects import ContainerExit, Pod
from s3sink_operator.values.observation import Observation
from s3sink_operator.values.status_schema import valid_part
from tests.operator.samples import (
    NOW,
    SETTINGS,
    carried_out,
    children,
    decided,
    hash_of,
    observed,
    report,
    resource,
    run_of,
    status_of,
)

HOURLY = resource({"run": "Scheduled", "schedule": "0 * * * *"})
SECRET = "hunter2-very-secret"

specs = st.fixed_dictionaries(
    {},
    optional={
        "state": st.sampled_from(["Running", "Paused", "Stopped"]),
        "run": st.sampled_from(["Continuous", "Once", "Scheduled"]),
        "schedule": st.just("0 * * * *"),
        "flush": st.fixed_dictionaries({"records": st.integers(-1, 9)}),
        "spark": st.fixed_dictionaries({"mode": st.sampled_from(["Local", "Cluster", "Other"])}),
    },
)
exits = st.builds(
    ContainerExit,
    code=st.integers(0, 255),
    reason=st.sampled_from(["", "Error", "OOMKilled", "Completed"]),
    message=st.sampled_from(["", "a\nb", json.dumps(dict(report("Completed").document))]),
)
pods = st.builds(
    Pod,
    name=st.sampled_from(["a", "b", "orders-s3sink-abc"]),
    role=st.sampled_from([DRIVER, EXECUTOR]),
    phase=st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown"]),
    ip=st.sampled_from(["", "10.0.0.1"]),
    created=st.sampled_from(["", "2026-11-16T11:00:00Z"]),
    ready=st.booleans(),
    deleting=st.none() | st.sampled_from([NOW - timedelta(minutes=5), NOW + timedelta(seconds=5)]),
    spec_hash=st.sampled_from(["", hash_of(resource())]),
    restarts=st.integers(0, 3),
    waiting=st.sampled_from(["", "CrashLoopBackOff", "ImagePullBackOff", "ContainerCreating"]),
    unschedulable=st.sampled_from(["", "no node"]),
    reason=st.sampled_from(["", "Evicted", "DeletionByTaintManager", "OutOfcpu"]),
    job=st.sampled_from(["", "orders-s3sink-1", "orders-s3sink-2"]),
    last_exit=st.none() | exits,
    ended=st.none() | exits,
)
reports = st.none() | st.builds(
    report,
    st.sampled_from(["Starting", "Running", "Paused", "Degraded", "Failed", "Completed"]),
    age=st.sampled_from([0.0, 30.0, 300.0]),
    generation=st.integers(1, 4),
)


@st.composite
def observations(draw: st.DrawFn) -> Observation:
    sink = resource(draw(specs), generation=draw(st.integers(3, 4)))
    held = draw(
        st.sampled_from([resource(), resource({"run": "Once"}), resource({"spark": {"mode": "Cluster"}}), HOURLY])
    )
    some = tuple(c for c in children(held) if draw(st.booleans()))
    some = tuple(replace(c, owner=draw(st.sampled_from(["sink-uid", "else"]))) for c in some)
    some = tuple(replace(c, deleting=draw(st.booleans())) for c in some)
    if draw(st.booleans()) and any(c.kind == "CronJob" for c in some):
        some += tuple(run_of(HOURLY, n, draw(st.sampled_from(["", "Complete", "Failed"]))) for n in (1, 2))
    return observed(
        sink,
        children=some,
        pods=tuple(draw(st.lists(pods, max_size=3, unique_by=lambda p: p.name))),
        report=draw(reports),
        refused=draw(st.sampled_from(["", "forbidden"])),
    )


@given(observations())
@settings(max_examples=300, deadline=None)
def test_a_carried_out_decision_leaves_nothing_to_decide(seen: Observation) -> None:
    seen = carried_out(seen, decided(seen))
    # Objects that are being deleted disappear one after the other, with their dependents.
    for _ in range(3):
        gone = {c.uid for c in seen.children if c.deleting}
        seen = replace(seen, children=tuple(c for c in seen.children if not c.deleting and c.owner not in gone))
        seen = carried_out(seen, decided(seen))
    again = decided(seen)
    assert (again.apply, again.delete, again.status, again.events) == ((), (), None, ())


@given(observations())
@settings(max_examples=200, deadline=None)
def test_stopped_always_takes_effect(seen: Observation) -> None:
    stopped = replace(seen, resource=replace(seen.resource, spec={**seen.resource.spec, "state": "Stopped"}))
    found = decided(stopped)
    assert status_of(stopped)["phase"] == "Stopped"
    assert not [d for d in found.apply if d["kind"] in WORKLOADS.values()]
    ours = {c.kind for c in seen.children if c.owner == "sink-uid" and not c.deleting}
    assert {c.kind for c in found.delete} == ours & set(WORKLOADS.values())


@given(observations())
@settings(max_examples=200, deadline=None)
def test_a_held_rollout_leaves_only_the_driver_unchanged(seen: Observation) -> None:
    newer = replace(SETTINGS, image="registry.example/s3sink:2")
    free, held = (decided(seen, newer, hold_rollout=hold) for hold in (False, True))
    assert not held.rollout
    assert (held.delete, held.status, held.events) == (free.delete, free.status, free.events)
    left_out = [d["kind"] for d in free.apply if d not in held.apply]
    if free.rollout:
        assert set(left_out) - {"ConfigMap"} == {"Deployment"}
        assert held.requeue_after is not None
        assert any(p.role == DRIVER and p.ready and p.deleting is None for p in seen.pods)
    else:
        assert not left_out


@given(observations())
@settings(max_examples=200, deadline=None)
def test_ready_is_true_only_with_a_fresh_report(seen: Observation) -> None:
    status = decided(replace(seen, resource=replace(seen.resource, status={}))).status
    assert status is not None
    ready = next(c for c in status["conditions"] if c["type"] == "Ready")
    if ready["status"] == "True":
        fresh = seen.report is not None and NOW - seen.report.received < timedelta(seconds=46)
        assert fresh or status["phase"] == "Completed"
        if status["phase"] != "Completed" and seen.resource.spec.get("run") != "Scheduled":
            assert seen.report is not None
            assert seen.report.document["observedGeneration"] == seen.resource.generation
    assert valid_part(json.loads(json.dumps(status))) == json.loads(json.dumps(status))


@given(observations())
@settings(max_examples=100, deadline=None)
def test_children_get_no_annotations_or_finalizers_of_other_tools(seen: Observation) -> None:
    sink = replace(seen.resource, annotations={"argocd.argoproj.io/tracking-id": "x", "s3sink.dev/adopt-from": "y"})
    for document in decided(replace(seen, resource=sink)).apply:
        text = json.dumps(document)
        assert "argocd" not in text
        owners = document["metadata"]["ownerReferences"]
        assert [o["uid"] for o in owners] == ["sink-uid"]
        assert "finalizers" not in document["metadata"]


def test_children_hold_names_of_secrets_never_their_content() -> None:
    # No field takes a value: what a person writes beside the name is refused, not copied.
    spec = {"destination": {"credentials": {"secretRef": {"name": "s3"}, "value": SECRET}}}
    found = decided(observed(resource(spec)))
    assert not found.apply
    assert SECRET not in json.dumps([dict(found.status or {}), [e.message for e in found.events]])


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
lies = st.fixed_dictionaries(
    {"phase": json_values | st.just("Running"), "conditions": json_values | st.just([])},
    optional={name: json_values for name in STATUS["properties"] if name not in {"phase", "conditions"}},
)


@given(lies | json_values)
@settings(max_examples=300, deadline=None)
def test_whatever_a_driver_reports_the_status_fits_its_schema(lie: Any) -> None:
    try:
        found = parse_report(json.dumps(lie))
    except InvalidReport:
        return
    sink = resource()
    pod = Pod("orders-s3sink-abc", DRIVER, "Running", "10.0.0.1", ready=True, spec_hash=hash_of(sink))
    seen = observed(sink, children=children(sink), pods=(pod,), report=DriverReport(found, NOW, pod.name))
    status = decided(seen).status
    assert status is not None
    assert valid_part(json.loads(json.dumps(status))) == json.loads(json.dumps(status))


texts = st.text(min_size=1, max_size=3).map(lambda t: t * 5000) | st.text(
    st.characters(exclude_categories=()), max_size=50
)


@st.composite
def floods(draw: st.DrawFn) -> dict[str, Any]:
    """A report of the right shape with far too much in it."""
    text = draw(texts)
    row = {"topic": text, "partition": 1, "committed": 2**62, "end": 2**62, "lag": 2**62}
    gap = {"topic": text, "partition": 1, "from": 1, "to": 2, "reason": text}
    condition = {"status": "False", "reason": draw(st.sampled_from([text, "DataLoss"])), "message": text}
    types = ["Ready", "LastFlushSucceeded", "ExactlyOnce", "CaughtUp", "OffsetsPublished", *map(str, range(20))]
    return {
        **report("Degraded").document,
        "conditions": [{**condition, "type": t, "lastTransitionTime": "2026-11-16T11:00:00Z"} for t in types],
        "offsets": [row] * 60,
        "gaps": {"count": 1, "records": 1, "recent": [gap] * 30},
        "retry": {"attempts": 1, "lastError": text},
        "flush": {"lastReason": text},
        "driver": {"epoch": 1, "pod": text},
        "reset": {"nonce": text},
        "executors": {"selector": text},
    }


@given(floods())
@settings(max_examples=60, deadline=None)
def test_whatever_a_driver_reports_the_status_stays_small_and_stable(flood: dict[str, Any]) -> None:
    found = parse_report(json.dumps(flood))
    sink = resource()
    pod = Pod("orders-s3sink-abc", DRIVER, "Running", "10.0.0.1", ready=True, spec_hash=hash_of(sink))
    end = ContainerExit(1, "Error", flood["retry"]["lastError"])
    seen = observed(sink, children=children(sink), pods=(replace(pod, last_exit=end),))
    seen = replace(seen, report=DriverReport(found, NOW, pod.name))
    decision = decided(seen)
    assert len(json.dumps(decision.status)) < 64 * 1024
    assert decision.status is not None
    # As Go stores it: an invalid character is replaced.
    stored = json.loads(json.dumps(decision.status).encode("utf-8", "replace"))
    again = decided(replace(seen, resource=replace(sink, status=stored)))
    assert (again.status, again.events) == (None, ())
    assert all(re.fullmatch("[A-Z][A-Za-z0-9]*", e.reason) for e in decision.events)


@pytest.mark.parametrize(
    "time",
    [
        *("2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:00:60Z"),
        *("2026-01-01T00:00:00", "2026-01-01", "0000-01-01T00:00:00Z", "2026-01-01T00:00:00+99:00", "now"),
    ],
)
def test_a_time_that_the_api_server_would_refuse_is_left_out(time: str) -> None:
    found = parse_report(json.dumps({**report().document, "flush": {"lastTime": time, "records": 1}}))
    assert found["flush"] == {"records": 1}


@given(st.binary(max_size=50))
def test_a_report_that_is_not_json_is_invalid(body: bytes) -> None:
    with pytest.raises(InvalidReport, match="the report "):
        parse_report(body)
