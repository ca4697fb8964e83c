"""The pods of a sink: what runs in them, with which rights, and what they may use."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from typing import Any

from s3sink_job.spec import S3Sink, SecretRef, format_quantity
from s3sink_operator.decide.templates import with_template
from s3sink_operator.model import DRIVER, EXECUTOR, MANAGED_LABEL, MANAGER, ROLE_LABEL, SINK_LABEL
from s3sink_operator.settings import Settings

USER = 185
CONFIG_FOLDER = "/etc/s3sink"
SECRETS_FOLDER = "/var/run/s3sink/secrets"
SPILL_FOLDER = "/var/spill"
MANIFEST, EXECUTOR_TEMPLATE = "sink.yaml", "executor.yaml"
TERMINATION_LOG = "/dev/termination-log"
TERMINATION_BYTES = 4096
"""More than this of a termination message Kubernetes cuts off."""
LONGEST_NAME = 52
"""Of a CronJob, whose Jobs get eleven characters more."""
EXIT_MARGIN = 10
"""Seconds between the driver's own grace period and the kubelet's last word."""
TMP_LIMIT = "1Gi"


def labels(sink: S3Sink, role: str) -> dict[str, str]:
    """Never any of the resource's own: a tool that manages it by labels would think it owns the pods too."""
    return {
        "app.kubernetes.io/name": "s3sink",
        MANAGED_LABEL: MANAGER,
        SINK_LABEL: sink.metadata.name,
        ROLE_LABEL: role,
    }


def secret_names(value: Any) -> tuple[str, ...]:
    """Every Secret that the spec names, wherever it does."""
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


def driver_pod(sink: S3Sink, settings: Settings, names: Names) -> dict[str, Any]:
    """The pod template of the driver, without the hash of its ConfigMap."""
    spark = sink.spec.spark
    cluster = spark.mode == "Cluster"
    volumes, mounts = _storage(sink, format_quantity(spark.driver.spill), spill="spill")
    volumes.append({"name": "config", "configMap": {"name": names.main}})
    mounts.append({"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True})
    container: dict[str, Any] = {
        "name": DRIVER,
        "image": spark.image or settings.image,
        "imagePullPolicy": settings.pull_policy,
        "args": [
            "s3sink",
            "run",
            "--file",
            f"{CONFIG_FOLDER}/{MANIFEST}",
            "--listen",
            f"0.0.0.0:{settings.driver_port}",
            "--json-logs",
        ],
        "env": _environment(sink, settings, names),
        "ports": [{"name": "http", "containerPort": settings.driver_port, "protocol": "TCP"}],
        "resources": {
            "requests": {"cpu": _cpu(spark.driver.cpu_request), "memory": format_quantity(spark.driver.memory)},
            "limits": {"memory": format_quantity(spark.driver.memory)},
        },
        "securityContext": _locked_down(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
        # Spark takes its time; until it is up nothing answers.
        "startupProbe": _probe(period=3, failures=60),
        "readinessProbe": _probe(period=10, failures=3),
        "livenessProbe": _probe(period=20, failures=6),
    }
    spec = {
        "serviceAccountName": names.driver_account,
        "automountServiceAccountToken": cluster,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": settings.grace + EXIT_MARGIN,
        "restartPolicy": "Never" if sink.spec.ends else "Always",
        "securityContext": _pod_security(),
        "containers": [container],
        "volumes": volumes,
    }
    return with_template({"metadata": {"labels": labels(sink, DRIVER)}, "spec": spec}, spark.driver.pod_template)


def executor_pod(sink: S3Sink) -> dict[str, Any]:
    """The template that Spark makes executors from. Spark adds image, account, resources, labels and arguments."""
    # Spark takes a volume of this name for its own scratch space instead of one without limit.
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
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": labels(sink, EXECUTOR)}, "spec": spec}
    return with_template(pod, sink.spec.spark.executor.pod_template)


@dataclasses.dataclass(frozen=True)
class Names:
    """The names of a sink's children."""

    main: str
    driver_account: str
    executor_account: str


def names_of(sink: S3Sink) -> Names:
    main = child_name(sink.metadata.name)
    given = sink.spec.spark.service_account_name
    return Names(main, given or main, given or f"{main}-executor")


def child_name(sink: str) -> str:
    """The sink's with an end of ours, as long as Kubernetes takes it: a CronJob's name is short."""
    name = f"{sink}-s3sink"
    if len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(sink.encode()).hexdigest()[:8]
    return f"{sink[: LONGEST_NAME - len('--s3sink') - len(digest)].rstrip('-')}-{digest}-s3sink"


def _environment(sink: S3Sink, settings: Settings, names: Names) -> list[dict[str, Any]]:
    env = [
        *_plain_environment(),
        {"name": "S3SINK_CLUSTER", "value": settings.cluster},
        {"name": "S3SINK_SECRETS", "value": SECRETS_FOLDER},
        {"name": "S3SINK_GRACE", "value": str(settings.grace)},
        {"name": "SPARK_LOCAL_DIRS", "value": SPILL_FOLDER},
    ]
    if sink.spec.ends:
        env += [
            {"name": "S3SINK_STATUS_FILE", "value": TERMINATION_LOG},
            {"name": "S3SINK_STATUS_BYTES", "value": str(TERMINATION_BYTES)},
        ]
    if sink.spec.spark.mode == "Cluster":
        env += [
            {"name": "S3SINK_POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
            {"name": "S3SINK_POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
            {"name": "S3SINK_NAMESPACE", "value": sink.metadata.namespace},
            {"name": "S3SINK_IMAGE", "value": sink.spec.spark.image or settings.image},
            {"name": "S3SINK_PULL_POLICY", "value": settings.pull_policy},
            {"name": "S3SINK_EXECUTOR_ACCOUNT", "value": names.executor_account},
            {"name": "S3SINK_EXECUTOR_TEMPLATE", "value": f"{CONFIG_FOLDER}/{EXECUTOR_TEMPLATE}"},
        ]
    return env


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
        # Optional: without it the pod starts, and the driver says which one is missing.
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
        "httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"},
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }


def _cpu(amount: str) -> str:
    """As the API server writes it, so that what it stores is what we asked for."""
    millis = int(amount[:-1]) if amount.endswith("m") else round(float(amount) * 1000)
    return str(millis // 1000) if millis % 1000 == 0 else f"{millis}m"
