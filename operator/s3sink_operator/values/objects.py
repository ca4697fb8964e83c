"""Objects of the API server, reduced to what the operator needs of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Document = Mapping[str, Any]
"""An object as JSON, as the API server sends and takes it."""


@dataclass(frozen=True, order=True)
class SinkKey:
    """Namespace and name of an S3Sink."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class SinkResource:
    """An S3Sink."""

    key: SinkKey
    uid: str
    generation: int
    spec: Document
    status: Document = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    deleting: bool = False
    created: str = ""
    """As the API server wrote it. Together with the generation it orders the manifests that drivers start with."""


@dataclass(frozen=True)
class Child:
    """An object with the name of a child of the sink, whoever created it; or a Job of the sink's CronJob."""

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
class ContainerExit:
    """How a container ended."""

    code: int
    reason: str = ""
    message: str = ""
    """The termination message: the last report of a driver that ran once, or the last lines of its log."""
    time: str = ""


@dataclass(frozen=True)
class Pod:
    """A pod of a driver or an executor. `ready`, `restarts` and the exits are those of its main container."""

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
    """Kubernetes' reason why the container waits, such as ImagePullBackOff."""
    waiting_message: str = ""
    unschedulable: str = ""
    """Why no node takes it."""
    reason: str = ""
    """Kubernetes' reason why the whole pod ended or is removed, such as Evicted or DeletionByTaintManager."""
    reason_message: str = ""
    job: str = ""
    """The Job that created it, if any."""
    last_exit: ContainerExit | None = None
    """Before the last restart."""
    ended: ContainerExit | None = None
    """Set once the container has ended for good."""
