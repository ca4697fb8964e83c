"""Phase and Ready: from the strongest fact to the weakest."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from s3sink_operator.decide.causes import Cause, cause_of, exit_text, more_memory, out_of_memory, removed
from s3sink_operator.decide.conditions import FLUSHED, READY, SPEC_REFUSED, Condition, find, read
from s3sink_operator.decide.refusal import nothing_runs
from s3sink_operator.decide.reports import read_report
from s3sink_operator.decide.runs import job_failure, pod_of_run
from s3sink_operator.decide.situation import Situation
from s3sink_operator.model import DRIVER, EXECUTOR, Child, Document, Exit, Observed, Pod

PATIENCE = timedelta(minutes=3)
"""How long a pod may take to get a node, an image and its volumes, and a Job to get a pod."""
_STOPPING_RUNS = frozenset({"DeadlineExceeded"})
"""Kubernetes' words for a failed Job that tell more than those of its pod."""
State = tuple[str, Condition]


def state_of(observed: Observed, situation: Situation, pod: Pod | None, seen: Document) -> State:
    phase, ready = _state(observed, situation, pod, seen)
    former = situation.runs.failed_before if situation.runs and situation.schedule else None
    if former is None or phase not in {"Pending", "Starting", "Running"}:
        return phase, ready
    # A run that failed is not forgotten before another one went well.
    _, why = failure(former, pod_of_run(observed, former))
    return "Degraded", replace(ready, message=f"{ready.message}; the run before it failed: {why}")


def _state(observed: Observed, situation: Situation, pod: Pod | None, seen: Document) -> State:
    if situation.stopped:
        return _no_driver(observed, "Stopped", "Stopping", "spec.state is Stopped: nothing runs")
    if situation.refused and situation.kept is None:
        return nothing_runs(situation)
    if situation.taken:
        text = f"{situation.taken} exists and is not this sink's: delete or rename it"
        return "Pending", _not_ready("NameTaken", text)
    if observed.refused:
        text = f"the API server refuses what this sink needs: {observed.refused}"
        return "Degraded" if pod else "Pending", _not_ready("Refused", text)
    if situation.suspended and not situation.holding:
        return _no_driver(observed, "Paused", "Pausing", "spec.state is Paused: no run starts")
    if pod is None and situation.result and not situation.holding:
        return _over(observed, situation)
    if pod is None or (pod.deleting is not None and situation.holding):
        return _without_pod(observed, situation)
    if pod.ended is not None:
        return _ended(pod, pod.ended, situation, seen)
    if cause := cause_of(pod):
        # A node may come up for it, but not for ever.
        phase = "Degraded" if cause.phase == "Pending" and _waited(observed, pod.created) else cause.phase
        return phase, _not_ready(cause.reason, cause.message)
    # A scheduled run ends with the spec it began with; the next one takes the new one.
    if situation.spec_hash and pod.spec_hash != situation.spec_hash and not situation.schedule:
        return "Starting", _not_ready("Updating", f"pod {pod.name} still runs an earlier spec")
    if not pod.ready and not seen:
        return _starting(observed, pod)
    if not seen:
        return _silent(observed, pod)
    if cause := _executors_missing(observed):
        return cause.phase, _not_ready(cause.reason, cause.message)
    ready = read(found) if (found := find(seen, READY)) else _not_ready("NoReport", "the report does not say")
    if ready.status == "True" and (told := _of_another_spec(observed, situation, seen)):
        # Its template is the newest, and its manifest is not: the node may have given it an older copy.
        return "Starting", _not_ready("Updating", f"pod {pod.name} {told}")
    return seen["phase"], ready


def _of_another_spec(observed: Observed, situation: Situation, seen: Document) -> str:
    """Empty for a report about the spec that shall run now. What a refused spec left going is of an earlier one."""
    generation, told = observed.resource.generation, seen.get("observedGeneration")
    if told == generation or situation.sink is None or situation.schedule:
        return ""
    return f"reports generation {told or 'unknown'} of the spec, not {generation}: delete the pod if that stays so"


def _no_driver(observed: Observed, phase: str, going: str, text: str) -> State:
    left = [pod for pod in observed.pods_of(DRIVER) if pod.ended is None]
    return phase, _not_ready(going if left else phase, f"pod {left[0].name} is ending" if left else text)


def _without_pod(observed: Observed, situation: Situation) -> State:
    if situation.holding:
        return "Starting", _not_ready("WaitingForFormerDriver", situation.holding)
    job = situation.runs.newest if situation.runs else None
    if job is not None:
        return _without_pod_of_job(observed, job)
    if situation.schedule:
        text = f"no run has begun yet; the schedule is {situation.schedule}"
        return "Pending", _not_ready("WaitingForSchedule", text)
    if cannot := _replica_failure(observed):
        return "Pending", _not_ready("FailedCreate", cannot)
    return "Pending", _not_ready("Creating", "the driver's pod is not there yet")


def _without_pod_of_job(observed: Observed, job: Child) -> State:
    """A Job does not say why it makes no pod: a quota, a policy, a missing account. Its events do."""
    if _waited(observed, job.created):
        text = f"Job {job.name} has no pod since {job.created}: `kubectl describe job {job.name}` tells why"
        return "Degraded", _not_ready("NotStarting", text)
    return "Pending", _not_ready("Creating", "the driver's pod is not there yet")


