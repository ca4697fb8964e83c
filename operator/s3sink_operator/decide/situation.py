"""What the facts amount to: is the spec valid, must anything run, is something in the way?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from s3sink_job.spec import S3Sink, SpecError, parse
from s3sink_operator.decide.children import manifest
from s3sink_operator.decide.conditions import ACCEPTED, Condition
from s3sink_operator.decide.pods import child_name
from s3sink_operator.decide.templates import template_errors
from s3sink_operator.model import DRIVER, SPEC_HASH, Child, Document, Observed, Resource

WORKLOADS = {"Continuous": "Deployment", "Once": "Job"}
OVERDUE = timedelta(seconds=30)
"""How long after its grace period a pod that is still there stops being waited for: its node is gone."""


@dataclass(frozen=True)
class Situation:
    accepted: Condition
    sink: S3Sink | None
    """None if the spec is not valid."""
    stopped: bool
    taken: str = ""
    """An object of somebody else that has the name of one of ours."""
    holding: str = ""
    """Why the driver is not started yet."""
    job: str = ""
    """Complete or Failed, once the Job is."""
    spec_hash: str = ""
    """Of the spec that shall run; empty where that does not matter."""


def accept(resource: Resource) -> tuple[S3Sink | None, Condition]:
    try:
        sink = parse(manifest(resource))
        errors = tuple(template_errors(sink))
    except SpecError as error:
        sink, errors = None, error.errors
    if errors:
        return None, Condition(ACCEPTED, "False", "InvalidSpec", "; ".join(map(str, errors)))
    return sink, Condition(ACCEPTED, "True", "Valid", "the spec is valid")


def taken(observed: Observed, desired: tuple[Document, ...]) -> str:
    """A name that is in use already, by an object that is not this sink's."""
    for document in desired:
        found = observed.child(document["kind"], document["metadata"]["name"])
        if found is not None and found.owner != observed.resource.uid:
            return f"{found.kind} {found.name}"
    return ""


def holding(observed: Observed, sink: S3Sink) -> str:
    """A driver that is on its way out: a second one beside it would only be fenced, or fence it."""
    wanted = WORKLOADS[sink.spec.run]
    for kind in WORKLOADS.values():
        found = observed.child(kind, child_name(sink.metadata.name))
        ours = found is not None and found.owner == observed.resource.uid
        if found is not None and ours and (found.deleting or kind != wanted):
            return f"{kind} {found.name} is going"
    if observed.child(wanted, child_name(sink.metadata.name)) is not None:
        return ""
    for pod in observed.pods_of(DRIVER):
        if pod.deleting is not None and pod.ended is None and observed.now < pod.deleting + OVERDUE:
            return f"pod {pod.name} of an earlier driver is ending"
    return ""


def job_result(job: Child | None) -> str:
    conditions = job.document.get("status", {}).get("conditions") or () if job else ()
    ends = {"Complete", "Failed"}
    return next((str(c["type"]) for c in conditions if c["type"] in ends and c["status"] == "True"), "")


def spec_hash(workload: Document) -> str:
    annotations = workload["spec"]["template"]["metadata"].get("annotations") or {}
    return str(annotations.get(SPEC_HASH, ""))
