"""All that a decision about one sink is based on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from s3sink_operator.values.driver_report import DriverReport
from s3sink_operator.values.objects import Child, Pod, SinkResource


@dataclass(frozen=True)
class Observation:
    resource: SinkResource
    children: tuple[Child, ...]
    pods: tuple[Pod, ...]
    now: datetime
    report: DriverReport | None = None
    """The last valid report of the pod that is there now."""
    report_problem: str = ""
    """Why the last poll of /status failed."""
    written: datetime | None = None
    """When this process last wrote the status."""
    refused: str = ""
    """The API server's message when it refused our last write of a child."""

    def child(self, kind: str, name: str) -> Child | None:
        return next((c for c in self.children if (c.kind, c.name) == (kind, name)), None)

    def pods_of(self, role: str) -> tuple[Pod, ...]:
        return tuple(p for p in self.pods if p.role == role)
