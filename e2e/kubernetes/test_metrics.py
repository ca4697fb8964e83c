"""A real Prometheus scrapes operator and sink as in docs/chart.md, with the chart's rules, during an outage."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import OFFSET_END, TopicPartition

from e2e.kubernetes.world import PREFIX, SINK, World
from tests.charts.cases import QUICK_ALERTS
from tests.charts.promtool import groups
from tests.charts.test_alerts import rules_of, scrape_configuration
from tests.charts.test_dashboard import DASHBOARD, queries
from tools.cluster.namespace import Namespace
from tools.parts.helm import NAMESPACE
from tools.parts.prometheus import Prometheus
from tools.parts.proxy import Status, request_is
from tools.polling import until

pytestmark = [pytest.mark.alone, pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]
RULES = groups(
    {
        "alerts": {
            **QUICK_ALERTS,
            "lagGrowing": {"for": "5s", "window": "15s", "threshold": 100},
            "recordsSkipped": {"window": "10m"},
            "recordsLost": {"window": "10m"},
        }
    }
)
LASTING = {"S3SinkRecordsSkipped", "S3SinkRecordsLost"}


@dataclass(frozen=True)
class Outage:
    """The sink's alerts during an outage of the store, and after it."""

    firing: dict[str, str]
    """The description of each alert that fired."""
    firing_after: set[str]


@pytest.fixture(scope="module")
def sink(shared: World) -> World:
    shared.produce(2_000)
    shared.plant.kafka.produce(shared.topic, [(b"key", b"{", None, None)], 0)
    shared.produced += 1
    shared.apply(source={"onDataLoss": "Skip"}, errors={"records": "Skip"})
    shared.settle(240)
    return shared


@pytest.fixture(scope="module")
def prometheus(sink: World) -> Iterator[Prometheus]:
    jobs = scrape_configuration()["scrape_configs"]
    pods = [port for place in (sink.plant.release.home, sink.namespace) for port in discovered(place)]
    # Debian's Prometheus has no discovery of pods.
    here = [{k: v for k, v in job.items() if k != "kubernetes_sd_configs"} | {"static_configs": pods} for job in jobs]
    often = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    with Prometheus({"global": often, "scrape_configs": here}, RULES) as made:
        until("both to be scraped", lambda: [one["health"] for one in made.targets()] == ["up", "up"], 60)
        yield made


@pytest.fixture(scope="module")
def outage(sink: World, prometheus: Prometheus) -> Outage:
    """The store fails, the lag grows, Kafka deletes some records, and the store recovers."""
    assert active(prometheus, sink) <= LASTING
    broken = sink.plant.proxy.on(request_is(path=f"/{PREFIX}/"), Status(503, "SlowDown"))

    def all_firing() -> dict[str, str]:
        sink.produce(200)
        found = firing(prometheus, sink)
        return found if {"S3SinkLagGrowing", "S3SinkNoFlush", "S3SinkRetrying"} <= set(found) else {}

    seen = until("the alerts", all_firing, 120, 1.0)
    for deleted in sink.plant.kafka.admin.delete_records([TopicPartition(sink.topic, 0, OFFSET_END)]).values():
        deleted.result()
    sink.plant.proxy.remove(broken)
    sink.settle()
    until("the alerts to be over", lambda: active(prometheus, sink) <= LASTING, 120, 1.0)
    until("the lasting alerts", lambda: set(firing(prometheus, sink)) == LASTING, 30, 1.0)
    return Outage(seen, set(firing(prometheus, sink)))


def discovered(namespace: Namespace) -> list[dict[str, Any]]:
    """Every port of every pod, with the labels of Prometheus' discovery of pods."""
    found = []
    for pod in namespace.objects("pods"):
        about = {"namespace": pod["metadata"]["namespace"], "pod_name": pod["metadata"]["name"]}
        about["pod_phase"] = pod["status"]["phase"]
        for label, value in pod["metadata"].get("labels", {}).items():
            about[f"pod_label_{re.sub(r'[^a-zA-Z0-9_]', '_', label)}"] = value
        for port in [port for container in pod["spec"]["containers"] for port in container.get("ports", [])]:
            labels = about | {"pod_container_port_name": port.get("name", "")}
            target = f"{pod['status'].get('podIP', '')}:{port['containerPort']}"
            meta = {f"__meta_kubernetes_{name}": value for name, value in labels.items()}
            found.append({"targets": [target], "labels": meta})
    return found


