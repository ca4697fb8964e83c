"""The resource's status: what the driver reports while it reports, and what its pod shows otherwise.

Nothing green outlives its proof: without a fresh report Ready is False or Unknown, CaughtUp is Unknown, and
the lag is left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from s3sink_operator.decide.causes import Cause, cause_of, exit_text
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
from s3sink_operator.decide.reports import is_fresh, read_report
from s3sink_operator.decide.situation import Situation
from s3sink_operator.model import DRIVER, EXECUTOR, Document, Exit, Observed, Pod, Report
from s3sink_operator.settings import Settings

PATIENCE = timedelta(minutes=3)
"""How long a pod may take to get a node, an image and its volumes."""
_URGENT_FIELDS = ("observedGeneration", "phase", "driver")


def new_status(observed: Observed, situation: Situation, settings: Settings) -> dict[str, Any]:
    pod = current_pod(observed)
    report = _report(observed, pod)
    fresh = report is not None and (_final(pod) or is_fresh(report, observed.now, settings.stale_after))
    seen = report.document if report is not None and fresh else {}
    phase, ready = _state(observed, situation, pod, seen)
    status = observed.resource.status
    generation = observed.resource.generation
    found = {
        ACCEPTED: situation.accepted,
        READY: ready,
        **_reported(seen, status, ready, over=phase == "Completed"),
    }
    if (told := find(seen, OFFSETS)) is not None:
        found[OFFSETS] = read(told)
    types = [type for type in (*TYPES, OFFSETS) if type in found]
    conditions = [found[type].document(find(status, type), observed.now, generation) for type in types]
    new: dict[str, Any] = {"observedGeneration": generation, "phase": phase, "conditions": conditions}
    new |= _figures(seen, status)
    if phase == "Completed" and "lag" in status:
        new["lag"] = new["lag"] or status["lag"]
    new["driver"] = _driver(pod, seen, status)
    if situation.sink is not None and situation.sink.spec.spark.mode == "Cluster":
        running = [p for p in observed.pods_of(EXECUTOR) if p.phase == "Running" and p.deleting is None]
        new["executors"] = {"replicas": len(running), "selector": selector(observed.resource.key, EXECUTOR)}
    return {k: v for k, v in new.items() if v not in ({}, None)}


def worth_writing(observed: Observed, new: Mapping[str, Any], figures_every: float) -> bool:
    """Conditions at once, figures now and then, nothing if nothing changed."""
    old = observed.resource.status
    if _urgent(old) != _urgent(new):
        return True
    due = observed.written is None or observed.now - observed.written >= timedelta(seconds=figures_every)
    return due and dict(old) != dict(new)


def current_pod(observed: Observed) -> Pod | None:
    """The newest driver that is not on its way out; one that is only if there is no other."""
    pods = sorted(observed.pods_of(DRIVER), key=lambda p: (p.deleting is None, p.created, p.name))
    return pods[-1] if pods else None


def _urgent(status: Mapping[str, Any]) -> Any:
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


def _state(observed: Observed, situation: Situation, pod: Pod | None, seen: Document) -> tuple[str, Condition]:
    """Phase and Ready, from the strongest fact to the weakest."""
    if situation.stopped:
        left = [p for p in observed.pods_of(DRIVER) if p.ended is None]
        text = f"pod {left[0].name} is ending" if left else "spec.state is Stopped: nothing runs"
        return "Stopped", _not_ready("Stopping" if left else "Stopped", text)
    if situation.taken:
        text = f"{situation.taken} exists and is not this sink's: delete or rename it"
        return "Pending", _not_ready("NameTaken", text)
    if observed.refused:
        text = f"the API server refuses what this sink needs: {observed.refused}"
        return "Degraded" if pod else "Pending", _not_ready("Refused", text)
    if pod is None and situation.job:
        return _over(observed, situation)
    if pod is None or (pod.deleting is not None and situation.holding):
        if situation.sink is None:
            return "Failed", _not_ready("InvalidSpec", "the spec is not accepted: nothing runs")
        if situation.holding:
            return "Starting", _not_ready("WaitingForFormerDriver", situation.holding)
        if cannot := _replica_failure(observed):
            return "Pending", _not_ready("FailedCreate", cannot)
        return "Pending", _not_ready("Creating", "the driver's pod is not there yet")
    if pod.ended is not None:
        return _ended(pod, pod.ended, situation, seen)
    if cause := cause_of(pod):
        return cause.phase, _not_ready(cause.reason, cause.message)
    if situation.spec_hash and pod.spec_hash != situation.spec_hash:
        return "Starting", _not_ready("Updating", f"pod {pod.name} still runs an earlier spec")
    if not pod.ready and not seen:
        return _starting(observed, pod)
    if not seen:
        why = observed.report_problem or "it has not reported yet"
        return "Degraded", Condition(READY, "Unknown", "NoReport", f"pod {pod.name} does not report: {why}")
    if cause := _executors_missing(observed):
        return cause.phase, _not_ready(cause.reason, cause.message)
    ready = find(seen, READY)
    return seen["phase"], read(ready) if ready else _not_ready("NoReport", "the report does not say")


def _over(observed: Observed, situation: Situation) -> tuple[str, Condition]:
    """A run that ended, and whose pod was cleared away since: what it said stays."""
    phase = "Completed" if situation.job == "Complete" else "Failed"
    status = observed.resource.status
    before = find(status, READY)
    if before is not None and status.get("phase") == phase:
        return phase, read(before)
    if phase == "Completed":
        return phase, Condition(READY, "True", "Completed", "the run is complete, and its pod is gone")
    return phase, _not_ready("DriverFailed", "the run failed, and its pod is gone")


def _ended(pod: Pod, end: Exit, situation: Situation, seen: Document) -> tuple[str, Condition]:
    if situation.job == "Complete":
        text = "everything that was there at the start is in the bucket"
        return "Completed", Condition(READY, "True", "Completed", text)
    ready = find(seen, READY)
    text = read(ready).message if ready and ready["status"] == "False" else exit_text(end)
    if situation.job == "Failed":
        failed = find(seen, FLUSHED)
        reason = read(failed).reason if failed and failed["status"] == "False" else "DriverFailed"
        return "Failed", _not_ready(reason, text)
    return "Degraded", _not_ready("TryingAgain", f"pod {pod.name} failed, another follows: {text}")


def _starting(observed: Observed, pod: Pod) -> tuple[str, Condition]:
    if pod.phase == "Pending" and pod.created and observed.now - datetime.fromisoformat(pod.created) > PATIENCE:
        text = f"pod {pod.name} has not started since {pod.created}: `kubectl describe pod {pod.name}` tells why"
        return "Degraded", _not_ready("NotStarting", text)
    return "Starting", _not_ready("Starting", f"pod {pod.name} is starting")


def _replica_failure(observed: Observed) -> str:
    """Why the Deployment cannot make its pod: a quota, a policy, a missing account."""
    for child in observed.children:
        for condition in child.document.get("status", {}).get("conditions") or ():
            if child.kind == "Deployment" and (condition["type"], condition["status"]) == ("ReplicaFailure", "True"):
                return str(condition.get("message", condition.get("reason", "")))
    return ""


def _executors_missing(observed: Observed) -> Cause | None:
    """Executors that cannot start hold up the flush, while the driver is well."""
    pods = [p for p in observed.pods_of(EXECUTOR) if p.deleting is None]
    if any(p.phase == "Running" for p in pods):
        return None
    causes = [cause for pod in pods if (cause := cause_of(pod))]
    return Cause(f"Executor{causes[0].reason}", causes[0].message, "Degraded") if causes else None


def _not_ready(reason: str, message: str) -> Condition:
    return Condition(READY, "False", reason, message)


def _reported(seen: Document, status: Document, ready: Condition, *, over: bool) -> dict[str, Condition]:
    """What only the driver knows. The past stays true; whether it has caught up does not."""
    unknown = {
        FLUSHED: Condition(FLUSHED, "Unknown", "NotYet", "no flush was tried yet"),
        EXACT: Condition(EXACT, "Unknown", "NotProbed", "the store's conditional writes were not tried yet"),
        CAUGHT_UP: Condition(CAUGHT_UP, "Unknown", "NotReporting", f"the driver does not report: {ready.reason}"),
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
    for name in ("retry", "offsets", "gaps"):
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
    except ValueError:
        return False
