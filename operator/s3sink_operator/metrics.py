"""Metrics of the operator itself, and of the status of every sink."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from s3sink_api.conditions import ACCEPTED, PENDING, PHASES, READY
from s3sink_operator.decide.conditions import find
from s3sink_operator.values.objects import SinkKey

Statuses = Callable[[], Iterable[tuple[SinkKey, Mapping[str, Any]]]]
_QUEUE_BUCKETS = (0.005, 0.025, 0.1, 0.5, 1.0, 3.0, 10.0, 30.0, 120.0)


class Metrics:
    def __init__(self, statuses: Statuses, registry: CollectorRegistry) -> None:
        self.reconciles = Counter(
            "s3sink_operator_reconciles", "Reconciliations of sinks, by outcome.", ["outcome"], registry=registry
        )
        self.seconds = Histogram(
            "s3sink_operator_reconcile_seconds", "Duration of a reconciliation.", registry=registry
        )
        self.waited = Histogram(
            "s3sink_operator_queue_seconds",
            "How long a sink waited in the queue for its reconciliation.",
            buckets=_QUEUE_BUCKETS,
            registry=registry,
        )
        self.poll_failures = Counter(
            "s3sink_operator_status_poll_failures", "Polls of a driver that brought no valid report.", registry=registry
        )
        self.writes = Counter("s3sink_operator_writes", "Writes to the API server.", ["what"], registry=registry)
        registry.register(SinkCollector(statuses))


class SinkCollector(Collector):
    """The status of every sink as gauges, computed for each scrape."""

    def __init__(self, statuses: Statuses) -> None:
        self._statuses = statuses

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        phases = GaugeMetricFamily("s3sink_operator_sinks", "Number of sinks, by phase.", labels=["phase"])
        infos = GaugeMetricFamily(
            "s3sink_operator_sink_info",
            "Always 1; its labels hold the phase of the sink and the reason of its condition Ready.",
            labels=["namespace", "sink", "phase", "reason"],
        )
        gauges = {name: _gauge(name, text) for name, text in _GAUGES.items()}
        counts: Tally[str] = Tally()
        for key, status in self._statuses():
            phase = str(status.get("phase", PENDING))
            counts[phase] += 1
            infos.add_metric([key.namespace, key.name, phase, str((find(status, READY) or {}).get("reason", ""))], 1.0)
            for name, value in _values(status):
                gauges[name].add_metric([key.namespace, key.name], value)
        for phase in PHASES:
            phases.add_metric([phase], counts[phase])
        yield phases
        yield infos
        yield from gauges.values()


_GAUGES = {
    "ready": "Condition Ready of the sink: 1 for True, 0 for False, -1 for Unknown.",
    "spec_refused": "1 while the spec is refused because of mistakes, else 0.",
    "lag_records": "Offsets in Kafka that are not in the bucket yet, as last written to the status.",
    "lag_seconds": "The longest time that a partition has been behind, as last written to the status.",
    "last_flush_timestamp_seconds": "When the last flush was published.",
    "retry_attempts": "Failed attempts since the last flush.",
    "driver_restarts": "Restarts of the driver's container.",
}
_READY_VALUES = {"True": 1.0, "False": 0.0}


def _gauge(name: str, text: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"s3sink_operator_sink_{name}", text, labels=["namespace", "sink"])


def _values(status: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    ready = find(status, READY) or {}
    yield "ready", _READY_VALUES.get(str(ready.get("status")), -1.0)
    yield "spec_refused", float((find(status, ACCEPTED) or {}).get("status") == "False")
    lag, flush = status.get("lag") or {}, status.get("flush") or {}
    found = {
        "lag_records": lag.get("records"),
        "lag_seconds": lag.get("seconds"),
        "retry_attempts": (status.get("retry") or {}).get("attempts"),
        "driver_restarts": (status.get("driver") or {}).get("restarts"),
        "last_flush_timestamp_seconds": _seconds(flush["lastTime"]) if "lastTime" in flush else None,
    }
    yield from ((name, float(value)) for name, value in found.items() if value is not None)


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()
