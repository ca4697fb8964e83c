"""Metrics that dashboards and alerts use."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry

from s3sink_operator.metrics import Metrics
from s3sink_operator.process.watch_liveness import WatchKey, WatchLiveness
from s3sink_operator.values.objects import SinkKey

ORDERS = SinkKey("shop", "orders")
LABELS = {"namespace": "shop", "sink": "orders"}


def status(phase: str, reason: str, ready: str = "False") -> dict[str, Any]:
    condition = {"type": "Ready", "status": ready, "reason": reason, "message": "why", "lastTransitionTime": ""}
    return {"phase": phase, "conditions": [condition]}


def scraped(*sinks: tuple[SinkKey, dict[str, Any]]) -> CollectorRegistry:
    registry = CollectorRegistry()
    Metrics(lambda: sinks, registry)
    return registry


def infos(registry: CollectorRegistry) -> list[dict[str, str]]:
    families = [family for family in registry.collect() if family.name == "s3sink_operator_sink_info"]
    return [sample.labels for family in families for sample in family.samples if sample.value == 1]


def test_the_info_metric_has_phase_and_reason_of_every_sink() -> None:
    found = infos(
        scraped(
            (ORDERS, status("Stopped", "Stopped")), (SinkKey("shop", "bills"), status("Running", "Running", "True"))
        )
    )
    assert found == [
        LABELS | {"phase": "Stopped", "reason": "Stopped"},
        {"namespace": "shop", "sink": "bills", "phase": "Running", "reason": "Running"},
    ]


def test_a_sink_has_one_info_series_at_a_time() -> None:
    held = {ORDERS: status("Pending", "Creating")}
    registry = CollectorRegistry()
    Metrics(held.items, registry)
    assert infos(registry) == [LABELS | {"phase": "Pending", "reason": "Creating"}]
    held[ORDERS] = status("Degraded", "CrashLoopBackOff")
    assert infos(registry) == [LABELS | {"phase": "Degraded", "reason": "CrashLoopBackOff"}]
    held.clear()
    assert infos(registry) == []


def test_a_sink_without_a_status_is_pending() -> None:
    registry = scraped((ORDERS, {}))
    assert infos(registry) == [LABELS | {"phase": "Pending", "reason": ""}]
    assert registry.get_sample_value("s3sink_operator_sinks", {"phase": "Pending"}) == 1


def test_a_stopped_sink_differs_from_a_degraded_one() -> None:
    registry = scraped(
        (ORDERS, status("Stopped", "Stopped")), (SinkKey("shop", "bills"), status("Degraded", "NoReport"))
    )
    for sink in ("orders", "bills"):
        assert registry.get_sample_value("s3sink_operator_sink_ready", LABELS | {"sink": sink}) == 0
    assert [found["phase"] for found in infos(registry)] == ["Stopped", "Degraded"]


def test_the_silence_of_the_quietest_watch_is_exported() -> None:
    clock = [0.0]
    liveness = WatchLiveness((WatchKey("", "s3sinks"), WatchKey("", "pods")), 180.0, lambda: clock[0])
    registry = CollectorRegistry()
    liveness.export(registry)
    clock[0] = 100.0
    liveness.record_activity("/api/v1/pods")
    assert registry.get_sample_value("s3sink_operator_watch_silent_seconds") == 100
    liveness.record_activity("/apis/s3sink.dev/v1alpha1/s3sinks")
    clock[0] = 120.0
    assert registry.get_sample_value("s3sink_operator_watch_silent_seconds") == 20


def test_silence_is_counted_from_the_reset() -> None:
    clock = [0.0]
    liveness = WatchLiveness((WatchKey("", "s3sinks"),), 180.0, lambda: clock[0])
    clock[0] = 1000.0
    liveness.reset()
    clock[0] = 1005.0
    assert liveness.longest_silence() == 5
    assert WatchLiveness((), 180.0).longest_silence() == 0
