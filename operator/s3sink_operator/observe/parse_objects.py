"""Documents of the API server as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from s3sink_api.labels import DRIVER, EXECUTOR, ROLE_LABEL, SPEC_HASH
from s3sink_operator.values.objects import Child, ContainerExit, Document, Pod, SinkKey, SinkResource

JOB_LABEL = "batch.kubernetes.io/job-name"
"""Kubernetes sets it on the pods of a Job."""


def parse_sink(document: Document) -> SinkResource:
    metadata = document["metadata"]
    return SinkResource(
        key=SinkKey(metadata["namespace"], metadata["name"]),
        uid=metadata["uid"],
        generation=metadata["generation"],
        spec=document.get("spec", {}),
        status=document.get("status", {}),
        annotations=metadata.get("annotations") or {},
        deleting="deletionTimestamp" in metadata,
        created=metadata.get("creationTimestamp", ""),
    )


def parse_child(kind: str, document: Document) -> Child:
    metadata = document["metadata"]
    owners = metadata.get("ownerReferences") or ()
    owner = next((str(o["uid"]) for o in owners if o.get("controller")), "")
    return Child(kind, metadata["name"], document, owner, "deletionTimestamp" in metadata)


def parse_pod(document: Document) -> Pod:
    metadata, status = document["metadata"], document.get("status", {})
    container = _main_container(status)
    state, last = container.get("state", {}), container.get("lastState", {})
    waiting = state.get("waiting", {})
    phase = status.get("phase", "Pending")
    deleting = metadata.get("deletionTimestamp")
    reason, reason_message = _removal_reason(status)
    return Pod(
        name=metadata["name"],
        role=(metadata.get("labels") or {}).get(ROLE_LABEL, ""),
        phase=phase,
        ip=status.get("podIP", ""),
        created=metadata.get("creationTimestamp", ""),
        ready=bool(container.get("ready", False)),
        deleting=datetime.fromisoformat(deleting) if deleting else None,
        spec_hash=(metadata.get("annotations") or {}).get(SPEC_HASH, ""),
        restarts=int(container.get("restartCount", 0)),
        waiting=waiting.get("reason", ""),
        waiting_message=waiting.get("message", ""),
        unschedulable=_unschedulable(status),
        reason=reason,
        reason_message=reason_message,
        job=(metadata.get("labels") or {}).get(JOB_LABEL, ""),
        last_exit=_exit(last.get("terminated")),
        ended=_exit(state.get("terminated")) if phase in {"Succeeded", "Failed"} else None,
    )


def _main_container(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of the driver or the executor; a pod template may add others."""
    found: Sequence[Mapping[str, Any]] = status.get("containerStatuses") or ()
    return next((c for c in found if c.get("name") in {DRIVER, EXECUTOR}), found[0] if found else {})


def _removal_reason(status: Mapping[str, Any]) -> tuple[str, str]:
    """Reason and message if the whole pod ended or is being removed."""
    if status.get("reason"):
        return str(status["reason"]), str(status.get("message") or "")
    for condition in status.get("conditions") or ():
        if (condition.get("type"), condition.get("status")) == ("DisruptionTarget", "True"):
            return str(condition.get("reason") or ""), str(condition.get("message") or "")
    return "", ""


def _exit(terminated: Mapping[str, Any] | None) -> ContainerExit | None:
    if not terminated:
        return None
    fields = (terminated.get(name) or "" for name in ("reason", "message", "finishedAt"))
    return ContainerExit(int(terminated.get("exitCode", -1)), *fields)


def _unschedulable(status: Mapping[str, Any]) -> str:
    for condition in status.get("conditions") or ():
        if (condition.get("type"), condition.get("status")) == ("PodScheduled", "False"):
            return str(condition.get("message") or condition.get("reason") or "no node fits")
    return ""
