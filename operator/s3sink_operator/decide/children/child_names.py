"""Names and labels of a sink's children."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from s3sink_api.labels import MANAGED_LABEL, MANAGER, NAME_LABEL, ROLE_LABEL, SINK_LABEL
from s3sink_api.spec import S3Sink
from s3sink_operator.values.objects import SinkKey

MANIFEST, EXECUTOR_TEMPLATE = "sink.yaml", "executor.yaml"
"""Keys of the ConfigMap, and names of the files in the driver's pod."""
LONGEST_NAME = 52
"""Of a CronJob: Kubernetes adds eleven characters for the name of a Job."""


@dataclass(frozen=True)
class ChildNames:
    main: str
    driver_account: str
    executor_account: str


def child_names(sink: S3Sink) -> ChildNames:
    main = child_name(sink.metadata.name)
    given = sink.spec.spark.service_account_name
    return ChildNames(main, given or main, given or f"{main}-executor")


def child_name(sink: str) -> str:
    """The sink's name and a suffix. A name that is too long is cut and gets a hash."""
    name = f"{sink}-s3sink"
    if len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(sink.encode()).hexdigest()[:8]
    return f"{sink[: LONGEST_NAME - len('--s3sink') - len(digest)].rstrip('-')}-{digest}-s3sink"


def child_labels(sink: S3Sink, role: str) -> dict[str, str]:
    """Never the resource's own labels: a tool that finds its objects by label would take the children for its own."""
    return {
        NAME_LABEL: "s3sink",
        MANAGED_LABEL: MANAGER,
        SINK_LABEL: sink.metadata.name,
        ROLE_LABEL: role,
    }


def child_selector(key: SinkKey, role: str) -> str:
    """The label selector of a sink's pods of one role."""
    return f"{MANAGED_LABEL}={MANAGER},{SINK_LABEL}={key.name},{ROLE_LABEL}={role}"
