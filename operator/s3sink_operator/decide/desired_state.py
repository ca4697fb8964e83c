"""The decision about one sink: what to apply, what to delete, which status and events to write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from s3sink_api.labels import DRIVER
from s3sink_api.spec import S3Sink
from s3sink_operator.decide.assessment import (
    Assessment,
    name_conflict,
    previous_workload,
    runs_of_spec,
    waiting_for,
)
from s3sink_operator.decide.children.drift import same_pods, up_to_date
from s3sink_operator.decide.children.supporting_objects import supporting_objects
from s3sink_operator.decide.children.workloads import WORKLOADS, rolled_out, spec_hash, workload
from s3sink_operator.decide.conditions import Condition
from s3sink_operator.decide.runs import runs_of
from s3sink_operator.decide.status.events import events_between
from s3sink_operator.decide.status.missed_runs import missed_run_deadlines
from s3sink_operator.decide.status.new_status import figures_due, new_status, worth_writing
from s3sink_operator.decide.status.readiness import start_deadlines
from s3sink_operator.decide.validation import validate
from s3sink_operator.settings import Settings
from s3sink_operator.values.decision import Decision
from s3sink_operator.values.objects import Child, Document
from s3sink_operator.values.observation import Observation

SOON = 2.0
HELD_AGAIN = 30.0
"""Seconds until a held rollout is decided again: there may be a thousand of them."""


@dataclass(frozen=True)
class _Changes:
    apply: tuple[Document, ...] = ()
    delete: tuple[Child, ...] = ()
    rollout: bool = False
    """Restarts a healthy driver whose sink did not change."""


def decide(observation: Observation, settings: Settings, *, hold_rollout: bool = False) -> Decision:
    """Idempotent: once the decision has been carried out, the next one is empty.

    With `hold_rollout` a healthy driver whose sink did not change is left alone.
    """
    resource = observation.resource
    if resource.deleting:
        # The garbage collector deletes the children by their ownerReferences.
        return Decision()
    sink, accepted = validate(resource, allow_unsafe_templates=settings.allow_unsafe_templates)
    if resource.spec.get("state") == "Stopped":
        # Takes effect even in a spec that is not valid.
        assessment = _without_new_workload(observation, accepted, sink, stopped=True)
        changes = _Changes(delete=_workloads(observation))
    elif sink is None:
        assessment = _without_new_workload(observation, accepted, sink, stopped=False)
        changes = _Changes()
    else:
        assessment, changes = _desired(observation, settings, sink, accepted, hold_rollout=hold_rollout)
    delete = tuple(child for child in changes.delete if not child.deleting)
    status = new_status(observation, assessment, settings)
    writing = worth_writing(observation, status, settings.figures_every)
    held = changes.rollout and hold_rollout
    pending = bool(changes.apply or delete or assessment.waiting_for)
    again = [SOON] if pending or assessment.name_conflict else []
    again += [HELD_AGAIN] if held else []
    again += start_deadlines(observation, assessment) + missed_run_deadlines(observation, assessment)
    if not writing and dict(status) != dict(resource.status):
        again.append(figures_due(observation, settings.figures_every))
    return Decision(
        apply=changes.apply,
        delete=delete,
        status=status if writing else None,
        events=events_between(resource.status, status) if writing else (),
        requeue_after=min(again, default=None),
        rollout=changes.rollout and not held,
        settled=not pending and _rolled_out(observation),
    )


def _without_new_workload(
    observation: Observation, accepted: Condition, sink: S3Sink | None, *, stopped: bool
) -> Assessment:
    previous = previous_workload(observation)
    return Assessment(accepted, sink, stopped, runs=runs_of(observation), previous_workload=previous)


def _desired(
    observation: Observation, settings: Settings, sink: S3Sink, accepted: Condition, *, hold_rollout: bool
) -> tuple[Assessment, _Changes]:
    supporting = supporting_objects(observation.resource, sink)
    driver = workload(observation.resource, sink, settings, supporting)
    desired = (*supporting, driver)
    assessment = Assessment(
        accepted,
        sink,
        stopped=False,
        name_conflict=name_conflict(observation, desired),
        waiting_for=waiting_for(observation, sink),
        runs=runs_of_spec(observation, sink),
        spec_hash=spec_hash(driver),
    )
    if assessment.name_conflict:
        return assessment, _Changes()
    rollout = not assessment.waiting_for and _restarts_healthy_driver(observation, driver)
    held_back = ("Deployment", "ConfigMap") if rollout and hold_rollout else ()
    # A Job cannot be changed: it is there, or it is deleted and made again.
    job_exists = assessment.runs is not None and not assessment.schedule
    wanted = supporting if assessment.waiting_for or job_exists else desired
    apply = [d for d in wanted if d["kind"] not in held_back and _differs(observation, d)]
    delete = (*_left_over(observation, desired), *_runs_to_end(assessment))
    return assessment, _Changes(tuple(apply), delete, rollout)


def _runs_to_end(assessment: Assessment) -> tuple[Child, ...]:
    if assessment.runs is None:
        return ()
    if assessment.suspended:
        return assessment.runs.active
    job = assessment.runs.newest
    # A new spec is a new run. A new version of the operator is not.
    changed = not assessment.schedule and job is not None and spec_hash(job.document) != assessment.spec_hash
    return (job,) if job is not None and changed else ()


def _restarts_healthy_driver(observation: Observation, driver: Document) -> bool:
    """Whether applying it restarts a healthy driver although its sink did not change."""
    found = observation.child(driver["kind"], driver["metadata"]["name"])
    if driver["kind"] != "Deployment" or found is None or same_pods(driver, found):
        return False
    healthy = any(pod.ready and pod.deleting is None for pod in observation.pods_of(DRIVER))
    return healthy and spec_hash(found.document) == spec_hash(driver)


def _rolled_out(observation: Observation) -> bool:
    """Also without a Deployment: there is nothing to wait for."""
    return all(rolled_out(child) for child in _owned(observation) if child.kind == "Deployment")


def _differs(observation: Observation, document: Mapping[str, Any]) -> bool:
    found = observation.child(document["kind"], document["metadata"]["name"])
    return found is None or not up_to_date(document, found)


def _owned(observation: Observation) -> list[Child]:
    return [child for child in observation.children if child.owner == observation.resource.uid]


def _workloads(observation: Observation) -> tuple[Child, ...]:
    return tuple(child for child in _owned(observation) if child.kind in WORKLOADS.values())


def _left_over(observation: Observation, desired: tuple[Document, ...]) -> list[Child]:
    """Children that the sink no longer needs: another kind of workload, the rights of Cluster mode."""
    wanted = {(d["kind"], d["metadata"]["name"]) for d in desired}
    return [child for child in _owned(observation) if (child.kind, child.name) not in wanted]
