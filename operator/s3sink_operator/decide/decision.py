"""One sink, all of it: what to apply, what to delete, what to say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from s3sink_job.spec import S3Sink
from s3sink_operator.decide.children import supporting, workload
from s3sink_operator.decide.conditions import transitions
from s3sink_operator.decide.drift import rolled_out, same_pods, spec_hash, up_to_date
from s3sink_operator.decide.readiness import still_patient
from s3sink_operator.decide.runs import Runs, runs_of
from s3sink_operator.decide.situation import WORKLOADS, Situation, accept, holding, kept, taken
from s3sink_operator.decide.status import figures_due, new_status, worth_writing
from s3sink_operator.model import DRIVER, Child, Decision, Document, Observed
from s3sink_operator.settings import Settings

SOON = 2.0
HELD_AGAIN = 30.0
"""Seconds until a driver that was left alone for the time being has its turn: there may be a thousand of them."""


def decide(observed: Observed, settings: Settings, *, hold_rolls: bool = False) -> Decision:
    """Deciding again after the decision was carried out decides nothing.

    With `hold_rolls` a driver that is well and whose sink did not change is left alone.
    """
    resource = observed.resource
    if resource.deleting:
        # The garbage collector takes the children by their ownerReferences.
        return Decision()
    sink, accepted = accept(resource, allow_unsafe=settings.allow_unsafe_templates)
    stopped = resource.spec.get("state") == "Stopped"
    apply: list[Document] = []
    delete: list[Child] = []
    rolls = False
    situation = Situation(accepted, sink, stopped, runs=runs_of(observed), kept=kept(observed))
    if stopped:
        # Wins over everything, a spec that is not valid included.
        delete += _workloads(observed)
    elif sink is not None:
        needed = supporting(resource, sink, settings)
        driver = workload(resource, sink, settings, needed)
        situation = Situation(
            accepted,
            sink,
            stopped,
            taken=taken(observed, (*needed, driver)),
            holding=holding(observed, sink),
            runs=_runs(observed, sink),
            spec_hash=spec_hash(driver),
        )
        if not situation.taken:
            rolls = not situation.holding and _rolls(observed, driver)
            held_back = ("Deployment", "ConfigMap") if rolls and hold_rolls else ()
            delete += [*_left_over(observed, (*needed, driver)), *_over(situation)]
            apply += [document for document in needed if _differs(observed, document)]
            if not situation.holding and not _job_is_there(situation):
                apply += [driver] if _differs(observed, driver) else []
            apply = [document for document in apply if document["kind"] not in held_back]
    delete = [child for child in delete if not child.deleting]
    status = new_status(observed, situation, settings)
    writing = worth_writing(observed, status, settings.figures_every)
    held = rolls and hold_rolls
    again = [SOON] if apply or delete or situation.holding or situation.taken else []
    again += [HELD_AGAIN] if held else []
    again += still_patient(observed, situation)
    if not writing and dict(status) != dict(resource.status):
        again.append(figures_due(observed, settings.figures_every))
    return Decision(
        apply=tuple(apply),
        delete=tuple(delete),
        status=status if writing else None,
        events=transitions(resource.status, status) if writing else (),
        look_again=min(again, default=None),
        rolls=rolls and not held,
        settled=not apply and not delete and not situation.holding and _rolled_out(observed),
    )


def _runs(observed: Observed, sink: S3Sink) -> Runs | None:
    """Those of the way the sink runs now; of another way there may be some that are going."""
    found = runs_of(observed) if sink.spec.ends else None
    return found if found is not None and (found.cron is None) == (sink.spec.run == "Once") else None


def _over(situation: Situation) -> tuple[Child, ...]:
    """Runs that must not go on."""
    if situation.runs is None:
        return ()
    if situation.suspended:
        return situation.runs.active
    job = situation.runs.newest
    # A Job cannot change: another spec is another run. A changed operator alone is not.
    another = not situation.schedule and job is not None and spec_hash(job.document) != situation.spec_hash
    return (job,) if job is not None and another else ()


def _job_is_there(situation: Situation) -> bool:
    return situation.runs is not None and not situation.schedule


def _rolls(observed: Observed, driver: Document) -> bool:
    """Whether to apply it restarts a driver that is well, for a cause that is not its sink's."""
    found = observed.child(driver["kind"], driver["metadata"]["name"])
    if driver["kind"] != "Deployment" or found is None or same_pods(driver, found):
        return False
    well = any(pod.ready and pod.deleting is None for pod in observed.pods_of(DRIVER))
    return well and spec_hash(found.document) == spec_hash(driver)


def _rolled_out(observed: Observed) -> bool:
    """Of a sink without a Deployment there is nothing to wait for."""
    ours = (c for c in observed.children if c.kind == "Deployment" and c.owner == observed.resource.uid)
    return all(rolled_out(deployment) for deployment in ours)


def _differs(observed: Observed, document: Mapping[str, Any]) -> bool:
    found = observed.child(document["kind"], document["metadata"]["name"])
    return found is None or not up_to_date(document, found)


def _workloads(observed: Observed) -> list[Child]:
    return [c for c in observed.children if c.kind in WORKLOADS.values() and c.owner == observed.resource.uid]


def _left_over(observed: Observed, desired: tuple[Document, ...]) -> list[Child]:
    """Ours, and of no use any more: the other kind of workload, the rights of Cluster mode."""
    wanted = {(d["kind"], d["metadata"]["name"]) for d in desired}
    return [c for c in observed.children if c.owner == observed.resource.uid and (c.kind, c.name) not in wanted]
