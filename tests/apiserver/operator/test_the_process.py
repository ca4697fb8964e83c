"""The operator as a process: metrics, start, stop, two at once, a new version, an error of its own."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from kubernetes.config import kube_config
from prometheus_client import CollectorRegistry

from s3sink_operator import reconcile
from s3sink_operator.metrics import Metrics
from s3sink_operator.observe.api_client import ApiClient
from s3sink_operator.observe.driver_polling import DriverPoller
from s3sink_operator.observe.object_cache import ObjectCache
from s3sink_operator.reconcile import Reconciler
from s3sink_operator.settings import Settings
from s3sink_operator.values.objects import SinkKey
from tests.apiserver.conftest import DEFINITION, install
from tests.apiserver.operator.conftest import QUICK
from tests.apiserver.operator.namespaces import CHILDREN, SinkNamespace, sink
from tools.cluster import BareCluster
from tools.cluster.client import CRDS, Client
from tools.operator_harness import ApiProxy, FakeNode, Operator, report
from tools.parts.proxy import Delay, request_is
from tools.polling import until

ROLLING = 3
SINKS = [f"orders-{number}" for number in range(8)]
Start = Callable[..., Operator]


@pytest.fixture
def start(namespace: SinkNamespace, node: FakeNode, tmp_path: Path) -> Iterator[Start]:
    """Starts operators for the namespace of the test."""
    made: list[Operator] = []

    def new(*flags: str, server: str = "") -> Operator:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        flags = (*QUICK, "--driver-port", str(node.port), "--namespaces", namespace.name, *flags)
        made.append(Operator(namespace.cluster, folder, *flags, server=server))
        made[-1].start()
        return made[-1]

    yield new
    for operator in made:
        operator.stop()


def ready(namespace: SinkNamespace) -> dict[str, str]:
    """The images of the drivers that are ready, by sink."""
    found = {}
    for pod in namespace.objects("pods"):
        states = pod["status"].get("containerStatuses") or [{}]
        if states[0].get("ready") and "deletionTimestamp" not in pod["metadata"]:
            found[pod["metadata"]["labels"]["s3sink.dev/sink"]] = pod["spec"]["containers"][0]["image"]
    return found


def test_the_metrics_equal_the_status(namespace: SinkNamespace, node: FakeNode, start: Start) -> None:
    operator = start()
    node.reports[namespace.name, "behind"] = report(
        lag={"records": 42, "seconds": 1.5},
        flush={"lastTime": "2026-11-16T12:00:00Z"},
        retry={"attempts": 3},
    )
    node.answers[namespace.name, "mute"] = lambda handler: handler.connection.close()
    namespace.apply(sink(), sink("behind"), sink("mute"), sink("wrong", transform={"where": "now() > a"}))
    namespace.apply(sink("stopped", state="Stopped"))
    namespace.until_served()
    namespace.until_served("behind")
    namespace.until_reason("mute", "Ready", "NoReport")
    namespace.until_reason("stopped", "Ready", "Stopped")
    namespace.until_reason("wrong", "Accepted", "InvalidSpec")

    def of(name: str, sink: str) -> float:
        return operator.metric(f"s3sink_operator_sink_{name}", namespace=namespace.name, sink=sink)

    until("the measures to be those of the status", lambda: of("lag_records", "behind") == 42, 5)
    assert of("lag_seconds", "behind") == 1.5
    assert of("last_flush_timestamp_seconds", "behind") == 1794830400
    assert of("retry_attempts", "behind") == 3
    assert [of("ready", name) for name in ("orders", "behind", "mute", "wrong", "stopped")] == [1, 1, -1, 0, 0]
    assert [of("spec_refused", name) for name in ("orders", "wrong", "stopped")] == [0, 1, 0]
    phases = {"Running": 2, "Degraded": 1, "Failed": 1, "Stopped": 1, "Pending": 0, "Completed": 0}
    assert {phase: operator.metric("s3sink_operator_sinks", phase=phase) for phase in phases} == phases
    assert operator.metric("s3sink_operator_status_poll_failures_total") > 0
    looks = operator.metric("s3sink_operator_reconciles_total", outcome="ok")
    assert looks >= 5
    assert operator.metric("s3sink_operator_reconciles_total", outcome="error") == 0
    assert operator.metric("s3sink_operator_reconcile_seconds_count") >= looks
    assert operator.metric("s3sink_operator_queue_seconds_count") >= looks
    namespace.delete("s3sink", "behind")
    until("it to be forgotten", lambda: 'sink="behind"' not in operator.get("/metrics")[1])


def test_it_stops_at_once_while_working_and_the_next_one_continues(
    namespace: SinkNamespace, node: FakeNode, start: Start
) -> None:
    names = SINKS[:4]
    with ApiProxy(namespace.cluster.kubeconfig) as between:
        operator = start(server=between.server)
        slow = between.faults.on(request_is("PATCH", "/deployments/"), Delay(20))
        namespace.apply(*(sink(name, spark={"mode": "Cluster"}) for name in names))
        until("it to be at work", lambda: slow.hits, every=0.01)
        began = time.monotonic()
        os.kill(operator.pid, signal.SIGTERM)
        until("it to end", lambda: not operator.alive, 10, every=0.02)
        assert operator.code == 0
        assert time.monotonic() - began < 8
        assert "Traceback" not in operator.log
    start()
    for name in names:
        namespace.until_served(name)


def test_without_the_definition_it_waits_and_stays_alive(
    cluster: BareCluster, api: Client, granted: BareCluster, tmp_path: Path
) -> None:
    definition = yaml.safe_load(DEFINITION.read_text())
    operator = Operator(cluster, tmp_path, *QUICK, "--watch-dead-after", "2")
    try:
        api.delete(f"{CRDS}/{definition['metadata']['name']}")
        until("it to be gone", lambda: not api.exists(f"{CRDS}/{definition['metadata']['name']}"))
        operator.launch()
        until("it to say so", lambda: "is not installed; waiting for it" in operator.log)
        assert operator.get("/healthz") == (200, "ok\n")
        assert operator.get("/readyz")[0] == 503
    finally:
        install(api, definition)
        until("it to begin", lambda: operator.get("/readyz")[0] == 200)
        operator.stop()


def test_a_new_version_restarts_few_drivers_at_a_time_a_changed_sink_at_once(
    namespace: SinkNamespace, node: FakeNode, start: Start
) -> None:
    first = start()
    namespace.apply(*(sink(name) for name in SINKS))
    for name in SINKS:
        namespace.until_served(name)
    first.stop()
    node.starts = False
    try:
        start("--image", "s3sink:next", "--rolling", str(ROLLING))
        until("the first to be restarted", lambda: len(ready(namespace)) == len(SINKS) - ROLLING, 20)
        time.sleep(3)
        left = ready(namespace)
        assert len(left) == len(SINKS) - ROLLING
        changed = min(left)
        namespace.patch(changed, {"flush": {"records": 7}})
        until("the changed one to be restarted", lambda: changed not in ready(namespace), 5, every=0.05)
    finally:
        node.starts = True
    fewest = len(SINKS)

    def all_new() -> bool:
        nonlocal fewest
        images = ready(namespace)
        fewest = min(fewest, len(images))
        return len(images) == len(SINKS) and set(images.values()) == {"s3sink:next"}

    until("all to be restarted", all_new, 60, every=0.02)
    assert fewest >= len(SINKS) - ROLLING - 1


def test_two_operators_at_once_do_no_harm(namespace: SinkNamespace, node: FakeNode, start: Start) -> None:
    one, other = start(), start()
    namespace.apply(sink(), sink("wide", spark={"mode": "Cluster"}))
    for name in ("orders", "wide"):
        namespace.until_served(name)
        namespace.patch(name, {"flush": {"records": 7}})
        namespace.until_served(name)
    namespace.change("role", "wide-s3sink", {"rules": []})
    until("the Role to be put right", lambda: (namespace.get("role", "wide-s3sink") or {})["rules"])
    until("peace", lambda: _still(namespace, one, other), 30)
    other.stop()
    # Two operators with different settings: one of them must back off.
    other.start("--image", "s3sink:next")
    until("peace", lambda: _still(namespace, one, other), 60)
    assert "another controller keeps reverting this object; backing off" in one.log + other.log


def _still(namespace: SinkNamespace, *operators: Operator) -> bool:
    before = _written(namespace, *operators)
    time.sleep(3)
    return _written(namespace, *operators) == before


def _written(namespace: SinkNamespace, *operators: Operator) -> tuple[list[str], list[float]]:
    kinds = ("s3sink", *CHILDREN)
    versions = [found["metadata"]["resourceVersion"] for kind in kinds for found in namespace.objects(kind)]
    return versions, [operator.metric("s3sink_operator_writes_total") for operator in operators]


def test_an_operator_error_shows_in_the_status_of_the_sink(
    namespace: SinkNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace.apply(sink())
    # The client reads the environment when it is imported.
    monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(namespace.cluster.kubeconfig))
    cache, settings, key = ObjectCache(), Settings(image="x", cluster="y"), SinkKey(namespace.name, "orders")
    cache.update("S3Sink", namespace.get("s3sink", "orders") or {})
    poller = DriverPoller(cache, settings, lambda _: None, lambda: None)
    reconciler = Reconciler(ApiClient(), cache, poller, settings, Metrics(cache.statuses, CollectorRegistry()))

    def fails(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by mistake")

    with monkeypatch.context() as broken:
        broken.setattr(reconcile, "decide", fails)
        with pytest.raises(ZeroDivisionError):
            reconciler.reconcile(key)
    status, reason, text = namespace.condition("orders", "Ready")
    assert (status, reason) == ("Unknown", "OperatorError")
    assert "ZeroDivisionError: by mistake" in text
    reconciler.reconcile(key)
    assert namespace.condition("orders", "Ready")[1] == "Creating"
