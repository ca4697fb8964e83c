"""What the operator measures of itself, and what it shows of every sink."""

from __future__ import annotations

from collections import Counter as Counted
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from s3sink_operator.crd.status import STATUS
from s3sink_operator.decide.conditions import ACCEPTED, READY, find
from s3sink_operator.model import Key

PHASES = tuple(STATUS["properties"]["phase"]["enum"])
Statuses = Callable[[], Iterable[tuple[Key, Mapping[str, Any]]]]
_WAITS = (0.005, 0.025, 0.1, 0.5, 1.0, 3.0, 10.0, 30.0, 120.0)


class Metrics:
    def __init__(self, statuses: Statuses, registry: CollectorRegistry) -> None:
        self.reconciles = Counter(
            "s3sink_operator_reconciles", "Looks at a sink, by outcome.", ["outcome"], registry=registry
        )
        self.seconds = Histogram("s3sink_operator_reconcile_seconds", "How long a look took.", registry=registry)
        self.waited = Histogram(
            "s3sink_operator_queue_seconds", "How long a sink waited for its look.", buckets=_WAITS, registry=registry
        )
        self.poll_failures = Counter(
            "s3sink_operator_status_poll_failures", "Drivers that did not report when asked.", registry=registry
        )
        self.writes = Counter("s3sink_operator_writes", "Writes to the API server.", ["what"], registry=registry)
        registry.register(Sinks(statuses))


class Sinks(Collector):
    """The status of every sink, as gauges; made when somebody asks."""

    def __init__(self, statuses: Statuses) -> None:
        self._statuses = statuses

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        phases = GaugeMetricFamily("s3sink_operator_sinks", "Sinks, by phase.", labels=["phase"])
        infos = GaugeMetricFamily(
            "s3sink_operator_sink_info",
            "1, with the phase of the sink and the reason of its Ready condition.",
            labels=["namespace", "sink", "phase", "reason"],
        )
        gauges = {name: _gauge(name, text) for name, text in _SHOWN.items()}
        counts: Counted[str] = Counted()
        for key, status in self._statuses():
            phase = str(status.get("phase", "Pending"))
            counts[phase] += 1
            infos.add_metric([key.namespace, key.name, phase, str((find(status, READY) or {}).get("reason", ""))], 1.0)
            for name, value in _figures(status):
                gauges[name].add_metric([key.namespace, key.name], value)
        for phase in PHASES:
            phases.add_metric([phase], counts[phase])
        yield phases
        yield infos
        yield from gauges.values()


_SHOWN = {
    "ready": "Whether the sink is Ready: 1, 0, or -1 where that is not known.",
    "spec_refused": "1 while the spec is refused because of its mistakes, else 0.",
    "lag_records": "Offsets in Kafka that are not in the bucket yet, as last written to the status.",
    "lag_seconds": "The longest time a partition has been behind, as last written to the status.",
    "last_flush_timestamp_seconds": "When the last flush was published.",
    "retry_attempts": "Failures since the last flush.",
    "driver_restarts": "How often the driver's container was started again.",
}
_READY = {"True": 1.0, "False": 0.0}


def _gauge(name: str, text: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"s3sink_operator_sink_{name}", text, labels=["namespace", "sink"])


def _figures(status: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    ready = find(status, READY) or {}
    yield "ready", _READY.get(str(ready.get("status")), -1.0)
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
