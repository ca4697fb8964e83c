"""The objects that make up a running sink, as documents for server-side apply."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import yaml

from s3sink_job.spec import S3Sink
from s3sink_operator.decide.pods import (
    EXECUTOR_TEMPLATE,
    MANIFEST,
    Names,
    driver_pod,
    executor_pod,
    labels,
    names_of,
)
from s3sink_operator.model import (
    APPLIED,
    CONFIG_HASH,
    DRIVER,
    EXECUTOR,
    MANAGED_LABEL,
    MANAGER,
    ROLE_LABEL,
    SINK_LABEL,
    SPEC_HASH,
    Key,
    Resource,
)
from s3sink_operator.settings import Settings

API_VERSION, KIND = "s3sink.dev/v1alpha1", "S3Sink"
OWN_ANNOTATIONS = "s3sink.dev/"
RBAC = "rbac.authorization.k8s.io"
# Exit codes of the job that trying again cannot change: a person must act, or another driver has taken over.
FINAL_EXITS = [2, 3]
TRIES_OF_A_JOB = 6
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
KEPT_RUNS = 1
"""Jobs that a CronJob keeps of those that went well, and of those that did not."""
LATEST_START = 24 * 3600
"""Seconds by which a run may be late, as after an outage: it drains all there is, and late is better than never."""


def manifest(resource: Resource) -> dict[str, Any]:
    """The document the driver reads: what was applied, and who applied it, without anybody's labels."""
    own = _own_annotations(resource)
    metadata: dict[str, Any] = {
        "name": resource.key.name,
        "namespace": resource.key.namespace,
        "uid": resource.uid,
        "generation": resource.generation,
    }
    if resource.created:
        metadata["creationTimestamp"] = resource.created
    if own:
        metadata["annotations"] = own
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": resource.spec}


def _own_annotations(resource: Resource) -> dict[str, str]:
    return {k: v for k, v in sorted(resource.annotations.items()) if k.startswith(OWN_ANNOTATIONS)}


def supporting(resource: Resource, sink: S3Sink, settings: Settings) -> list[dict[str, Any]]:
    """What the driver needs before it starts: its manifest, its account and its rights."""
    names = names_of(sink)
    content = {MANIFEST: _yaml(manifest(resource))}
    cluster = sink.spec.spark.mode == "Cluster"
    if cluster:
        content[EXECUTOR_TEMPLATE] = _yaml(executor_pod(sink))
    made = [_object(resource, sink, "v1", "ConfigMap", names.main, {"data": content})]
    if not sink.spec.spark.service_account_name:
        made.append(_account(resource, sink, names.driver_account))
        if cluster:
            made.append(_account(resource, sink, names.executor_account, role=EXECUTOR))
    if cluster:
        made += _rights(resource, sink, names)
    return [_signed(document) for document in made]


def workload(resource: Resource, sink: S3Sink, settings: Settings, needed: list[dict[str, Any]]) -> dict[str, Any]:
    """The Deployment, the Job or the CronJob that runs the driver with what it needs."""
    names = names_of(sink)
    pod = driver_pod(sink, settings, names)
    content = next(document for document in needed if document["kind"] == "ConfigMap")["data"]
    hashes = {SPEC_HASH: _identity(resource), CONFIG_HASH: _hash(content)}
    pod["metadata"]["annotations"] = pod["metadata"].get("annotations", {}) | hashes
    match sink.spec.run:
        case "Continuous":
            version, kind, spec = "apps/v1", "Deployment", _deployment(sink, pod)
        case "Once":
            version, kind, spec = "batch/v1", "Job", _job(pod)
        case "Scheduled":
            version, kind, spec = "batch/v1", "CronJob", _cron_job(sink, _job(pod))
    return _signed(_object(resource, sink, version, kind, names.main, {"spec": spec}))


