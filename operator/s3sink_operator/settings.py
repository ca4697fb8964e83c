"""How the operator was started: flags and environment variables as one value."""

from __future__ import annotations

from dataclasses import dataclass

from s3sink_api.ports import DRIVER_PORT


@dataclass(frozen=True, kw_only=True)
class Settings:
    image: str
    """The image of drivers and executors, unless a sink names its own."""
    cluster: str
    """The owner of the state in the bucket: the uid of the namespace kube-system, unless --cluster-id is set."""
    namespaces: tuple[str, ...] = ()
    """The namespaces to watch; empty means all."""
    poll_every: float = 10.0
    """Seconds between two polls of each driver."""
    figures_every: float = 60.0
    """Seconds between two writes of figures to a status; conditions are written at once."""
    stale_after: float = 45.0
    """Seconds without a fresh report after which Ready becomes Unknown."""
    report_timeout: float = 3.0
    """Seconds to wait for an answer from a driver's /status."""
    watch_timeout: int = 30
    """Seconds after which the API server ends a watch. Each restart proves that watching still works."""
    watch_dead_after: float = 180.0
    """Seconds without activity on a watch after which /healthz fails."""
    resync_every: float = 600.0
    """Seconds between two resyncs: a watch that was interrupted does not show what was deleted meanwhile."""
    workers: int = 4
    """Sinks that are reconciled at the same time."""
    grace: int = 60
    """Seconds a driver gets to finish a flush when its pod is deleted."""
    pull_policy: str = "IfNotPresent"
    """imagePullPolicy of drivers and executors."""
    rolling: int = 3
    """Drivers that a new version of the operator, or one with other settings, restarts at the same time."""
    allow_unsafe_templates: bool = False
    """Whether a podTemplate may change anything, even what keeps pods restricted."""
    driver_port: int = DRIVER_PORT
    """Where drivers serve /status, /metrics and /healthz; to be changed where pods share their node's network."""
