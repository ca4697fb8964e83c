"""The phase and the condition Ready. The first rule that applies decides."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from s3sink_api.conditions import (
    COMPLETED,
    DEGRADED,
    FAILED,
    PAUSED,
    PENDING,
    READY,
    RUNNING,
    SPEC_REFUSED,
    STARTING,
    STOPPED,
)
from s3sink_api.labels import DRIVER, EXECUTOR
from s3sink_operator.decide.assessment import Assessment
from s3sink_operator.decide.conditions import Condition, PhaseAndReady, find, not_ready, parse_condition
from s3sink_operator.decide.runs import JOB_COMPLETE, JOB_FAILED, pod_of_run
from s3sink_operator.decide.status.pod_problems import (
    PodProblem,
    out_of_memory,
    out_of_memory_text,
    problem_of,
    removal_of,
)
from s3sink_operator.decide.status.refused_spec import refused_without_driver
from s3sink_operator.decide.status.run_failures import failure_of, last_report_of
from s3sink_operator.values.objects import Child, ContainerExit, Document, Pod
from s3sink_operator.values.observation import Observation

START_TIMEOUT = timedelta(minutes=3)
"""How long a pod may take to get a node, an image and its volumes, and a Job to get a pod."""
_NO_POD_YET = not_ready("Creating", "waiting for Kubernetes to create the driver's pod")


def phase_and_ready(
    observation: Observation, assessment: Assessment, pod: Pod | None, report: Document
) -> PhaseAndReady:
    """`report` is empty without a fresh one."""
    found = _of_driver(observation, assessment, pod, report)
    former = assessment.runs.failed_before if assessment.runs and assessment.schedule else None
    if former is None or found.phase not in {PENDING, STARTING, RUNNING}:
        return found
    # A failed run stays visible until another one has succeeded.
    failed = failure_of(former, pod_of_run(observation, former))
    message = f"{found.ready.message}; the previous run failed: {failed.message}"
    return PhaseAndReady(DEGRADED, replace(found.ready, message=message))


def _of_driver(observation: Observation, assessment: Assessment, pod: Pod | None, report: Document) -> PhaseAndReady:
    if blocked := _blocked(observation, assessment, pod):
        return blocked
    if pod is None and assessment.result and not assessment.waiting_for:
        return _ended_without_pod(observation, assessment)
    if pod is None or (pod.deleting is not None and assessment.waiting_for):
        return _without_pod(observation, assessment)
    if pod.ended is not None:
        return _ended(pod, pod.ended, assessment)
    if problem := problem_of(pod):
        # A node may become free, but not for ever.
        late = problem.phase == PENDING and _timed_out(observation, pod.created)
        return PhaseAndReady(DEGRADED if late else problem.phase, not_ready(problem.reason, problem.message))
    # A scheduled run ends with the spec it began with; the next one takes the new spec.
    if assessment.spec_hash and pod.spec_hash != assessment.spec_hash and not assessment.schedule:
        text = f"pod {pod.name} still runs an earlier generation of the spec"
        return PhaseAndReady(STARTING, not_ready("Updating", text))
    if not report:
        return _without_report(observation, pod)
    return _reported(observation, assessment, pod, report)


def _blocked(observation: Observation, assessment: Assessment, pod: Pod | None) -> PhaseAndReady | None:
    """The sink is stopped or suspended, or the operator cannot create what it needs."""
    if assessment.stopped:
        return _without_driver(observation, STOPPED, "Stopped", "Stopping", "spec.state is Stopped; no driver runs")
    if assessment.refused and assessment.previous_workload is None:
        return refused_without_driver(assessment)
    if assessment.name_conflict:
        text = f"{assessment.name_conflict} exists and does not belong to this sink; delete it or rename the sink"
        return PhaseAndReady(PENDING, not_ready("NameTaken", text))
    if observation.refused:
        text = f"the API server refused an object of this sink: {observation.refused}"
        return PhaseAndReady(DEGRADED if pod else PENDING, not_ready("Refused", text))
    if assessment.suspended and not assessment.waiting_for:
        return _without_driver(observation, PAUSED, "Paused", "Pausing", "spec.state is Paused; no run starts")
    return None


def _without_driver(observation: Observation, phase: str, reason: str, until_then: str, text: str) -> PhaseAndReady:
    left = [pod for pod in observation.pods_of(DRIVER) if pod.ended is None]
    if left:
        return PhaseAndReady(phase, not_ready(until_then, f"pod {left[0].name} is shutting down"))
    return PhaseAndReady(phase, not_ready(reason, text))


def _without_pod(observation: Observation, assessment: Assessment) -> PhaseAndReady:
    if assessment.waiting_for:
        return PhaseAndReady(STARTING, not_ready("WaitingForFormerDriver", assessment.waiting_for))
    job = assessment.runs.newest if assessment.runs else None
    if job is not None:
        return _job_without_pod(observation, job)
    if assessment.schedule:
        text = f"no run has started yet; Kubernetes runs the schedule {assessment.schedule}"
        return PhaseAndReady(PENDING, not_ready("WaitingForSchedule", text))
    if why := _replica_failure(observation):
        return PhaseAndReady(PENDING, not_ready("FailedCreate", f"the Deployment cannot create its pod: {why}"))
    return PhaseAndReady(PENDING, _NO_POD_YET)


def _job_without_pod(observation: Observation, job: Child) -> PhaseAndReady:
    """The status of a Job does not say why it has no pod: a quota, a policy, a missing account. Its events do."""
    if _timed_out(observation, job.created):
        text = f"Job {job.name} has had no pod since {job.created}; see `kubectl describe job {job.name}`"
        return PhaseAndReady(DEGRADED, not_ready("NotStarting", text))
    return PhaseAndReady(PENDING, _NO_POD_YET)


def _ended_without_pod(observation: Observation, assessment: Assessment) -> PhaseAndReady:
    """The pod of an ended run was removed: its last status stays."""
    phase = COMPLETED if assessment.result == JOB_COMPLETE else FAILED
    status = observation.resource.status
    before = find(status, READY)
    if before is not None and status.get("phase") == phase and before.get("reason") != SPEC_REFUSED:
        return PhaseAndReady(phase, parse_condition(before))
    if phase == COMPLETED:
        text = f"the run completed, and its pod was removed{_next_run(assessment)}"
        return PhaseAndReady(phase, Condition(READY, "True", "Completed", text))
    text = f"the run failed, and its pod was removed{_next_run(assessment)}"
    return PhaseAndReady(phase, not_ready("DriverFailed", text))


def _ended(pod: Pod, end: ContainerExit, assessment: Assessment) -> PhaseAndReady:
    done = assessment.runs is not None and end.code == 0 and not assessment.result
    if assessment.result == JOB_COMPLETE or done:
        text = f"all records that were in Kafka when the run started are in the bucket{_next_run(assessment)}"
        return PhaseAndReady(COMPLETED, Condition(READY, "True", "Completed", text))
    newest = assessment.runs.newest if assessment.runs else None
    if assessment.result == JOB_FAILED and newest is not None:
        failed = failure_of(newest, pod)
        return PhaseAndReady(FAILED, not_ready(failed.reason, f"{failed.message}{_next_run(assessment)}"))
    if removal := removal_of(pod):
        return PhaseAndReady(removal.phase, not_ready(removal.reason, removal.message))
    text = f"pod {pod.name} failed, and Kubernetes retries it: {last_report_of(end).message}"
    return PhaseAndReady(DEGRADED, not_ready("TryingAgain", text))


def _next_run(assessment: Assessment) -> str:
    return f"; the next run follows the schedule {assessment.schedule}" if assessment.schedule else ""


def _without_report(observation: Observation, pod: Pod) -> PhaseAndReady:
    if not pod.ready:
        if pod.phase == "Pending" and _timed_out(observation, pod.created):
            text = f"pod {pod.name} has not started since {pod.created}; see `kubectl describe pod {pod.name}`"
            return PhaseAndReady(DEGRADED, not_ready("NotStarting", text))
        return PhaseAndReady(STARTING, not_ready("Starting", f"pod {pod.name} is starting"))
    if removal := removal_of(pod):
        return PhaseAndReady(removal.phase, not_ready(removal.reason, removal.message))
    reported = observation.report is not None and observation.report.pod == pod.name
    if not observation.report_problem and not reported:
        return PhaseAndReady(STARTING, not_ready("Starting", f"waiting for the first report of pod {pod.name}"))
    why = observation.report_problem or "its report has stopped changing"
    return PhaseAndReady(DEGRADED, Condition(READY, "Unknown", "NoReport", f"no report from pod {pod.name}: {why}"))


def _reported(observation: Observation, assessment: Assessment, pod: Pod, report: Document) -> PhaseAndReady:
    if problem := _executor_problem(observation):
        return PhaseAndReady(problem.phase, not_ready(problem.reason, problem.message))
    found = find(report, READY)
    ready = parse_condition(found) if found else not_ready("NoReport", "the report lacks the condition Ready")
    if ready.status == "True" and (mismatch := _generation_mismatch(observation, assessment, report)):
        # The pod's template is the newest, but its node gave it an older copy of the ConfigMap.
        return PhaseAndReady(STARTING, not_ready("Updating", f"pod {pod.name} {mismatch}"))
    return PhaseAndReady(report["phase"], ready)


def _generation_mismatch(observation: Observation, assessment: Assessment, report: Document) -> str:
    """Empty if the report is about the spec that shall run. While a spec is refused, an earlier one runs."""
    generation, reported = observation.resource.generation, report.get("observedGeneration")
    if reported == generation or assessment.sink is None or assessment.schedule:
        return ""
    return f"reports generation {reported or 'unknown'} of the spec, not {generation}; delete the pod if this persists"


def start_deadlines(observation: Observation, assessment: Assessment) -> list[float]:
    """Seconds until a start times out: no event of the API server follows then."""
    begun = [pod.created for pod in observation.pods_of(DRIVER) if pod.phase == "Pending"]
    begun += [job.created for job in (assessment.runs.active if assessment.runs else ())]
    ends = [datetime.fromisoformat(since) + START_TIMEOUT for since in begun if since]
    return [(end - observation.now).total_seconds() + 1 for end in ends if end >= observation.now]


def _timed_out(observation: Observation, since: str) -> bool:
    return bool(since) and observation.now - datetime.fromisoformat(since) > START_TIMEOUT


def _replica_failure(observation: Observation) -> str:
    """Why the Deployment cannot create its pod: a quota, a policy, a missing account."""
    for child in observation.children:
        for condition in child.document.get("status", {}).get("conditions") or ():
            if child.kind == "Deployment" and (condition["type"], condition["status"]) == ("ReplicaFailure", "True"):
                return str(condition.get("message", condition.get("reason", "")))
    return ""


def _executor_problem(observation: Observation) -> PodProblem | None:
    """Set while no executor runs and one of them cannot start or was killed."""
    pods = [pod for pod in observation.pods_of(EXECUTOR) if pod.deleting is None]
    if any(pod.phase == "Running" for pod in pods):
        return None
    for pod in pods:
        if out_of_memory(pod.ended):
            return PodProblem("ExecutorOOMKilled", out_of_memory_text(pod), DEGRADED)
        if problem := problem_of(pod):
            return PodProblem(f"Executor{problem.reason}", problem.message, DEGRADED)
    return None
