"""What the operator sees and what it decides, as values: no Kubernetes client, no clock, no network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

Document = Mapping[str, Any]

DRIVER, EXECUTOR = "driver", "executor"
SINK_LABEL = "s3sink.dev/sink"
ROLE_LABEL = "s3sink.dev/role"
MANAGED_LABEL = "app.kubernetes.io/managed-by"
MANAGER = "s3sink-operator"
APPLIED = "s3sink.dev/applied"
"""Annotation of every child: the hash of what was applied, which tells when something was taken away."""
SPEC_HASH = "s3sink.dev/spec-hash"
"""Annotation of the driver's pods: it changes with the sink, and with nothing else."""
CONFIG_HASH = "s3sink.dev/config-hash"
"""Annotation of the driver's pods: the hash of their ConfigMap, which another operator may write in another way."""


@dataclass(frozen=True, order=True)
class Key:
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class Resource:
    """An S3Sink as the API server has it."""

    key: Key
    uid: str
    generation: int
    spec: Document
    status: Document = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    deleting: bool = False
    created: str = ""
    """As the API server wrote it. With the generation it orders the manifests that drivers are started with."""


@dataclass(frozen=True)
class Child:
    """An object that has the name of one of ours, whoever made it; or a Job that our CronJob made."""

    kind: str
    name: str
    document: Document
    owner: str = ""
    """The uid of its controller."""
    deleting: bool = False

    @property
    def annotations(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self.document.get("metadata", {}).get("annotations") or {}
        return found

    @property
    def uid(self) -> str:
        return str(self.document.get("metadata", {}).get("uid", ""))

    @property
    def created(self) -> str:
        return str(self.document.get("metadata", {}).get("creationTimestamp", ""))


@dataclass(frozen=True)
class Exit:
    code: int
    reason: str = ""
    message: str = ""
    time: str = ""


@dataclass(frozen=True)
class Pod:
    name: str
    role: str
    phase: str
    """Pending, Running, Succeeded, Failed or Unknown."""
    ip: str = ""
    created: str = ""
    ready: bool = False
    deleting: datetime | None = None
    """When its grace period ends, if it is being deleted."""
    spec_hash: str = ""
    restarts: int = 0
    waiting: str = ""
    """Why its container waits, in Kubernetes' word."""
    waiting_message: str = ""
    unschedulable: str = ""
    """Why no node takes it."""
    reason: str = ""
    """Why the pod as a whole ended or must go, in Kubernetes' word: Evicted, DeletionByTaintManager and the like."""
    reason_message: str = ""
    job: str = ""
    """The name of the Job that made it, if one did."""
    last_exit: Exit | None = None
    ended: Exit | None = None
    """How its container ended, if it did and does not start again."""


@dataclass(frozen=True)
class Report:
    """What a driver said about itself, and when we heard it."""

    document: Document
    heard: datetime
    pod: str = ""
    changed: datetime | None = None
    """When, by our clock, its `reportedAt` was another one last; None if it was heard for the first time."""


@dataclass(frozen=True)
class Observed:
    resource: Resource
    children: tuple[Child, ...]
    pods: tuple[Pod, ...]
    now: datetime
    report: Report | None = None
    """The last one that could be understood, of the pod that is there now."""
    report_problem: str = ""
    """Why the last look at /status failed."""
    written: datetime | None = None
    """When the status was written last, as far as this process knows."""
    refused: str = ""
    """What the API server said when it refused our last write of a child."""

    def child(self, kind: str, name: str) -> Child | None:
        return next((c for c in self.children if (c.kind, c.name) == (kind, name)), None)

    def pods_of(self, role: str) -> tuple[Pod, ...]:
        return tuple(p for p in self.pods if p.role == role)


@dataclass(frozen=True)
class Event:
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True)
class Decision:
    apply: tuple[Document, ...] = ()
    delete: tuple[Child, ...] = ()
    status: Document | None = None
    """The whole new status, or None if the old one stays."""
    events: tuple[Event, ...] = ()
    look_again: float | None = None
    """Seconds until something may have changed that no event tells of."""
    rolls: bool = False
    """Whether it restarts a driver that is well, although its sink did not change: a few at a time is enough."""
    settled: bool = False
    """Whether nothing is left to be done, and no driver is on its way: the one that was asked for is ready."""
