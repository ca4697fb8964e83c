"""The resource's status: what the driver reports while it reports, and what its pod shows otherwise.

Nothing green outlives its proof: without a fresh report Ready is False or Unknown, CaughtUp is Unknown, and
the lag is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from s3sink_operator.crd.status import STATUS
from s3sink_operator.decide.bounds import bounded
from s3sink_operator.decide.causes import exit_text
from s3sink_operator.decide.children import selector
from s3sink_operator.decide.conditions import (
    ACCEPTED,
    CAUGHT_UP,
    EXACT,
    FLUSHED,
    OFFSETS,
    READY,
    TYPES,
    Condition,
    find,
    read,
)
from s3sink_operator.decide.readiness import state_of
from s3sink_operator.decide.refusal import refusal
from s3sink_operator.decide.reports import fitting, is_fresh, read_report
from s3sink_operator.decide.runs import pod_of_run
from s3sink_operator.decide.situation import Situation
from s3sink_operator.model import DRIVER, EXECUTOR, Document, Exit, Observed, Pod, Report, Resource
from s3sink_operator.settings import Settings

_LONGEST_CONFESSION = 300
_URGENT_FIELDS = ("observedGeneration", "phase", "driver", "reset")


def new_status(observed: Observed, situation: Situation, settings: Settings) -> dict[str, Any]:
    pod = _pod(observed, situation)
    report = _report(observed, pod)
    fresh = report is not None and (_final(pod) or is_fresh(report, observed.now, settings.stale_after))
    seen = report.document if report is not None and fresh else {}
    driver = state_of(observed, situation, pod, seen)
    phase, ready = refusal(observed, situation, driver, seen) if situation.refused else driver
    over = driver[0] == "Completed"
    status = observed.resource.status
    generation = observed.resource.generation
    found = {
        ACCEPTED: situation.accepted,
        READY: ready,
        **_reported(seen, status, driver[1], over=over),
    }
    if (told := find(seen, OFFSETS)) is not None:
        found[OFFSETS] = read(told)
    types = [type for type in (*TYPES, OFFSETS) if type in found]
    conditions = [found[type].document(find(status, type), observed.now, generation) for type in types]
    new: dict[str, Any] = {"observedGeneration": generation, "phase": phase, "conditions": conditions}
    new |= _figures(seen, status)
    if over and "lag" in status:
        new["lag"] = new["lag"] or status["lag"]
    new["driver"] = _driver(pod, seen, status)
    if _has_executors(situation, status):
        running = [p for p in observed.pods_of(EXECUTOR) if p.phase == "Running" and p.deleting is None]
        new["executors"] = {"replicas": len(running), "selector": selector(observed.resource.key, EXECUTOR)}
    return bounded(fitting(STATUS, {k: v for k, v in new.items() if v not in ({}, None)}))


def _has_executors(situation: Situation, status: Document) -> bool:
    """While the spec is refused, those of the spec before it go on."""
    if situation.sink is None:
        return situation.refused and "executors" in status
    return situation.sink.spec.spark.mode == "Cluster"


def confess(resource: Resource, error: Exception, now: datetime) -> dict[str, Any]:
    """The status as it was, and that the operator failed over this sink. What runs goes on without it."""
    what = f"{type(error).__name__}: {error}"[:_LONGEST_CONFESSION]
    text = f"the operator failed over this sink, and tries again; its log has the rest: {what}"
    others = [c for c in resource.status.get("conditions") or () if c.get("type") != READY]
    ready = Condition(READY, "Unknown", "OperatorError", text)
    made = ready.document(find(resource.status, READY), now, resource.generation)
    return {**resource.status, "phase": "Degraded", "conditions": [*others, made]}


def worth_writing(observed: Observed, new: Mapping[str, Any], figures_every: float) -> bool:
    """Conditions at once, figures now and then, nothing if nothing changed."""
    old = observed.resource.status
    if urgent(old) != urgent(new):
        return True
    return dict(old) != dict(new) and figures_due(observed, figures_every) <= 0


def figures_due(observed: Observed, figures_every: float) -> float:
    """Seconds until figures may be written again."""
    if observed.written is None:
        return 0.0
    return figures_every - (observed.now - observed.written).total_seconds()


def current_pod(pods: Iterable[Pod]) -> Pod | None:
    """The newest driver that is not on its way out; one that is only if there is no other."""
    drivers = sorted((p for p in pods if p.role == DRIVER), key=lambda p: (p.deleting is None, p.created, p.name))
    return drivers[-1] if drivers else None


def _pod(observed: Observed, situation: Situation) -> Pod | None:
    """Of a scheduled sink that of the newest run, even if there is none yet: those before it are of the past."""
    newest = situation.runs.newest if situation.runs and situation.schedule else None
    return pod_of_run(observed, newest) if newest is not None and not situation.stopped else current_pod(observed.pods)


def urgent(status: Mapping[str, Any]) -> Any:
    """What is written as soon as it changes."""
    conditions = [(c.get("type"), c.get("status"), c.get("reason")) for c in status.get("conditions") or ()]
    return [status.get(name) for name in _URGENT_FIELDS], conditions


def _final(pod: Pod | None) -> bool:
    return pod is not None and pod.ended is not None


def _report(observed: Observed, pod: Pod | None) -> Report | None:
    if pod is None:
        return None
    if pod.ended is not None:
        # The last word of a driver that ran once.
        document = read_report(pod.ended.message)
        return None if isinstance(document, str) else Report(document, observed.now, pod.name)
    report = observed.report
    return report if report is not None and report.pod == pod.name else None


def _nobody_knows(seen: Document, ready: Condition) -> str:
    return "the driver's report does not say" if seen else f"the driver does not report: {ready.reason}"


def _reported(seen: Document, status: Document, ready: Condition, *, over: bool) -> dict[str, Condition]:
    """What only the driver knows. The past stays true; whether it has caught up does not."""
    unknown = {
        FLUSHED: Condition(FLUSHED, "Unknown", "NotYet", "no flush was tried yet"),
        EXACT: Condition(EXACT, "Unknown", "NotProbed", "the store's conditional writes were not tried yet"),
        CAUGHT_UP: Condition(CAUGHT_UP, "Unknown", "NotReporting", _nobody_knows(seen, ready)),
    }
    found = {}
    for type, otherwise in unknown.items():
        told = find(seen, type) or (None if type == CAUGHT_UP and not over else find(status, type))
        found[type] = read(told) if told is not None else otherwise
    return found


def _figures(seen: Document, status: Document) -> dict[str, Any]:
    # A driver that has just started does not know of the flushes before it.
    past = {k: v for k, v in (status.get("flush") or {}).items() if k != "nextDue"}
    figures: dict[str, Any] = {"flush": {**past, **seen.get("flush", {})}}
    for name in ("retry", "offsets", "gaps", "reset"):
        figures[name] = seen.get(name) or status.get(name)
    return figures | {"lag": seen.get("lag")}


def _driver(pod: Pod | None, seen: Document, status: Document) -> dict[str, Any]:
    before: Document = status.get("driver") or {}
    driver: dict[str, Any] = {}
    if pod is not None:
        driver |= {"pod": pod.name, "restarts": pod.restarts}
    end = pod and (pod.ended or pod.last_exit)
    if end:
        driver["lastExit"] = _exit(end)
    elif "lastExit" in before:
        driver["lastExit"] = before["lastExit"]
    epoch = seen.get("driver", {}).get("epoch", before.get("epoch"))
    return driver | ({} if epoch is None else {"epoch": epoch})


def _exit(end: Exit) -> dict[str, Any]:
    # A driver that ran once leaves its whole report, which is in the status already.
    message = "" if _is_report(end.message) else exit_text(end).partition(": ")[2]
    fields = {"code": end.code, "reason": end.reason, "message": message, "time": end.time}
    return {k: v for k, v in fields.items() if v != ""}


def _is_report(message: str) -> bool:
    try:
        return isinstance(json.loads(message), dict)
    except (ValueError, RecursionError):
        return False
