"""What the facts amount to: is the spec valid, must anything run, is something in the way?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from s3sink_job.spec import FieldError, S3Sink, SpecError, parse
from s3sink_operator.decide.children import manifest
from s3sink_operator.decide.conditions import ACCEPTED, LONGEST_MESSAGE, Condition
from s3sink_operator.decide.pods import child_name
from s3sink_operator.decide.runs import Runs
from s3sink_operator.decide.templates import template_errors
from s3sink_operator.model import DRIVER, Child, Document, Observed, Resource

WORKLOADS = {"Continuous": "Deployment", "Once": "Job", "Scheduled": "CronJob"}
OVERDUE = timedelta(seconds=30)
"""How long after its grace period a pod that is still there stops being waited for: its node is gone."""
_ROOM_FOR_THE_REST = 64


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
    runs: Runs | None = None
    """Of a sink whose driver ends; also of one whose spec is not valid, if that of the spec before did."""
    spec_hash: str = ""
    """Of the spec that shall run; empty where that does not matter."""
    kept: Child | None = None
    """What runs the spec before a refused one."""

    @property
    def refused(self) -> bool:
        """The spec has no effect. That it is Stopped has, whatever else it says."""
        return self.sink is None and not self.stopped

    @property
    def result(self) -> str:
        return self.runs.result if self.runs else ""

    @property
    def schedule(self) -> str:
        """Of the spec, or, if that is not valid, of the CronJob that is there; empty if runs are not scheduled."""
        if self.sink is not None:
            return self.sink.spec.schedule or ""
        cron = self.runs.cron if self.runs else None
        return str(cron.document["spec"]["schedule"]) if cron else ""

    @property
    def suspended(self) -> bool:
        """A pause in which there is no driver: between runs there is none to tell."""
        return self.sink is not None and (self.sink.spec.run, self.sink.spec.state) == ("Scheduled", "Paused")


def accept(resource: Resource, *, allow_unsafe: bool = False) -> tuple[S3Sink | None, Condition]:
    try:
        sink = parse(manifest(resource))
        errors = tuple(template_errors(sink, allow_unsafe=allow_unsafe))
    except SpecError as error:
        sink, errors = None, error.errors
    if errors:
        return None, Condition(ACCEPTED, "False", "InvalidSpec", _listed(errors))
    return sink, Condition(ACCEPTED, "True", "Valid", "the spec is valid")


def _listed(errors: Iterable[FieldError]) -> str:
    """As many as there is room for, and how many there are beyond."""
    texts = [str(error) for error in errors]
    kept: list[str] = []
    room = LONGEST_MESSAGE - _ROOM_FOR_THE_REST
    for text in texts:
        room -= len(text) + 2
        if kept and room < 0:
            break
        kept.append(text)
    more = [f"and {len(texts) - len(kept)} more"] if len(kept) < len(texts) else []
    return "; ".join([*kept, *more])


def kept(observed: Observed) -> Child | None:
    """The workload of an earlier spec, unless it is going."""
    name, uid = child_name(observed.resource.key.name), observed.resource.uid
    found = (observed.child(kind, name) for kind in WORKLOADS.values())
    return next((c for c in found if c is not None and c.owner == uid and not c.deleting), None)


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