def _over(observed: Observed, situation: Situation) -> State:
    """A run that ended, and whose pod was cleared away since: what it said stays."""
    phase = "Completed" if situation.result == "Complete" else "Failed"
    status = observed.resource.status
    before = find(status, READY)
    if before is not None and status.get("phase") == phase and before.get("reason") != SPEC_REFUSED:
        return phase, read(before)
    if phase == "Completed":
        text = f"the run is complete, and its pod is gone{_next(situation)}"
        return phase, Condition(READY, "True", "Completed", text)
    return phase, _not_ready("DriverFailed", f"the run failed, and its pod is gone{_next(situation)}")


def _ended(pod: Pod, end: Exit, situation: Situation, seen: Document) -> State:
    done = situation.runs is not None and end.code == 0 and not situation.result
    if situation.result == "Complete" or done:
        text = f"everything that was there at the start is in the bucket{_next(situation)}"
        return "Completed", Condition(READY, "True", "Completed", text)
    newest = situation.runs.newest if situation.runs else None
    if situation.result == "Failed" and newest is not None:
        reason, text = failure(newest, pod)
        return "Failed", _not_ready(reason, f"{text}{_next(situation)}")
    if gone := removed(pod):
        return gone.phase, _not_ready(gone.reason, gone.message)
    return "Degraded", _not_ready("TryingAgain", f"pod {pod.name} failed, another follows: {_last_words(end)[1]}")


def failure(job: Child, pod: Pod | None) -> tuple[str, str]:
    """Why a run failed, in a word and a sentence: what its driver said, or what became of it."""
    word = job_failure(job)
    if pod is None or pod.ended is None:
        gone = removed(pod) if pod else None
        return (gone.reason, gone.message) if gone else ("DriverFailed", f"Job {job.name} failed ({word or 'Failed'})")
    if word in _STOPPING_RUNS:
        return word, f"Job {job.name} took too long: {exit_text(pod.ended)}"
    if out_of_memory(pod.ended):
        return "OOMKilled", f"pod {pod.name} ran out of memory: {more_memory(pod)}"
    reason, text = _last_words(pod.ended)
    gone = removed(pod)
    return (gone.reason, gone.message) if gone and not reason else (reason or "DriverFailed", text)


def _last_words(end: Exit) -> tuple[str, str]:
    """The reason that a driver left behind, if any, and its message or that of its end."""
    seen = read_report(end.message)
    if isinstance(seen, str):
        return "", exit_text(end)
    failed, ready = find(seen, FLUSHED), find(seen, READY)
    reason = read(failed).reason if failed and failed["status"] == "False" else ""
    return reason, read(ready).message if ready and ready["status"] == "False" else exit_text(end)


def _next(situation: Situation) -> str:
    return f"; the next run follows the schedule {situation.schedule}" if situation.schedule else ""


def _starting(observed: Observed, pod: Pod) -> State:
    if pod.phase == "Pending" and _waited(observed, pod.created):
        text = f"pod {pod.name} has not started since {pod.created}: `kubectl describe pod {pod.name}` tells why"
        return "Degraded", _not_ready("NotStarting", text)
    return "Starting", _not_ready("Starting", f"pod {pod.name} is starting")


def _silent(observed: Observed, pod: Pod) -> State:
    if gone := removed(pod):
        return gone.phase, _not_ready(gone.reason, gone.message)
    said = observed.report is not None and observed.report.pod == pod.name
    if not observed.report_problem and not said:
        return "Starting", _not_ready("Starting", f"pod {pod.name} runs, and is being asked how it is")
    why = observed.report_problem or "its report stands still"
    return "Degraded", Condition(READY, "Unknown", "NoReport", f"pod {pod.name} does not report: {why}")


def still_patient(observed: Observed, situation: Situation) -> list[float]:
    """Seconds until something takes too long to start: no event tells of that."""
    begun = [pod.created for pod in observed.pods_of(DRIVER) if pod.phase == "Pending"]
    begun += [job.created for job in (situation.runs.active if situation.runs else ())]
    ends = [datetime.fromisoformat(since) + PATIENCE for since in begun if since]
    return [(end - observed.now).total_seconds() + 1 for end in ends if end >= observed.now]


def _waited(observed: Observed, since: str) -> bool:
    return bool(since) and observed.now - datetime.fromisoformat(since) > PATIENCE


def _replica_failure(observed: Observed) -> str:
    """Why the Deployment cannot make its pod: a quota, a policy, a missing account."""
    for child in observed.children:
        for condition in child.document.get("status", {}).get("conditions") or ():
            if child.kind == "Deployment" and (condition["type"], condition["status"]) == ("ReplicaFailure", "True"):
                return str(condition.get("message", condition.get("reason", "")))
    return ""


def _executors_missing(observed: Observed) -> Cause | None:
    """Executors that cannot start, or do not last, hold up the flush, while the driver is well."""
    pods = [pod for pod in observed.pods_of(EXECUTOR) if pod.deleting is None]
    if any(pod.phase == "Running" for pod in pods):
        return None
    for pod in pods:
        if out_of_memory(pod.ended):
            text = f"pod {pod.name} ran out of memory: {more_memory(pod)}"
            return Cause("ExecutorOOMKilled", text, "Degraded")
        if cause := cause_of(pod):
            return Cause(f"Executor{cause.reason}", cause.message, "Degraded")
    return None


def _not_ready(reason: str, message: str) -> Condition:
    return Condition(READY, "False", reason, message)
