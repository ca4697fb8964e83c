"""What an observation means: is the spec valid, shall anything run, does something block it?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from s3sink_api.labels import DRIVER
from s3sink_api.spec import S3Sink
from s3sink_operator.decide.children.child_names import child_name
from s3sink_operator.decide.children.workloads import WORKLOADS
from s3sink_operator.decide.conditions import Condition
from s3sink_operator.decide.runs import Runs, runs_of
from s3sink_operator.values.objects import Child, Document
from s3sink_operator.values.observation import Observation

OVERDUE = timedelta(seconds=30)
"""A pod that is still there so long after its grace period is not waited for: its node is gone."""


@dataclass(frozen=True)
class Assessment:
    accepted: Condition
    sink: S3Sink | None
    """None if the spec is not valid."""
    stopped: bool
    name_conflict: str = ""
    """An object of another owner that has the name of one of ours."""
    waiting_for: str = ""
    """What the new driver has to wait for."""
    runs: Runs | None = None
    """Of a sink whose driver ends. While the spec is not valid, those of the previous spec."""
    spec_hash: str = ""
    """Of the spec that shall run; empty where none shall."""
    previous_workload: Child | None = None
    """Runs the previous spec while this one is refused."""

    @property
    def refused(self) -> bool:
        """The spec has no effect. `state: Stopped` takes effect even in a spec that is not valid."""
        return self.sink is None and not self.stopped

    @property
    def result(self) -> str:
        return self.runs.result if self.runs else ""

    @property
    def schedule(self) -> str:
        """Of the spec or, if that is not valid, of the CronJob there is; empty if runs are not scheduled."""
        if self.sink is not None:
            return self.sink.spec.schedule or ""
        cron = self.runs.cron if self.runs else None
        return str(cron.document["spec"]["schedule"]) if cron else ""

    @property
    def suspended(self) -> bool:
        """A scheduled sink is paused by its CronJob: there is no driver that could report it."""
        return self.sink is not None and (self.sink.spec.run, self.sink.spec.state) == ("Scheduled", "Paused")


def runs_of_spec(observation: Observation, sink: S3Sink) -> Runs | None:
    """Without those of a former `spec.run`, which are being deleted."""
    found = runs_of(observation) if sink.spec.ends else None
    return found if found is not None and (found.cron is None) == (sink.spec.run == "Once") else None


def previous_workload(observation: Observation) -> Child | None:
    """The workload of an earlier spec, unless it is being deleted."""
    name, uid = child_name(observation.resource.key.name), observation.resource.uid
    found = (observation.child(kind, name) for kind in WORKLOADS.values())
    return next((c for c in found if c is not None and c.owner == uid and not c.deleting), None)


def name_conflict(observation: Observation, desired: Sequence[Document]) -> str:
    for document in desired:
        found = observation.child(document["kind"], document["metadata"]["name"])
        if found is not None and found.owner != observation.resource.uid:
            return f"{found.kind} {found.name}"
    return ""


def waiting_for(observation: Observation, sink: S3Sink) -> str:
    """A former driver that is shutting down: it and a new one would fence each other."""
    wanted = WORKLOADS[sink.spec.run]
    for kind in WORKLOADS.values():
        found = observation.child(kind, child_name(sink.metadata.name))
        ours = found is not None and found.owner == observation.resource.uid
        if found is not None and ours and (found.deleting or kind != wanted):
            return f"waiting until {kind} {found.name} is deleted"
    if observation.child(wanted, child_name(sink.metadata.name)) is not None:
        return ""
    for pod in observation.pods_of(DRIVER):
        if pod.deleting is not None and pod.ended is None and observation.now < pod.deleting + OVERDUE:
            return f"waiting until pod {pod.name} of the former driver has shut down"
    return ""
