"""Ready while the spec is refused. What the previous spec started keeps running."""

from __future__ import annotations

import re

from s3sink_api.conditions import DEGRADED, FAILED, LONGEST_MESSAGE, PAUSED, SPEC_REFUSED
from s3sink_operator.decide.assessment import Assessment
from s3sink_operator.decide.children.child_names import MANIFEST, child_name
from s3sink_operator.decide.conditions import Condition, PhaseAndReady, not_ready
from s3sink_operator.decide.runs import JOB_COMPLETE
from s3sink_operator.values.objects import Child, Document
from s3sink_operator.values.observation import Observation

_LONGEST_REST = 1024
# Only names stand before it in the manifest, so the first match is the resource's own generation.
_GENERATION = re.compile(r"^  generation: (\d+)$", re.MULTILINE)
_STILL_RUNNING = {
    "Deployment": "the driver keeps running with",
    "Job": "the run continues with",
    "CronJob": "runs continue with",
}
_NOT_READY = {"Deployment": "the driver stays on", "Job": "the run has", "CronJob": "runs stay on"}


def refused_without_driver(assessment: Assessment) -> PhaseAndReady:
    return PhaseAndReady(FAILED, _refused(assessment, "no driver runs"))


def refused(observation: Observation, assessment: Assessment, driver: PhaseAndReady, report: Document) -> PhaseAndReady:
    """From phase and Ready of what still runs. The message begins with the mistake: a person can correct that."""
    if assessment.previous_workload is None:
        return driver
    phase, ready = driver
    wanted = observation.resource.spec.get("state")
    previous = _previous_spec(observation, assessment.previous_workload, report)
    rest = [_what_runs(assessment, assessment.previous_workload, ready, previous)]
    if wanted == "Paused" and phase != PAUSED:
        rest.append("spec.state: Paused takes effect once the spec is valid, Stopped at once")
    if not (phase == FAILED or wanted == phase == PAUSED):
        phase = DEGRADED
    return PhaseAndReady(phase, _refused(assessment, "; ".join(rest)))


def _refused(assessment: Assessment, rest: str) -> Condition:
    rest = rest[:_LONGEST_REST]
    mistakes = assessment.accepted.message[: LONGEST_MESSAGE - len(rest) - 2]
    return not_ready(SPEC_REFUSED, f"{mistakes}; {rest}")


def _what_runs(assessment: Assessment, workload: Child, ready: Condition, previous: str) -> str:
    if workload.kind == "Job" and assessment.result == JOB_COMPLETE:
        return f"the run with {previous} is complete"
    if workload.kind == "CronJob" and workload.document["spec"].get("suspend"):
        return f"{previous} is paused; no run starts"
    if ready.status == "True":
        return f"{_STILL_RUNNING[workload.kind]} {previous}"
    return f"{_NOT_READY[workload.kind]} {previous}, not ready ({ready.reason}: {ready.message})"


def _previous_spec(observation: Observation, workload: Child, report: Document) -> str:
    """The driver reports which one it runs. Without a report, and for future runs, the ConfigMap says it."""
    reported = report.get("observedGeneration") if workload.kind != "CronJob" else None
    generation = reported or _applied_generation(observation)
    if generation == observation.resource.generation:
        return "this spec, which another version of the operator accepted"
    return f"the spec of generation {generation}" if generation else "the previous spec"


def _applied_generation(observation: Observation) -> int | None:
    found = observation.child("ConfigMap", child_name(observation.resource.key.name))
    if found is None or found.owner != observation.resource.uid:
        return None
    text = str((found.document.get("data") or {}).get(MANIFEST, ""))
    generation = _GENERATION.search(text)
    return int(generation[1]) if generation else None
