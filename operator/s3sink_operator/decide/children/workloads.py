"""The Deployment, Job or CronJob that runs the driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from s3sink_api import exit_codes
from s3sink_api.labels import CONFIG_HASH, DRIVER, SPEC_HASH
from s3sink_api.spec import S3Sink
from s3sink_operator.decide.children.child_names import child_labels, child_names
from s3sink_operator.decide.children.owned_objects import content_hash, owned_object
from s3sink_operator.decide.children.pods import driver_pod
from s3sink_operator.decide.children.supporting_objects import own_annotations
from s3sink_operator.settings import Settings
from s3sink_operator.values.objects import Child, Document, SinkResource

WORKLOADS = {"Continuous": "Deployment", "Once": "Job", "Scheduled": "CronJob"}
"""The kind of workload for each value of `spec.run`."""
FINAL_EXITS = [exit_codes.FINAL, exit_codes.FENCED]
"""A retry cannot help: a person must act, or another driver has taken over."""
JOB_RETRIES = 6
KEPT_RUNS = 1
"""Jobs that a CronJob keeps of those that succeeded, and of those that failed."""
LATEST_START = 24 * 3600
"""Seconds by which a run may start late, for example after an outage."""


def workload(
    resource: SinkResource, sink: S3Sink, settings: Settings, supporting: Sequence[Document]
) -> dict[str, Any]:
    names = child_names(sink)
    pod = driver_pod(sink, settings, names)
    content = next(document for document in supporting if document["kind"] == "ConfigMap")["data"]
    hashes = {SPEC_HASH: _resource_hash(resource), CONFIG_HASH: content_hash(content)}
    pod["metadata"]["annotations"] = pod["metadata"].get("annotations", {}) | hashes
    kind = WORKLOADS[sink.spec.run]
    match sink.spec.run:
        case "Continuous":
            version, spec = "apps/v1", _deployment(sink, pod)
        case "Once":
            version, spec = "batch/v1", _job(pod)
        case "Scheduled":
            version, spec = "batch/v1", _cron_job(sink, _job(pod))
    return owned_object(resource, sink, version, kind, names.main, {"spec": spec})


def pod_template(workload: Document) -> Document:
    spec: Document = workload["spec"]
    template: Document = spec["jobTemplate"]["spec"]["template"] if "jobTemplate" in spec else spec["template"]
    return template


def spec_hash(workload: Document) -> str:
    annotations = pod_template(workload)["metadata"].get("annotations") or {}
    return str(annotations.get(SPEC_HASH, ""))


def rolled_out(deployment: Child) -> bool:
    """Whether the only pod is of the newest template, and ready."""
    status, generation = deployment.document.get("status", {}), deployment.document["metadata"].get("generation", 0)
    replicas = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "readyReplicas")]
    return status.get("observedGeneration", -1) >= generation and replicas == [1, 1, 1]


def _deployment(sink: S3Sink, pod: dict[str, Any]) -> dict[str, Any]:
    return {
        "replicas": 1,
        # Never two drivers: the second would fence the first in the middle of a flush.
        "strategy": {"type": "Recreate"},
        "revisionHistoryLimit": 2,
        "progressDeadlineSeconds": 600,
        "selector": {"matchLabels": child_labels(sink, DRIVER)},
        "template": pod,
    }


def _job(pod: dict[str, Any]) -> dict[str, Any]:
    final = {"containerName": DRIVER, "operator": "In", "values": FINAL_EXITS}
    return {
        "backoffLimit": JOB_RETRIES,
        # Pods are never restarted in place, so each attempt keeps its log and its termination message.
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
        # Kubernetes names the Jobs; the operator finds them by these labels.
        "jobTemplate": {"metadata": {"labels": child_labels(sink, DRIVER)}, "spec": job},
    }


def _resource_hash(resource: SinkResource) -> str:
    """Of the generation, not of the spec: another version of the operator may fill in other defaults."""
    return content_hash([resource.uid, resource.generation, own_annotations(resource)])
