"""Looking: the resource, its children and pods from the API server, the driver's report from its pod."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from s3sink_operator.api import Api
from s3sink_operator.decide.children import selector
from s3sink_operator.decide.pods import PORT, child_name
from s3sink_operator.decide.reports import read_report
from s3sink_operator.decide.status import current_pod
from s3sink_operator.model import ROLE_LABEL, SPEC_HASH, Child, Document, Exit, Key, Observed, Pod, Report, Resource
from s3sink_operator.settings import Settings

KINDS = ("ConfigMap", "ServiceAccount", "Role", "RoleBinding", "Deployment", "Job")
LOOK_AFRESH = timedelta(minutes=5)
"""How long what was seen may be used again while no event tells of a change: the time until drift is put right
in kinds that are not watched."""
LARGEST_REPORT = 1 << 20


@dataclass
class _Seen:
    """What is remembered of one sink between two looks."""

    objects: Observed | None = None
    at: datetime | None = None
    report: Report | None = None
    written: datetime | None = None


@dataclass
class Observer:
    api: Api
    settings: Settings
    poll_failed: Callable[[], None]
    _seen: dict[Key, _Seen] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def observe(self, key: Key, *, afresh: bool) -> Observed | None:
        """None if the sink is gone. One thread at a time for each key."""
        with self._lock:
            seen = self._seen.setdefault(key, _Seen())
        now = datetime.now(UTC)
        if afresh or seen.objects is None or seen.at is None or now - seen.at > LOOK_AFRESH:
            seen.objects, seen.at = self._look(key, now), now
        if seen.objects is None:
            self.forget(key)
            return None
        problem = self._ask(seen)
        return replace(seen.objects, now=now, report=seen.report, report_problem=problem, written=seen.written)

    def changed(self, key: Key) -> None:
        """Something was written: what was seen is of no use any more."""
        with self._lock:
            if key in self._seen:
                self._seen[key].objects = None

    def wrote_status(self, key: Key, at: datetime) -> None:
        with self._lock:
            if key in self._seen:
                self._seen[key].written = at

    def forget(self, key: Key) -> None:
        with self._lock:
            self._seen.pop(key, None)

    def _look(self, key: Key, now: datetime) -> Observed | None:
        found = self.api.get("S3Sink", key.namespace, key.name)
        if found is None:
            return None
        main = child_name(key.name)
        wanted = [*((kind, main) for kind in KINDS), ("ServiceAccount", f"{main}-executor")]
        objects = ((kind, self.api.get(kind, key.namespace, name)) for kind, name in wanted)
        children = tuple(child_from(kind, document) for kind, document in objects if document is not None)
        pods = tuple(pod_from(p) for p in self.api.list("Pod", key.namespace, selector(key)))
        return Observed(resource_from(found), children, pods, now)

    def _ask(self, seen: _Seen) -> str:
        """Renews the report; what went wrong, if anything did."""
        pod = current_pod(seen.objects) if seen.objects else None
        if pod is None or not pod.ip or not pod.ready or pod.ended is not None:
            return ""
        try:
            answer = _get(pod.ip, self.settings.report_timeout)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.poll_failed()
            return f"{pod.ip}:{PORT} does not answer ({type(error).__name__}: {error})"[:300]
        document = read_report(answer)
        if isinstance(document, str):
            self.poll_failed()
            return document
        seen.report = Report(document, datetime.now(UTC), pod.name)
        return ""


def _get(address: str, timeout: float) -> bytes:
    # Straight to the pod, whatever proxy the environment names.
    connection = http.client.HTTPConnection(address, PORT, timeout=timeout)
    try:
        connection.request("GET", "/status", headers={"Accept": "application/json"})
        answer = connection.getresponse()
        if answer.status != 200:
            raise ValueError(f"HTTP {answer.status}")
        body = answer.read(LARGEST_REPORT + 1)
    finally:
        connection.close()
    if len(body) > LARGEST_REPORT:
        raise ValueError("its report is larger than 1 MiB")
    return body


def resource_from(document: Document) -> Resource:
    metadata = document["metadata"]
    return Resource(
        key=Key(metadata["namespace"], metadata["name"]),
        uid=metadata["uid"],
        generation=metadata["generation"],
        spec=document.get("spec", {}),
        status=document.get("status", {}),
        annotations=metadata.get("annotations") or {},
        deleting="deletionTimestamp" in metadata,
    )


def child_from(kind: str, document: Document) -> Child:
    metadata = document["metadata"]
    owners = metadata.get("ownerReferences") or ()
    owner = next((str(o["uid"]) for o in owners if o.get("controller")), "")
    return Child(kind, metadata["name"], document, owner, "deletionTimestamp" in metadata)


def pod_from(document: Document) -> Pod:
    metadata, status = document["metadata"], document.get("status", {})
    container: Mapping[str, Any] = next(iter(status.get("containerStatuses") or ()), {})
    state, last = container.get("state", {}), container.get("lastState", {})
    waiting = state.get("waiting", {})
    phase = status.get("phase", "Pending")
    deleting = metadata.get("deletionTimestamp")
    return Pod(
        name=metadata["name"],
        role=metadata.get("labels", {}).get(ROLE_LABEL, ""),
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
        last_exit=_exit(last.get("terminated")),
        ended=_exit(state.get("terminated")) if phase in {"Succeeded", "Failed"} else None,
    )


def _exit(terminated: Mapping[str, Any] | None) -> Exit | None:
    if not terminated:
        return None
    fields = (terminated.get(name) or "" for name in ("reason", "message", "finishedAt"))
    return Exit(int(terminated.get("exitCode", -1)), *fields)


def _unschedulable(status: Mapping[str, Any]) -> str:
    for condition in status.get("conditions") or ():
        if (condition.get("type"), condition.get("status")) == ("PodScheduled", "False"):
            return str(condition.get("message") or condition.get("reason") or "no node fits")
    return ""
