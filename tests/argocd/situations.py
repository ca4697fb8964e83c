"""Sinks in every situation that Argo CD should tell apart, with the status that the operator gives them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from s3sink_api.labels import EXECUTOR
from s3sink_operator.decide import operator_error_status
from s3sink_operator.values.objects import Child, ContainerExit, SinkResource
from s3sink_operator.values.observation import Observation
from tests.operator.samples import (
    NOW,
    children,
    ended,
    observed,
    pod,
    report,
    resource,
    run_of,
    running,
    status_of,
)

HEALTHY, PROGRESSING, DEGRADED, SUSPENDED = "Healthy", "Progressing", "Degraded", "Suspended"
HOURLY = {"run": "Scheduled", "schedule": "0 * * * *"}
ONCE = {"run": "Once"}
DONE = ContainerExit(0, "Completed", json.dumps(dict(report("Completed").document)))
FAILED = ContainerExit(2, "Error", "no such bucket")


@dataclass(frozen=True)
class Case:
    seen: Observation
    health: str
    reason: str = ""
    """Of Ready."""


def document(sink: SinkResource, status: Mapping[str, Any]) -> dict[str, Any]:
    """The resource as the API server has it, defaults of the schema apart."""
    metadata = {"name": sink.key.name, "namespace": sink.key.namespace, "generation": sink.generation}
    found = {"apiVersion": "s3sink.dev/v1alpha1", "kind": "S3Sink", "metadata": metadata, "spec": sink.spec}
    shown: dict[str, Any] = json.loads(json.dumps(found | ({"status": status} if status else {})))
    return shown


def shown(case: Case) -> dict[str, Any]:
    return document(case.seen.resource, status_of(case.seen))


def operator_error() -> dict[str, Any]:
    """A sink whose change the operator fails to reconcile."""
    known = replace(resource(), status=status_of(running()))
    changed = replace(known, generation=4)
    return document(changed, operator_error_status(changed, RuntimeError("out of luck"), NOW))


def _hourly(*jobs: Child, **fields: Any) -> Observation:
    sink = resource(HOURLY | fields.pop("spec", {}))
    return observed(sink, children=(*children(sink), *jobs), **fields)


def _run(number: int = 1, result: str = "") -> Child:
    return run_of(resource(HOURLY), number, result)


def _once(result: str = "", **fields: Any) -> Observation:
    sink = resource(ONCE)
    made = tuple(ended(c, result) if c.kind == "Job" and result else c for c in children(sink))
    return observed(sink, children=made, **fields)


def _pod_of_run(number: int = 1, **fields: Any) -> Any:
    return pod(resource(HOURLY), job=f"orders-s3sink-{number}", **fields)


def _without_a_pod(**status: Any) -> Observation:
    sink = resource()
    with_status = tuple(
        replace(c, document={**c.document, "status": status}) if c.kind == "Deployment" else c for c in children(sink)
    )
    return observed(sink, children=with_status)


def _trouble(**fields: Any) -> Observation:
    return running(pods=(pod(ready=False, **fields),), report=None)


def _refused(before: Observation, spec: Mapping[str, Any] | None = None) -> Observation:
    return replace(before, resource=resource({**(spec or {}), **_BROKEN}, generation=4))


_LONG_AGO = (NOW - timedelta(hours=1)).isoformat()
_BEGUN = datetime(2026, 11, 16, 11, 1, 5, tzinfo=UTC)
"""Just after the first run."""
_QUOTA = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota: pods"}
_NAMESAKE = replace(children(resource())[0], owner="somebody")
_BROKEN = {"flush": {"records": -1}}

CASES = {
    "running": Case(running(), HEALTHY, "Running"),
    "just applied": Case(observed(), PROGRESSING, "Creating"),
    "starting": Case(_trouble(phase="Pending", created=NOW.isoformat()), PROGRESSING, "Starting"),
    "the driver starts": Case(running(report=report("Starting")), PROGRESSING, "Starting"),
    "an earlier spec runs": Case(running(pods=(pod(spec_hash="other"),)), PROGRESSING, "Updating"),
    "the former driver ends": Case(observed(pods=(pod(deleting=NOW),)), PROGRESSING, "WaitingForFormerDriver"),
    "no node": Case(
        _trouble(phase="Pending", unschedulable="0/3 nodes", created=NOW.isoformat()), PROGRESSING, "FailedScheduling"
    ),
    "no node for minutes": Case(_trouble(phase="Pending", unschedulable="0/3 nodes"), DEGRADED, "FailedScheduling"),
    "paused": Case(running({"state": "Paused"}, report=report("Paused")), SUSPENDED, "Paused"),
    "stopped": Case(observed(resource({"state": "Stopped"})), SUSPENDED, "Stopped"),
    "stopping": Case(running({"state": "Stopped"}), PROGRESSING, "Stopping"),
    "a mistake in the spec": Case(observed(resource(_BROKEN)), DEGRADED, "SpecRefused"),
    "a mistake while the spec before it runs": Case(_refused(running()), DEGRADED, "SpecRefused"),
    "a mistake while the spec before it is paused": Case(
        _refused(running({"state": "Paused"}, report=report("Paused")), {"state": "Paused"}), DEGRADED, "SpecRefused"
    ),
    "a mistake after a run that is complete": Case(_refused(_once("Complete"), ONCE), DEGRADED, "SpecRefused"),
    "a mistake between runs": Case(_refused(_hourly(_run(result="Complete")), HOURLY), DEGRADED, "SpecRefused"),
    "stopped with a mistake": Case(observed(resource(_BROKEN | {"state": "Stopped"})), DEGRADED, "Stopped"),
    "silent": Case(running(report=report(age=300)), DEGRADED, "NoReport"),
    "the driver needs a person": Case(running(report=report("Failed")), DEGRADED, "Failed"),
    "a partition is blocked": Case(running(report=report("Degraded")), DEGRADED, "Degraded"),
    "no image": Case(_trouble(waiting="ImagePullBackOff"), DEGRADED, "ImagePullBackOff"),
    "crashing": Case(_trouble(waiting="CrashLoopBackOff", last_exit=FAILED), DEGRADED, "CrashLoopBackOff"),
    "out of memory": Case(_trouble(last_exit=ContainerExit(137, "OOMKilled")), DEGRADED, "OOMKilled"),
    "started again": Case(_trouble(last_exit=FAILED), DEGRADED, "DriverRestarting"),
    "evicted": Case(_trouble(phase="Failed", reason="Evicted"), DEGRADED, "Evicted"),
    "does not start": Case(_trouble(phase="Pending", created=_LONG_AGO), DEGRADED, "NotStarting"),
    "a quota": Case(_without_a_pod(conditions=[_QUOTA]), DEGRADED, "FailedCreate"),
    "a name that is taken": Case(observed(children=(_NAMESAKE,)), DEGRADED, "NameTaken"),
    "refused": Case(observed(refused="forbidden"), DEGRADED, "Refused"),
    "no executor": Case(
        running(pods=(pod(), pod(name="exec-1", role=EXECUTOR, phase="Pending", waiting="ImagePullBackOff"))),
        DEGRADED,
        "ExecutorImagePullBackOff",
    ),
    "once, complete": Case(_once("Complete", pods=(pod(resource(ONCE), ended=DONE),)), HEALTHY, "Completed"),
    "once, complete, cleared away": Case(_once("Complete"), HEALTHY, "Completed"),
    "once, failed": Case(_once("Failed", pods=(pod(resource(ONCE), ended=FAILED),)), DEGRADED, "DriverFailed"),
    "once, tried again": Case(_once(pods=(pod(resource(ONCE), ended=ContainerExit(1)),)), DEGRADED, "TryingAgain"),
    "scheduled, before the first run": Case(_hourly(), HEALTHY, "WaitingForSchedule"),
    "scheduled, a run has no pod yet": Case(_hourly(_run(), now=_BEGUN), HEALTHY, "Creating"),
    "scheduled, a run gets no pod": Case(_hourly(_run()), DEGRADED, "NotStarting"),
    "scheduled, a run starts": Case(
        _hourly(_run(), pods=(_pod_of_run(phase="Pending", ready=False, created=NOW.isoformat()),)),
        HEALTHY,
        "Starting",
    ),
    "scheduled, a run is under way": Case(_hourly(_run(), pods=(_pod_of_run(),), report=report()), HEALTHY, "Running"),
    "scheduled, between runs": Case(_hourly(_run(result="Complete")), HEALTHY, "Completed"),
    "scheduled, the last run failed": Case(
        _hourly(_run(result="Failed"), pods=(_pod_of_run(ended=FAILED),)), DEGRADED, "DriverFailed"
    ),
    "scheduled, the run after one that failed": Case(
        _hourly(_run(result="Failed"), _run(2), pods=(_pod_of_run(2),), report=report()), DEGRADED, "Running"
    ),
    "scheduled, paused": Case(_hourly(spec={"state": "Paused"}), SUSPENDED, "Paused"),
    "scheduled, pausing": Case(
        _hourly(_run(), spec={"state": "Paused"}, pods=(_pod_of_run(),)), PROGRESSING, "Pausing"
    ),
}
