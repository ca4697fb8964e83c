"""Whatever is seen: deciding is safe to repeat, Stopped wins, and nothing secret or foreign gets into a child."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from s3sink_operator.crd import STATUS
from s3sink_operator.decide.reports import fitting, read_report
from s3sink_operator.model import DRIVER, EXECUTOR, Exit, Observed, Pod, Report
from tests.operator.facts import NOW, carried_out, children, decided, hash_of, observed, report, resource

LABELS = {"team": "data", "argocd.argoproj.io/instance": "apps"}
SECRET = "hunter2-very-secret"

specs = st.fixed_dictionaries(
    {},
    optional={
        "state": st.sampled_from(["Running", "Paused", "Stopped"]),
        "run": st.sampled_from(["Continuous", "Once", "Scheduled"]),
        "flush": st.fixed_dictionaries({"records": st.integers(-1, 9)}),
        "spark": st.fixed_dictionaries({"mode": st.sampled_from(["Local", "Cluster", "Other"])}),
    },
)
exits = st.builds(
    Exit,
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
def facts(draw: st.DrawFn) -> Observed:
    sink = resource(draw(specs))
    held = draw(st.sampled_from([resource(), resource({"run": "Once"}), resource({"spark": {"mode": "Cluster"}})]))
    some = tuple(c for c in children(held) if draw(st.booleans()))
    some = tuple(replace(c, owner=draw(st.sampled_from(["sink-uid", "else"]))) for c in some)
    some = tuple(replace(c, deleting=draw(st.booleans())) for c in some)
    return observed(
        sink,
        children=some,
        pods=tuple(draw(st.lists(pods, max_size=3, unique_by=lambda p: p.name))),
        report=draw(reports),
        refused=draw(st.sampled_from(["", "forbidden"])),
    )


@given(facts())
@settings(max_examples=300, deadline=None)
def test_deciding_again_after_it_was_done_decides_nothing(seen: Observed) -> None:
    seen = carried_out(seen, decided(seen))
    # What is being deleted goes, one after the other.
    for _ in range(3):
        seen = replace(seen, children=tuple(c for c in seen.children if not c.deleting))
        seen = carried_out(seen, decided(seen))
    again = decided(seen)
    assert (again.apply, again.delete, again.status, again.events) == ((), (), None, ())


@given(facts())
@settings(max_examples=200, deadline=None)
def test_stopped_always_wins(seen: Observed) -> None:
    stopped = replace(seen, resource=replace(seen.resource, spec={**seen.resource.spec, "state": "Stopped"}))
    found = decided(stopped)
    assert found.phase == "Stopped"
    assert not [d for d in found.apply if d["kind"] in {"Deployment", "Job"}]
    ours = {c.kind for c in seen.children if c.owner == "sink-uid" and not c.deleting}
    assert {c.kind for c in found.delete} == ours & {"Deployment", "Job"}


@given(facts())
@settings(max_examples=200, deadline=None)
def test_ready_is_true_only_with_a_proof(seen: Observed) -> None:
    status = decided(replace(seen, resource=replace(seen.resource, status={}))).status
    assert status is not None
    ready = next(c for c in status["conditions"] if c["type"] == "Ready")
    if ready["status"] == "True":
        fresh = seen.report is not None and NOW - seen.report.heard < timedelta(seconds=46)
        assert fresh or status["phase"] == "Completed"
    assert fitting(STATUS, json.loads(json.dumps(status))) == json.loads(json.dumps(status))


@given(facts())
@settings(max_examples=100, deadline=None)
def test_children_never_carry_what_is_the_resources_own(seen: Observed) -> None:
    sink = replace(seen.resource, annotations={"argocd.argoproj.io/tracking-id": "x", "s3sink.dev/adopt-from": "y"})
    for document in decided(replace(seen, resource=sink)).apply:
        text = json.dumps(document)
        assert "argocd" not in text
        owners = document["metadata"]["ownerReferences"]
        assert [o["uid"] for o in owners] == ["sink-uid"]
        assert "finalizers" not in document["metadata"]


def test_children_hold_names_of_secrets_and_never_their_content() -> None:
    # There is no field that takes a value: what a person puts beside the name is refused, not copied.
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
    found = read_report(json.dumps(lie))
    if isinstance(found, str):
        return
    sink = resource()
    pod = Pod("orders-s3sink-abc", DRIVER, "Running", "10.0.0.1", ready=True, spec_hash=hash_of(sink))
    seen = observed(sink, children=children(sink), pods=(pod,), report=Report(found, NOW, pod.name))
    status = decided(seen).status
    assert status is not None
    assert fitting(STATUS, json.loads(json.dumps(status))) == json.loads(json.dumps(status))


@given(st.binary(max_size=50))
def test_a_report_that_is_no_json_is_said_to_be_none(body: bytes) -> None:
    found = read_report(body)
    assert isinstance(found, str)
    assert "report" in found
