"""One sink, all of it: what to apply, what to delete, what to say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from s3sink_operator.decide.children import supporting, up_to_date, workload
from s3sink_operator.decide.conditions import transitions
from s3sink_operator.decide.situation import (
    WORKLOADS,
    Situation,
    accept,
    holding,
    job_result,
    spec_hash,
    taken,
)
from s3sink_operator.decide.status import new_status, worth_writing
from s3sink_operator.model import Child, Decision, Document, Observed
from s3sink_operator.settings import Settings

SOON = 2.0


def decide(observed: Observed, settings: Settings) -> Decision:
    """Deciding again after the decision was carried out decides nothing."""
    resource = observed.resource
    if resource.deleting:
        # The garbage collector takes the children by their ownerReferences.
        return Decision()
    sink, accepted = accept(resource)
    stopped = resource.spec.get("state") == "Stopped"
    apply: list[Document] = []
    delete: list[Child] = []
    situation = Situation(accepted, sink, stopped)
    if stopped:
        # Wins over everything, a spec that is not valid included.
        delete += _workloads(observed)
    elif sink is not None:
        needed = supporting(resource, sink, settings)
        driver = workload(resource, sink, settings)
        job = observed.child("Job", driver["metadata"]["name"])
        situation = Situation(
            accepted,
            sink,
            stopped,
            taken=taken(observed, (*needed, driver)),
            holding=holding(observed, sink),
            job=job_result(job),
            spec_hash=spec_hash(driver),
        )
        if not situation.taken:
            apply += [document for document in needed if _differs(observed, document)]
            delete += _left_over(observed, (*needed, driver))
            if job is not None and driver["kind"] == "Job" and spec_hash(job.document) != situation.spec_hash:
                # A Job cannot change: another spec is another run. A changed operator alone is not.
                delete.append(job)
            elif not situation.holding and (job is None or driver["kind"] != "Job"):
                apply += [driver] if _differs(observed, driver) else []
    delete = [child for child in delete if not child.deleting]
    status = new_status(observed, situation, settings)
    writing = worth_writing(observed, status, settings.figures_every)
    return Decision(
        apply=tuple(apply),
        delete=tuple(delete),
        status=status if writing else None,
        events=transitions(resource.status, status) if writing else (),
        phase=str(status["phase"]),
        look_again=SOON if apply or delete or situation.holding or situation.taken else None,
    )


def _differs(observed: Observed, document: Mapping[str, Any]) -> bool:
    found = observed.child(document["kind"], document["metadata"]["name"])
    return found is None or not up_to_date(document, found)


def _workloads(observed: Observed) -> list[Child]:
    return [c for c in observed.children if c.kind in WORKLOADS.values() and c.owner == observed.resource.uid]


def _left_over(observed: Observed, desired: tuple[Document, ...]) -> list[Child]:
    """Ours, and of no use any more: the other kind of workload, the rights of Cluster mode."""
    wanted = {(d["kind"], d["metadata"]["name"]) for d in desired}
    return [c for c in observed.children if c.owner == observed.resource.uid and (c.kind, c.name) not in wanted]
