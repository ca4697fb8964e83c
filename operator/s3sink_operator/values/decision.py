"""What shall be done about one sink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from s3sink_operator.values.objects import Child, Document


@dataclass(frozen=True)
class Event:
    """A Kubernetes event about the sink."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True)
class Decision:
    apply: tuple[Document, ...] = ()
    delete: tuple[Child, ...] = ()
    status: Document | None = None
    """The whole new status; None if it does not change."""
    events: tuple[Event, ...] = ()
    requeue_after: float | None = None
    """Seconds until the sink must be reconciled again, if nothing changes before."""
    rollout: bool = False
    """It restarts a healthy driver whose sink did not change, so it may have to wait for its turn."""
    settled: bool = False
    """Nothing is left to do, and the newest driver is ready."""