def active(prometheus: Prometheus, sink: World) -> set[str]:
    """The names of the sink's pending and firing alerts."""
    return {alert["labels"]["alertname"] for alert in _of(prometheus, sink)}


def firing(prometheus: Prometheus, sink: World) -> dict[str, str]:
    found = [alert for alert in _of(prometheus, sink) if alert["state"] == "firing"]
    return {alert["labels"]["alertname"]: alert["annotations"]["description"] for alert in found}


def _of(prometheus: Prometheus, sink: World) -> list[dict[str, Any]]:
    mine = {"namespace": sink.namespace.name, "sink": SINK}
    return [alert for alert in prometheus.alerts() if mine.items() <= alert["labels"].items()]


def filled_in(expression: str, sink: World) -> str:
    for name, value in (("$__rate_interval", "5m"), ("$namespace", sink.namespace.name), ("$sink", SINK)):
        expression = expression.replace(name, value)
    return expression


def test_the_documented_configuration_finds_operator_and_driver(prometheus: Prometheus, sink: World) -> None:
    driver, (operator,) = sink.driver(), sink.plant.release.home.objects("pods")
    found = {target["scrapePool"]: target["labels"] for target in prometheus.targets()}
    for labels in found.values():
        del labels["instance"], labels["job"]
    name = driver["metadata"]["name"]
    assert found == {
        "s3sink-operator": {"namespace": NAMESPACE, "pod": operator["metadata"]["name"]},
        "s3sink-drivers": {"namespace": sink.namespace.name, "pod": name, "sink": SINK},
    }
    (info,) = prometheus.query(f's3sink_operator_sink_info{{namespace="{sink.namespace.name}"}}')
    labels = {name: info["metric"][name] for name in ("sink", "phase", "reason")}
    assert labels == {"sink": SINK, "phase": "Running", "reason": "Running"}


def test_the_lag_alert_fires_during_an_outage_and_resolves(outage: Outage, sink: World) -> None:
    assert f"{sink.namespace.name}/{SINK}" in outage.firing["S3SinkLagGrowing"]
    assert "S3SinkLagGrowing" not in outage.firing_after


def test_lost_and_skipped_records_raise_alerts(outage: Outage) -> None:
    assert outage.firing_after == LASTING


@pytest.mark.usefixtures("outage")
def test_every_rule_is_evaluated(prometheus: Prometheus) -> None:
    found = {rule["name"]: (rule["health"], rule.get("lastError", "")) for rule in prometheus.rules()}
    assert found == dict.fromkeys(rules_of(RULES), ("ok", ""))


@pytest.mark.usefixtures("outage")
def test_every_panel_of_the_dashboard_shows_data(prometheus: Prometheus, sink: World) -> None:
    # Lines that only show what is above zero have their data without the comparison.
    shown = [(panel, filled_in(expression.removesuffix(" > 0"), sink)) for panel, expression in queries()]
    answers = [(panel, prometheus.query(expression)) for panel, expression in shown]
    assert [panel for panel, series in answers if not series] == []
    assert [panel for panel, series in answers if any(one["value"][1] == "NaN" for one in series)] == []


def test_namespace_and_sink_can_be_chosen(prometheus: Prometheus, sink: World) -> None:
    for variable, value in (("namespace", sink.namespace.name), ("sink", SINK)):
        (definition,) = (one["definition"] for one in DASHBOARD["templating"]["list"] if one["name"] == variable)
        selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", definition).groups()  # type: ignore[union-attr]
        assert value in {labels[label] for labels in prometheus.series(filled_in(selector, sink))}


@pytest.mark.usefixtures("outage")
def test_a_paused_sink_with_growing_lag_raises_no_alert(prometheus: Prometheus, sink: World) -> None:
    sink.namespace.patch(SINK, {"state": "Paused"})
    sink.namespace.until_reason(SINK, "Ready", "Paused", 120)
    grows, _, _ = rules_of(RULES)["S3SinkLagGrowing"]["expr"].partition("unless")

    def behind() -> bool:
        sink.produce(200)
        return any(one["metric"] == {"namespace": sink.namespace.name, "sink": SINK} for one in prometheus.query(grows))

    until("the lag to grow", behind, 90, 1.0)
    for _ in range(3):
        sink.produce(200)
        time.sleep(1)
        assert active(prometheus, sink) <= LASTING
