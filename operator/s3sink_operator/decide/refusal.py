"""A spec that is refused while something of the spec before it is there: that goes on, and Ready is False."""

from __future__ import annotations

import re

from s3sink_operator.decide.conditions import LONGEST_MESSAGE, READY, SPEC_REFUSED, Condition
from s3sink_operator.decide.pods import MANIFEST, child_name
from s3sink_operator.decide.situation import Situation
from s3sink_operator.model import Child, Document, Observed

_LONGEST_REST = 1024
# Before it come the resource's names alone, so that the first one is the resource's own.
_GENERATION = re.compile(r"^  generation: (\d+)$", re.MULTILINE)
_GOES_ON = {"Deployment": "the driver goes on with", "Job": "the run goes on with", "CronJob": "runs go on with"}
_STAYS = {"Deployment": "the driver keeps", "Job": "the run has", "CronJob": "runs keep"}


def nothing_runs(situation: Situation) -> tuple[str, Condition]:
    return "Failed", _refused(situation, "nothing runs")


def refusal(
    observed: Observed, situation: Situation, driver: tuple[str, Condition], seen: Document
) -> tuple[str, Condition]:
    """Phase and Ready, from those of what is kept. The cause comes first: it is what a person can mend."""
    if situation.kept is None:
        return driver
    phase, ready = driver
    asked = observed.resource.spec.get("state")
    rest = [_kept(situation, situation.kept, ready, _whose(observed, situation.kept, seen))]
    if asked == "Paused" and phase != "Paused":
        rest.append("spec.state: Paused waits for a spec that is valid, Stopped would not")
    if not (phase == "Failed" or asked == phase == "Paused"):
        phase = "Degraded"
    return phase, _refused(situation, "; ".join(rest))


def _refused(situation: Situation, rest: str) -> Condition:
    rest = rest[:_LONGEST_REST]
    cause = situation.accepted.message[: LONGEST_MESSAGE - len(rest) - 2]
    return Condition(READY, "False", SPEC_REFUSED, f"{cause}; {rest}")


def _kept(situation: Situation, kept: Child, ready: Condition, whose: str) -> str:
    if kept.kind == "Job" and situation.result == "Complete":
        return f"the run with {whose} is complete"
    if kept.kind == "CronJob" and kept.document["spec"].get("suspend"):
        return f"{whose} is paused: no run starts"
    if ready.status == "True":
        return f"{_GOES_ON[kept.kind]} {whose}"
    return f"{_STAYS[kept.kind]} {whose} ({ready.reason}: {ready.message})"


def _whose(observed: Observed, kept: Child, seen: Document) -> str:
    """Which spec goes on: what its driver reports; without a report, and for runs to come, that of the ConfigMap."""
    told = seen.get("observedGeneration") if kept.kind != "CronJob" else None
    generation = told or _applied(observed)
    if generation == observed.resource.generation:
        return "this spec, which another version of the operator accepted"
    return f"the spec of generation {generation}" if generation else "the spec before it"


def _applied(observed: Observed) -> int | None:
    found = observed.child("ConfigMap", child_name(observed.resource.key.name))
    if found is None or found.owner != observed.resource.uid:
        return None
    text = str((found.document.get("data") or {}).get(MANIFEST, ""))
    generation = _GENERATION.search(text)
    return int(generation[1]) if generation else None