def _deployment(sink: S3Sink, pod: dict[str, Any]) -> dict[str, Any]:
    return {
        "replicas": 1,
        # Never two drivers: the second would fence the first in mid-flush.
        "strategy": {"type": "Recreate"},
        "revisionHistoryLimit": 2,
        "progressDeadlineSeconds": 600,
        "selector": {"matchLabels": labels(sink, DRIVER)},
        "template": pod,
    }


def _job(pod: dict[str, Any]) -> dict[str, Any]:
    final = {"containerName": DRIVER, "operator": "In", "values": FINAL_EXITS}
    return {
        "backoffLimit": TRIES_OF_A_JOB,
        # With pods that are never restarted in place each try leaves its log and its termination message.
        "podFailurePolicy": {
            "rules": [
                {"action": "FailJob", "onExitCodes": final},
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            ]
        },
        "template": pod,
    }


def _cron_job(sink: S3Sink, job: dict[str, Any]) -> dict[str, Any]:
    return {
        "schedule": sink.spec.schedule,
        "timeZone": "Etc/UTC",
        "concurrencyPolicy": "Forbid",
        "suspend": sink.spec.state == "Paused",
        "startingDeadlineSeconds": LATEST_START,
        "successfulJobsHistoryLimit": KEPT_RUNS,
        "failedJobsHistoryLimit": KEPT_RUNS,
        # Its Jobs have names of their own, and are found by these.
        "jobTemplate": {"metadata": {"labels": labels(sink, DRIVER)}, "spec": job},
    }


def _account(resource: Resource, sink: S3Sink, name: str, role: str = DRIVER) -> dict[str, Any]:
    body = {"automountServiceAccountToken": False}
    account = _object(resource, sink, "v1", "ServiceAccount", name, body, role)
    account["metadata"]["annotations"] = dict(sink.spec.spark.service_account_annotations)
    return account


def _rights(resource: Resource, sink: S3Sink, names: Names) -> list[dict[str, Any]]:
    """The driver's: to make, watch and remove executor pods in its own namespace, and nothing else."""
    verbs = ["create", "get", "list", "watch", "delete", "deletecollection"]
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": verbs}]
    role_ref = {"apiGroup": RBAC, "kind": "Role", "name": names.main}
    subject = {"kind": "ServiceAccount", "name": names.driver_account, "namespace": resource.key.namespace}
    return [
        _object(resource, sink, f"{RBAC}/v1", "Role", names.main, {"rules": rules}),
        _object(
            *(resource, sink, f"{RBAC}/v1", "RoleBinding", names.main),
            {"roleRef": role_ref, "subjects": [subject]},
        ),
    ]


def _object(
    resource: Resource,
    sink: S3Sink,
    api_version: str,
    kind: str,
    name: str,
    body: Mapping[str, Any],
    role: str = DRIVER,
) -> dict[str, Any]:
    owner = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": resource.key.name,
        "uid": resource.uid,
        "controller": True,
    }
    metadata = {
        "name": name,
        "namespace": resource.key.namespace,
        "labels": labels(sink, role),
        "ownerReferences": [owner],
    }
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}


def _signed(document: dict[str, Any]) -> dict[str, Any]:
    document["metadata"].setdefault("annotations", {})[APPLIED] = _hash(document)
    return document


def _identity(resource: Resource) -> str:
    """Of the sink as people wrote it. Its spec may look different to another operator, which brings new defaults."""
    return _hash([resource.uid, resource.generation, _own_annotations(resource)])


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _yaml(document: Any) -> str:
    # The one written in C is ten times as quick, which counts with thousands of topics.
    return str(yaml.dump(document, Dumper=_DUMPER, sort_keys=False, allow_unicode=True))


def selector(key: Key, role: str | None = None) -> str:
    """The label selector of a sink's children."""
    parts = [f"{MANAGED_LABEL}={MANAGER}", f"{SINK_LABEL}={key.name}"]
    return ",".join([*parts, f"{ROLE_LABEL}={role}"] if role else parts)
