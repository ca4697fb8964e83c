"""The pods of driver and executors: what runs in them, with which rights and resources."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from s3sink_api import environment, ports
from s3sink_api.labels import DRIVER, EXECUTOR, JOB_UID
from s3sink_api.spec import S3Sink, SecretRef, format_quantity
from s3sink_operator.decide.children.child_names import EXECUTOR_TEMPLATE, MANIFEST, ChildNames, child_labels
from s3sink_operator.decide.children.template_merge import merge_template
from s3sink_operator.settings import Settings

USER = 185
CONFIG_FOLDER = "/etc/s3sink"
SECRETS_FOLDER = "/var/run/s3sink/secrets"
SPILL_FOLDER = "/var/spill"
TERMINATION_LOG = "/dev/termination-log"
TERMINATION_BYTES = 4096
"""Kubernetes cuts longer termination messages off."""
EXIT_MARGIN = 10
"""Seconds between the end of the driver's own grace period and SIGKILL by the kubelet."""
TMP_LIMIT = "1Gi"


def secret_names(value: Any) -> tuple[str, ...]:
    """Every Secret that the spec refers to, in any field."""
    return tuple(sorted(set(_secret_names(value))))


def _secret_names(value: Any) -> Iterator[str]:
    if isinstance(value, SecretRef):
        yield value.name
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from _secret_names(getattr(value, field.name))
    elif isinstance(value, tuple):
        for item in value:
            yield from _secret_names(item)


def driver_pod(sink: S3Sink, settings: Settings, names: ChildNames) -> dict[str, Any]:
    """The pod template of the driver, without the hashes that restart it."""
    spark = sink.spec.spark
    volumes, mounts = _storage(sink, format_quantity(spark.driver.spill), spill="spill")
    volumes.append({"name": "config", "configMap": {"name": names.main}})
    mounts.append({"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True})
    spec = {
        "serviceAccountName": names.driver_account,
        "automountServiceAccountToken": spark.mode == "Cluster",
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": settings.grace + EXIT_MARGIN,
        "restartPolicy": "Never" if sink.spec.ends else "Always",
        "securityContext": _pod_security(),
        "containers": [_driver_container(sink, settings, names, mounts)],
        "volumes": volumes,
    }
    return merge_template({"metadata": {"labels": child_labels(sink, DRIVER)}, "spec": spec}, spark.driver.pod_template)


def _driver_container(
    sink: S3Sink, settings: Settings, names: ChildNames, mounts: list[dict[str, Any]]
) -> dict[str, Any]:
    driver = sink.spec.spark.driver
    listen = ["--listen", f"0.0.0.0:{settings.driver_port}"]
    return {
        "name": DRIVER,
        "image": sink.spec.spark.image or settings.image,
        "imagePullPolicy": settings.pull_policy,
        "args": ["s3sink", "run", "--file", f"{CONFIG_FOLDER}/{MANIFEST}", *listen, "--json-logs"],
        "env": _environment(sink, settings, names),
        "ports": [{"name": "http", "containerPort": settings.driver_port, "protocol": "TCP"}],
        "resources": {
            "requests": {"cpu": _cpu(driver.cpu_request), "memory": format_quantity(driver.memory)},
            "limits": {"memory": format_quantity(driver.memory)},
        },
        "securityContext": _locked_down(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
        # Nothing answers before Spark is up.
        "startupProbe": _probe(period=3, failures=60),
        "readinessProbe": _probe(period=10, failures=3),
        "livenessProbe": _probe(period=20, failures=6),
    }


def executor_pod(sink: S3Sink) -> dict[str, Any]:
    """The pod template for executors. Spark adds image, account, resources, labels and arguments."""
    # Spark uses a volume of this name for its scratch space; its own would have no size limit.
    volumes, mounts = _storage(sink, format_quantity(sink.spec.spark.executor.spill), spill="spark-local-dir-1")
    container = {
        "name": EXECUTOR,
        # Spark copies jars into the working directory.
        "workingDir": "/tmp",  # noqa: S108 - a volume of the pod's own
        "env": _plain_environment(),
        "securityContext": _locked_down(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }
    spec = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": EXIT_MARGIN,
        "securityContext": _pod_security(),
        "containers": [container],
        "volumes": volumes,
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": child_labels(sink, EXECUTOR)}, "spec": spec}
    return merge_template(pod, sink.spec.spark.executor.pod_template)


def _environment(sink: S3Sink, settings: Settings, names: ChildNames) -> list[dict[str, Any]]:
    env = [
        *_plain_environment(),
        {"name": environment.CLUSTER, "value": settings.cluster},
        {"name": environment.SECRETS, "value": SECRETS_FOLDER},
        {"name": environment.GRACE, "value": str(settings.grace)},
        {"name": "SPARK_LOCAL_DIRS", "value": SPILL_FOLDER},
    ]
    if sink.spec.ends:
        env += [
            {"name": environment.STATUS_FILE, "value": TERMINATION_LOG},
            {"name": environment.STATUS_BYTES, "value": str(TERMINATION_BYTES)},
        ]
    if sink.spec.mode == "FullRefresh":
        # Kubernetes sets the label on every pod of a Job. A pod that replaces another one goes on with its run.
        env.append({"name": environment.RUN_ID, "valueFrom": _pod_field(f"metadata.labels['{JOB_UID}']")})
    if sink.spec.spark.mode == "Cluster":
        env += [
            {
                "name": environment.POD_NAME,
                "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}},
            },
            {"name": environment.POD_IP, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
            {"name": environment.NAMESPACE, "value": sink.metadata.namespace},
            {"name": environment.IMAGE, "value": sink.spec.spark.image or settings.image},
            {"name": environment.PULL_POLICY, "value": settings.pull_policy},
            {"name": environment.EXECUTOR_ACCOUNT, "value": names.executor_account},
            {"name": environment.EXECUTOR_TEMPLATE, "value": f"{CONFIG_FOLDER}/{EXECUTOR_TEMPLATE}"},
        ]
    return env


def _pod_field(path: str) -> dict[str, Any]:
    return {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}


def _plain_environment() -> list[dict[str, Any]]:
    # The root file system is read-only, and the user has no home.
    return [{"name": "HOME", "value": "/tmp"}, {"name": "PYTHONDONTWRITEBYTECODE", "value": "1"}]  # noqa: S108


def _storage(sink: S3Sink, limit: str, *, spill: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    volumes: list[dict[str, Any]] = [
        {"name": "tmp", "emptyDir": {"sizeLimit": TMP_LIMIT}},
        {"name": spill, "emptyDir": {"sizeLimit": limit}},
    ]
    mounts: list[dict[str, Any]] = [
        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108
        {"name": spill, "mountPath": SPILL_FOLDER},
    ]
    for number, name in enumerate(secret_names(sink.spec)):
        # Optional, so that the pod starts without it and the driver can report which one is missing.
        volumes.append({"name": f"secret-{number}", "secret": {"secretName": name, "optional": True}})
        mounts.append({"name": f"secret-{number}", "mountPath": f"{SECRETS_FOLDER}/{name}", "readOnly": True})
    return volumes, mounts


def _locked_down() -> dict[str, Any]:
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def _pod_security() -> dict[str, Any]:
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _probe(*, period: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": ports.HEALTH, "port": "http", "scheme": "HTTP"},
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }


def _cpu(amount: str) -> str:
    """As the API server writes it, so that the stored object equals ours."""
    millis = int(amount[:-1]) if amount.endswith("m") else round(float(amount) * 1000)
    return str(millis // 1000) if millis % 1000 == 0 else f"{millis}m"
