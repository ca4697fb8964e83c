"""The status of the resource: what the driver reports, and what its pod shows while it does not report.

Ready is never True without a fresh report; then CaughtUp is Unknown, too, and the lag is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from s3sink_api.conditions import (
    ACCEPTED,
    ALWAYS,
    CAUGHT_UP,
    COMPLETED,
    DEGRADED,
    EXACTLY_ONCE,
    LAST_FLUSH_SUCCEEDED,
    OFFSETS_PUBLISHED,
    ON_SCHEDULE,
    READY,
)
from s3sink_api.labels import DRIVER, EXECUTOR
from s3sink_operator.decide.assessment import Assessment
from s3sink_operator.decide.children.child_names import child_selector
from s3sink_operator.decide.conditions import Condition, find, parse_condition
from s3sink_operator.decide.runs import pod_of_run
from s3sink_operator.decide.status.missed_runs import on_schedule
from s3sink_operator.decide.status.pod_problems import last_log_line
from s3sink_operator.decide.status.readiness import phase_and_ready
from s3sink_operator.decide.status.refused_spec import refused
from s3sink_operator.decide.status.status_size import limited
from s3sink_operator.settings import Settings
from s3sink_operator.values.driver_report import report_in
from s3sink_operator.values.objects import ContainerExit, Document, Pod, SinkResource
from s3sink_operator.values.observation import Observation
from s3sink_operator.values.status_schema import valid_part

_LONGEST_ERROR = 300
_URGENT_FIELDS = ("observedGeneration", "phase", "driver", "reset")


def new_status(observation: Observation, assessment: Assessment, settings: Settings) -> dict[str, Any]:
    pod = _pod(observation, assessment)
    report = _fresh_report(observation, pod, settings.stale_after)
    driver = phase_and_ready(observation, assessment, pod, report)
    phase, ready = refused(observation, assessment, driver, report) if assessment.refused else driver
    completed = driver.phase == COMPLETED
    before = observation.resource.status
    found = {ACCEPTED: assessment.accepted, READY: ready}
    found |= _driver_conditions(report, before, driver.ready, completed=completed)
    if (scheduled := on_schedule(observation, assessment)) is not None:
        found[ON_SCHEDULE] = scheduled
    types = [type for type in (*ALWAYS, OFFSETS_PUBLISHED, ON_SCHEDULE) if type in found]
    generation = observation.resource.generation
    conditions = [found[type].document(find(before, type), observation.now, generation) for type in types]
    new: dict[str, Any] = {"observedGeneration": generation, "phase": phase, "conditions": conditions}
    new |= _figures(report, before)
    if completed and "lag" in before:
        new["lag"] = new["lag"] or before["lag"]
    new["driver"] = _driver(pod, report, before)
    if _has_executors(assessment, before):
        running = [p for p in observation.pods_of(EXECUTOR) if p.phase == "Running" and p.deleting is None]
        selector = child_selector(observation.resource.key, EXECUTOR)
        new["executors"] = {"replicas": len(running), "selector": selector}
    return limited(valid_part({k: v for k, v in new.items() if v not in ({}, None)}))


def operator_error_status(resource: SinkResource, error: Exception, now: datetime) -> dict[str, Any]:
    """The former status with Ready Unknown. What runs keeps running."""
    what = f"{type(error).__name__}: {error}"[:_LONGEST_ERROR]
    text = f"operator error while reconciling this sink; retrying, see the operator's log: {what}"
    others = [c for c in resource.status.get("conditions") or () if c.get("type") != READY]
    ready = Condition(READY, "Unknown", "OperatorError", text)
    made = ready.document(find(resource.status, READY), now, resource.generation)
    return {**resource.status, "phase": DEGRADED, "conditions": [*others, made]}


def worth_writing(observation: Observation, new: Mapping[str, Any], figures_every: float) -> bool:
    """Conditions at once, figures only from time to time, nothing if nothing changed."""
    old = observation.resource.status
    if urgent_part(old) != urgent_part(new):
        return True
    return dict(old) != dict(new) and figures_due(observation, figures_every) <= 0


def figures_due(observation: Observation, figures_every: float) -> float:
    """Seconds until figures may be written again."""
    if observation.written is None:
        return 0.0
    return figures_every - (observation.now - observation.written).total_seconds()


def urgent_part(status: Mapping[str, Any]) -> Any:
    """What is written as soon as it changes."""
    conditions = [(c.get("type"), c.get("status"), c.get("reason")) for c in status.get("conditions") or ()]
    refresh = status.get("refresh") or {}
    return [status.get(name) for name in _URGENT_FIELDS], (refresh.get("run"), refresh.get("phase")), conditions


def current_pod(pods: Iterable[Pod]) -> Pod | None:
    """The newest driver that is not being deleted; without one, the newest of the others."""
    drivers = sorted((p for p in pods if p.role == DRIVER), key=lambda p: (p.deleting is None, p.created, p.name))
    return drivers[-1] if drivers else None


def _pod(observation: Observation, assessment: Assessment) -> Pod | None:
    """Of a scheduled sink that of the newest run, even if it has none yet: other pods are of earlier runs."""
    newest = assessment.runs.newest if assessment.runs and assessment.schedule else None
    if newest is None or assessment.stopped:
        return current_pod(observation.pods)
    return pod_of_run(observation, newest)


def _fresh_report(observation: Observation, pod: Pod | None, stale_after: float) -> Document:
    """Empty if there is none."""
    if pod is None:
        return {}
    if pod.ended is not None:
        # The last report of a driver that ran once stays true.
        return report_in(pod.ended.message) or {}
    report = observation.report
    if report is None or report.pod != pod.name or not report.is_fresh(observation.now, stale_after):
        return {}
    return report.document


def _driver_conditions(
    report: Document, before: Document, ready: Condition, *, completed: bool
) -> dict[str, Condition]:
    """Conditions that only the driver can tell. Without a report the last ones stay, but for CaughtUp."""
    why = "the report lacks this condition" if report else f"no report from the driver: {ready.reason}"
    unknown = {
        LAST_FLUSH_SUCCEEDED: Condition(LAST_FLUSH_SUCCEEDED, "Unknown", "NotYet", "no flush attempted yet"),
        EXACTLY_ONCE: Condition(EXACTLY_ONCE, "Unknown", "NotProbed", "conditional writes of the store not tested yet"),
        CAUGHT_UP: Condition(CAUGHT_UP, "Unknown", "NotReporting", why),
    }
    found = {}
    for type, otherwise in unknown.items():
        kept = find(before, type) if type != CAUGHT_UP or completed else None
        told = find(report, type) or kept
        found[type] = parse_condition(told) if told is not None else otherwise
    if (told := find(report, OFFSETS_PUBLISHED)) is not None:
        found[OFFSETS_PUBLISHED] = parse_condition(told)
    return found


def _figures(report: Document, before: Document) -> dict[str, Any]:
    # A driver that has just started does not report the flushes of its predecessor.
    past = {k: v for k, v in (before.get("flush") or {}).items() if k != "nextDue"}
    figures: dict[str, Any] = {"flush": {**past, **report.get("flush", {})}}
    for name in ("retry", "offsets", "gaps", "reset", "refresh"):
        figures[name] = report.get(name) or before.get(name)
    return figures | {"lag": report.get("lag")}


def _driver(pod: Pod | None, report: Document, status: Document) -> dict[str, Any]:
    before: Document = status.get("driver") or {}
    driver: dict[str, Any] = {}
    if pod is not None:
        driver |= {"pod": pod.name, "restarts": pod.restarts}
    end = pod and (pod.ended or pod.last_exit)
    if end:
        driver["lastExit"] = _last_exit(end)
    elif "lastExit" in before:
        driver["lastExit"] = before["lastExit"]
    epoch = report.get("driver", {}).get("epoch", before.get("epoch"))
    return driver | ({} if epoch is None else {"epoch": epoch})


def _last_exit(end: ContainerExit) -> dict[str, Any]:
    # A driver that ran once leaves its whole report, which the status holds already.
    message = "" if _is_json_object(end.message) else last_log_line(end)
    fields = {"code": end.code, "reason": end.reason, "message": message, "time": end.time}
    return {k: v for k, v in fields.items() if v != ""}


def _is_json_object(message: str) -> bool:
    try:
        return isinstance(json.loads(message), dict)
    except (ValueError, RecursionError):
        return False


def _has_executors(assessment: Assessment, status: Document) -> bool:
    """While the spec is refused, the executors of the previous one keep running."""
    if assessment.sink is None:
        return assessment.refused and "executors" in status
    return assessment.sink.spec.spark.mode == "Cluster"
