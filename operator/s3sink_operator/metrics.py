"""What the operator measures of itself."""

from __future__ import annotations

import threading
from collections import Counter as Counted

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from s3sink_operator.crd.status import STATUS
from s3sink_operator.model import Key

PHASES = tuple(STATUS["properties"]["phase"]["enum"])


class Metrics:
    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.reconciles = Counter(
            "s3sink_operator_reconciles", "Looks at a sink, by outcome.", ["outcome"], registry=registry
        )
        self.seconds = Histogram("s3sink_operator_reconcile_seconds", "How long a look took.", registry=registry)
        self.poll_failures = Counter(
            "s3sink_operator_status_poll_failures", "Drivers that did not report when asked.", registry=registry
        )
        self.writes = Counter("s3sink_operator_writes", "Writes to the API server.", ["what"], registry=registry)
        self.sinks = Gauge("s3sink_operator_sinks", "Sinks, by phase.", ["phase"], registry=registry)
        self._phases: dict[Key, str] = {}
        self._lock = threading.Lock()
        for phase in PHASES:
            self.sinks.labels(phase).set(0)

    def phase(self, key: Key, phase: str) -> None:
        """An empty phase for a sink that is gone."""
        with self._lock:
            if phase:
                self._phases[key] = phase
            else:
                self._phases.pop(key, None)
            counts = Counted(self._phases.values())
            for name in PHASES:
                self.sinks.labels(name).set(counts[name])
