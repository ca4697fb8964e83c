"""What people's dashboards and alerts know of a sink and of the operator."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry

from s3sink_operator.health import Pulse, measure
from s3sink_operator.metrics import Metrics
from s3sink_operator.model import Key

ORDERS = Key("shop", "orders")
LABELS = {"namespace": "shop", "sink": "orders"}


def status(phase: str, reason: str, ready: str = "False") -> dict[str, Any]:
    condition = {"type": "Ready", "status": ready, "reason": reason, "message": "why", "lastTransitionTime": ""}
    return {"phase": phase, "conditions": [condition]}


def scraped(*sinks: tuple[Key, dict[str, Any]]) -> CollectorRegistry:
    registry = CollectorRegistry()
    Metrics(lambda: sinks, registry)
    return registry


def infos(registry: CollectorRegistry) -> list[dict[str, str]]:
    families = [family for family in registry.collect() if family.name == "s3sink_operator_sink_info"]
    return [sample.labels for family in families for sample in family.samples if sample.value == 1]


def test_every_sink_says_what_it_does_and_why() -> None:
    found = infos(
        scraped((ORDERS, status("Stopped", "Stopped")), (Key("shop", "bills"), status("Running", "Running", "True")))
    )
    assert found == [
        LABELS | {"phase": "Stopped", "reason": "Stopped"},
        {"namespace": "shop", "sink": "bills", "phase": "Running", "reason": "Running"},
    ]


def test_a_sink_is_one_series_whatever_becomes_of_it() -> None:
    held = {ORDERS: status("Pending", "Creating")}
    registry = CollectorRegistry()
    Metrics(held.items, registry)
    assert infos(registry) == [LABELS | {"phase": "Pending", "reason": "Creating"}]
    held[ORDERS] = status("Degraded", "CrashLoopBackOff")
    assert infos(registry) == [LABELS | {"phase": "Degraded", "reason": "CrashLoopBackOff"}]
    held.clear()
    assert infos(registry) == []


def test_a_sink_that_nobody_has_looked_at_yet_is_pending() -> None:
    registry = scraped((ORDERS, {}))
    assert infos(registry) == [LABELS | {"phase": "Pending", "reason": ""}]
    assert registry.get_sample_value("s3sink_operator_sinks", {"phase": "Pending"}) == 1


def test_a_stopped_sink_is_told_from_one_that_is_not_well() -> None:
    registry = scraped((ORDERS, status("Stopped", "Stopped")), (Key("shop", "bills"), status("Degraded", "NoReport")))
    for sink in ("orders", "bills"):
        assert registry.get_sample_value("s3sink_operator_sink_ready", LABELS | {"sink": sink}) == 0
    assert [found["phase"] for found in infos(registry)] == ["Stopped", "Degraded"]


def test_the_quietest_watch_shows_while_others_are_heard() -> None:
    clock = [0.0]
    pulse = Pulse((("", "s3sinks"), ("", "pods")), 180.0, lambda: clock[0])
    registry = CollectorRegistry()
    measure(pulse, registry)
    clock[0] = 100.0
    pulse.beat("/api/v1/pods")
    assert registry.get_sample_value("s3sink_operator_watch_silent_seconds") == 100
    pulse.beat("/apis/s3sink.dev/v1alpha1/s3sinks")
    clock[0] = 120.0
    assert registry.get_sample_value("s3sink_operator_watch_silent_seconds") == 20


def test_silence_counts_from_when_there_can_be_watches() -> None:
    clock = [0.0]
    pulse = Pulse((("", "s3sinks"),), 180.0, lambda: clock[0])
    clock[0] = 1000.0
    pulse.begin()
    clock[0] = 1005.0
    assert pulse.longest_silence() == 5
    assert Pulse((), 180.0).longest_silence() == 0
