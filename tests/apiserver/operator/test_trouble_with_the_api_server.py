"""The API server is slow, refuses, hangs or is down: the operator recovers, and other sinks are hardly affected."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tests.apiserver.operator.conftest import QUICK
from tests.apiserver.operator.namespaces import Neighbour, SinkNamespace, sink
from tools.cluster import BareCluster
from tools.operator_harness import ApiProxy, ApiServer, FakeNode, Operator
from tools.parts.proxy import Call, Delay, DropResponse, Refuse, Status, request_is
from tools.polling import until

WATCHED = ("--watch-timeout", "2", "--watch-dead-after", "6")


@pytest.fixture(scope="module")
def link(granted: BareCluster) -> Iterator[ApiProxy]:
    with ApiProxy(granted.kubeconfig) as made:
        yield made


@pytest.fixture
def between(link: ApiProxy) -> Iterator[ApiProxy]:
    yield link
    link.thaw()
    link.faults.clear()


@pytest.fixture(scope="module")
def operator(
    granted: BareCluster, link: ApiProxy, node: FakeNode, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    flags = (*QUICK, *WATCHED, "--driver-port", str(node.port))
    made = Operator(granted, tmp_path_factory.mktemp("operator"), *flags, server=link.server)
    made.start()
    yield made
    made.stop()


def test_temporary_errors_of_the_api_server_are_retried(
    namespace: SinkNamespace, between: ApiProxy, operator: Operator, neighbour: Neighbour
) -> None:
    here = f"/namespaces/{namespace.name}/"
    faults = [
        between.faults.on(request_is("GET", f"{here}serviceaccounts/a-"), Status(500), times=1),
        between.faults.on(request_is("PATCH", f"{here}configmaps/b-"), Status(409), times=1),
        between.faults.on(request_is("PATCH", f"{here}deployments/c-"), Status(500), times=1),
        between.faults.on(request_is("PATCH", f"{here}s3sinks/d/status"), Status(429), times=1),
        between.faults.on(request_is("PATCH", f"{here}serviceaccounts/e-"), DropResponse(), times=1),
        between.faults.on(request_is("POST", f"{here}events"), Refuse(), times=1),
    ]
    namespace.apply(*(sink(name) for name in "abcde"))
    neighbour.is_served()
    for name in "abcde":
        namespace.until_served(name)
    assert [fault.hits for fault in faults] == [1] * len(faults)
    assert "Traceback" not in operator.log


def test_a_write_that_keeps_failing_shows_in_the_status(
    namespace: SinkNamespace, between: ApiProxy, operator: Operator, neighbour: Neighbour
) -> None:
    fault = between.faults.on(request_is("PATCH", f"/namespaces/{namespace.name}/deployments/"), Status(500))
    namespace.apply(sink())
    assert "HTTP 500" in namespace.until_reason("orders", "Ready", "Refused", 30)
    neighbour.is_served()
    between.faults.remove(fault)
    namespace.until_served()


def test_a_slow_answer_delays_only_its_own_sink(
    namespace: SinkNamespace, between: ApiProxy, operator: Operator, neighbour: Neighbour
) -> None:
    between.faults.on(request_is("PATCH", f"/namespaces/{namespace.name}/"), Delay(2.5))
    began = time.monotonic()
    namespace.apply(sink())
    until("the first slow request", lambda: namespace.get("configmap", "orders-s3sink"), every=0.05)
    neighbour.is_served()
    assert time.monotonic() - began < 7
    assert not namespace.get("deployment", "orders-s3sink")
    between.faults.clear()
    namespace.until_served()


def test_refused_credentials_are_read_again_with_backoff(
    namespace: SinkNamespace, between: ApiProxy, operator: Operator, neighbour: Neighbour
) -> None:
    fault = between.faults.on(request_is(), Status(401))
    until("watches to be refused", lambda: fault.hits > 5)
    hits = fault.hits
    time.sleep(2)
    # With backoff.
    assert fault.hits - hits < 20
    between.faults.clear()
    neighbour.is_served(30)


def test_refused_watches_start_again(between: ApiProxy, operator: Operator, neighbour: Neighbour) -> None:
    fault = between.faults.on(request_is("GET", "/(deployments|pods|s3sinks)$", "watch=true"), Status(503))
    until("all watches to be refused", lambda: fault.hits >= 6)
    between.faults.clear()
    neighbour.is_served(30)


def test_an_idle_cluster_is_healthy_and_a_frozen_connection_is_noticed(
    between: ApiProxy, operator: Operator, neighbour: Neighbour
) -> None:
    neighbour.is_served()
    until("all watches to be alive", lambda: operator.get("/healthz")[0] == 200)
    end = time.monotonic() + 9
    while time.monotonic() < end:
        assert operator.get("/healthz") == (200, "ok\n")
        time.sleep(0.5)
    between.freeze()
    until("the silence to be noticed", lambda: operator.get("/healthz")[0] == 503, 10)
    until("all to be silent", lambda: {"s3sinks", "pods"} <= set(re.findall(r"\w+", operator.get("/healthz")[1])), 5)
    between.thaw()
    neighbour.is_served(60)
    assert until("all watches to be alive", lambda: operator.get("/healthz")[0] == 200, 45)


def test_changes_during_an_outage_of_the_api_server_are_caught_up(
    new_namespace: Callable[[], SinkNamespace],
    granted: BareCluster,
    between: ApiProxy,
    operator: Operator,
    neighbour: Neighbour,
) -> None:
    shop = new_namespace()
    shop.apply(sink(), sink("gone"))
    shop.until_served()
    shop.until_served("gone")
    go_on = threading.Event()
    # No watch shows changes that happened while it was down and that the new server no longer has in its history.
    between.faults.on(request_is("GET", query="watch=true"), Call(before=lambda _: go_on.wait(60)))
    pid, server = operator.pid, ApiServer(granted)
    server.kill()
    server.start()
    shop.delete("deployment", "gone-s3sink")
    shop.patch("orders", {"flush": {"records": 7}})
    until("it to be gone", lambda: not shop.get("deployment", "gone-s3sink"), every=0.05)
    go_on.set()
    shop.until_served(seconds=60)
    assert shop.manifest()["spec"]["flush"]["records"] == 7
    shop.deployment("gone")
    shop.until_served("gone")
    neighbour.is_served()
    assert operator.pid == pid
    assert operator.alive
    assert "Traceback" not in operator.log
