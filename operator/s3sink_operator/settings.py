"""How the operator was started: flags and environment as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Settings:
    image: str
    """The image of drivers and executors, where a sink names none."""
    cluster: str
    """Who owns the state in the bucket: the uid of the namespace kube-system, unless told otherwise."""
    namespaces: tuple[str, ...] = ()
    """The namespaces to look after; none means all."""
    poll_every: float = 10.0
    """Seconds between two looks at each sink."""
    figures_every: float = 60.0
    """Seconds between two writes of figures; conditions are written at once."""
    stale_after: float = 45.0
    """Seconds after which a driver that does not answer makes Ready Unknown."""
    report_timeout: float = 3.0
    """Seconds to wait for a driver's /status."""
    watch_timeout: int = 30
    """Seconds after which the API server ends a watch, so that a new one proves that watching works."""
    watch_dead_after: float = 180.0
    """Seconds without any sign of life from a watch after which the operator calls itself dead."""
    resync_every: float = 600.0
    """Seconds between two comparisons with what there is: a watch that was cut off for long does not tell what went."""
    workers: int = 4
    """Sinks that are reconciled at the same time."""
    grace: int = 60
    """Seconds a driver gets to finish a flush when its pod is deleted."""
    pull_policy: str = "IfNotPresent"
    """imagePullPolicy of drivers and executors."""
    rolling: int = 3
    """Drivers that an operator with another version or other settings restarts at the same time."""
    allow_unsafe_templates: bool = False
    """Whether a sink's pod template may change anything of its pods, what keeps them restricted included."""
    driver_port: int = 8080
    """Where drivers serve /status, /metrics and /healthz; another one where pods share their node's network."""
