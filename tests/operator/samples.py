"""Sample sinks, and observations of them."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from s3sink_api.labels import DRIVER
from s3sink_operator.decide import decide
from s3sink_operator.decide.children.supporting_objects import supporting_objects
from s3sink_operator.decide.children.workloads import WORKLOADS, pod_template, spec_hash, workload
from s3sink_operator.decide.validation import validate
from s3sink_operator.settings import Settings
from s3sink_operator.values.decision import Decision
from s3sink_operator.values.driver_report import DriverReport
from s3sink_operator.values.objects import Child, Pod, SinkKey, SinkResource
from s3sink_operator.values.observation import Observation

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
SETTINGS = Settings(image="registry.example/s3sink:1", cluster="cluster-uid")
SPEC: dict[str, Any] = {
    "source": {"bootstrapServers": "kafka:9092", "topics": ["orders"]},
    "destination": {"bucket": "lake", "credentials": {"secretRef": {"name": "s3"}}},
    "format": {"type": "Json"},
}


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    result = copy.deepcopy(dict(base))
    for key, value in changes.items():
        nested = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if nested else value
    return result


def resource(spec: Mapping[str, Any] | None = None, **fields: Any) -> SinkResource:
    given: dict[str, Any] = {"key": SinkKey("shop", "orders"), "uid": "sink-uid", "generation": 3} | fields
    return SinkResource(spec=merged(SPEC, spec or {}), **given)


def observed(sink: SinkResource | None = None, **fields: Any) -> Observation:
    given: dict[str, Any] = {"children": (), "pods": (), "now": NOW} | fields
    return Observation(sink or resource(), **given)


def children(sink: SinkResource, settings: Settings = SETTINGS) -> tuple[Child, ...]:
    """All children of a valid sink, as the API server stores them."""
    parsed, _ = validate(sink)
    assert parsed is not None
    needed = supporting_objects(sink, parsed)
    return tuple(stored(d) for d in (*needed, workload(sink, parsed, settings, needed)))


def stored(document: Mapping[str, Any]) -> Child:
    """With the fields that the server adds, without those it leaves out."""
    held: dict[str, Any] = without_empty(copy.deepcopy(dict(document)))
    held["metadata"] |= {"uid": f"uid-of-{held['kind']}", "resourceVersion": "7", "managedFields": []}
    held["metadata"]["creationTimestamp"] = "2026-11-16T11:00:00Z"
    if held["kind"] in WORKLOADS.values():
        pod: dict[str, Any] = dict(pod_template(held))["spec"]
        pod["containers"][0] |= {"terminationMessagePath": "/dev/termination-log"}
        pod.setdefault("dnsPolicy", "ClusterFirst")
    owner = held["metadata"]["ownerReferences"][0]["uid"]
    return Child(held["kind"], held["metadata"]["name"], held, owner)


def without_empty(value: Any) -> Any:
    """As Go writes it, which leaves out empty lists, maps and texts."""
    if isinstance(value, Mapping):
        kept = {k: without_empty(v) for k, v in value.items()}
        return {
            k: v for k, v in kept.items() if v not in ([], "") and not (v == {} and k in {"nodeSelector", "labels"})
        }
    return [without_empty(item) for item in value] if isinstance(value, list) else value


def run_of(sink: SinkResource, number: int = 1, result: str = "", reason: str = "") -> Child:
    """The Job of a scheduled run: complete, failed or under way."""
    (cron,) = (c for c in children(sink) if c.kind == "CronJob")
    conditions = [{"type": result, "status": "True", "reason": reason}] if result else []
    document = {
        "metadata": {
            "name": f"{cron.name}-{number}",
            "uid": f"uid-of-run-{number}",
            "creationTimestamp": f"2026-11-16T11:{number:02}:00Z",
        },
        "spec": cron.document["spec"]["jobTemplate"]["spec"],
        "status": {"conditions": conditions},
    }
    return Child("Job", f"{cron.name}-{number}", document, cron.uid)


def ended(child: Child, result: str, reason: str = "") -> Child:
    """A Job that has ended."""
    conditions = [{"type": result, "status": "True", "reason": reason}]
    return replace(child, document={**child.document, "status": {"conditions": conditions}})


def hash_of(sink: SinkResource) -> str:
    parsed, _ = validate(sink)
    assert parsed is not None
    return spec_hash(workload(sink, parsed, SETTINGS, supporting_objects(sink, parsed)))


def pod(sink: SinkResource | None = None, **fields: Any) -> Pod:
    given: dict[str, Any] = {"phase": "Running", "ready": True, "ip": "10.0.0.1", "role": DRIVER}
    given |= {"spec_hash": hash_of(sink or resource()), "created": "2026-11-16T11:00:00Z"}
    return Pod(**({"name": "orders-s3sink-abc"} | given | fields))


def report(phase: str = "Running", *, age: float = 1.0, generation: int = 3, **fields: Any) -> DriverReport:
    received = NOW - timedelta(seconds=age)
    ready = phase in {"Running", "Paused", "Completed"}
    document: dict[str, Any] = {
        "observedGeneration": generation,
        "phase": phase,
        "flush": {"lastTime": "2026-11-16T11:59:00Z", "records": 5, "totalRecords": 5, "totalObjects": 1},
        "retry": {"attempts": 0, "skippedRecords": 0},
        "lag": {"records": 0, "recordsToHighWatermark": 0, "seconds": 0.0},
        "offsets": [{"topic": "orders", "partition": 0, "committed": 5, "end": 5, "lag": 0}],
        "gaps": {"count": 0, "records": 0, "recent": []},
        "driver": {"epoch": 2},
        "conditions": [
            condition("Ready", ready, phase, f"the driver is {phase}", generation),
            condition("LastFlushSucceeded", True, "Succeeded", "no failure since", generation),
            condition("ExactlyOnce", True, "ConditionalWrites", "they work", generation),
            condition("CaughtUp", True, "Level", "everything is there", generation),
        ],
        "reportedAt": received.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return DriverReport(document | fields, received, "orders-s3sink-abc", received)


def condition(type: str, status: bool, reason: str, message: str = "", generation: int = 3) -> dict[str, Any]:
    return {
        "type": type,
        "status": str(status),
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-11-16T11:00:00Z",
        "observedGeneration": generation,
    }


def running(spec: Mapping[str, Any] | None = None, **fields: Any) -> Observation:
    """A sink with all its children, whose driver reports Running."""
    sink = resource(spec)
    given: dict[str, Any] = {"children": children(sink), "pods": (pod(sink),), "report": report()}
    return observed(sink, **(given | fields))


def decided(seen: Observation, settings: Settings = SETTINGS, *, hold_rollout: bool = False) -> Decision:
    return decide(seen, settings, hold_rollout=hold_rollout)


def status_of(seen: Observation) -> dict[str, Any]:
    """The status that is decided, written or not."""
    found = decide(replace(seen, resource=replace(seen.resource, status={})), SETTINGS)
    assert found.status is not None
    return dict(found.status)


def ready(seen: Observation) -> tuple[str, str]:
    return named(status_of(seen), "Ready")


def named(status: Mapping[str, Any], type: str) -> tuple[str, str]:
    found = next(c for c in status["conditions"] if c["type"] == type)
    return found["status"], found["reason"]


def message(status: Mapping[str, Any], type: str) -> str:
    return str(next(c for c in status["conditions"] if c["type"] == type)["message"])


def carried_out(seen: Observation, decision: Decision) -> Observation:
    """The observation after the decision was carried out."""
    gone = {(c.kind, c.name) for c in decision.delete}
    # Their own dependents are deleted with them.
    owners = {c.uid for c in decision.delete}
    gone |= {(c.kind, c.name) for c in seen.children if c.owner in owners}
    made = {(d["kind"], d["metadata"]["name"]): stored(d) for d in decision.apply}
    kept = [c for c in seen.children if (c.kind, c.name) not in gone and (c.kind, c.name) not in made]
    sink = seen.resource
    if decision.status is not None:
        # Through JSON, as the API server returns it.
        sink = replace(sink, status=json.loads(json.dumps(decision.status)))
    return replace(seen, resource=sink, children=(*kept, *made.values()), written=seen.now)
