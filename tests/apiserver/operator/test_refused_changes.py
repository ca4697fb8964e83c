"""A running sink gets a spec that the API server accepts and the operator refuses."""

from __future__ import annotations

import time
from typing import Any

from tests.apiserver.operator.drivers import Driver
from tests.apiserver.operator.namespaces import SinkNamespace, sink
from tools.operator_harness import Operator
from tools.polling import until

NO_PATTERN = {"source": {"topics": None, "topicPattern": "ord(ers"}}
"""No CEL rule can find that it is not a regular expression."""


def refusals(namespace: SinkNamespace) -> list[dict[str, Any]]:
    return [event for event in namespace.objects("events") if event["reason"] == "SpecRefused"]


def refused(namespace: SinkNamespace, name: str = "orders") -> str:
    """The message, once the operator has seen the sink as it is now."""

    def message() -> str:
        seen = namespace.status(name).get("observedGeneration") == namespace.generation(name)
        return namespace.until_reason(name, "Ready", "SpecRefused") if seen else ""

    return str(until("the refusal", message, every=0.1))


def test_a_refused_change_shows_and_the_driver_runs_on_until_it_is_corrected(
    namespace: SinkNamespace, own_operator: Operator
) -> None:
    own_operator.start()
    namespace.apply(sink())
    with Driver(namespace, "orders") as driver:
        namespace.until_served()
        first, deployment, manifest = namespace.generation(), namespace.deployment(), namespace.manifest()
        namespace.patch("orders", NO_PATTERN)
        message = refused(namespace)
        assert message.startswith("spec.source.topicPattern: ")
        assert message.endswith(f"; the driver keeps running with the spec of generation {first}")
        assert namespace.status("orders")["phase"] == "Degraded"
        row = namespace.kubectl("get", "s3s", "orders", "--no-headers").split()
        assert row[:4] == ["orders", "Degraded", "False", "False"]
        labels = {"namespace": namespace.name, "sink": "orders"}
        assert own_operator.metric("s3sink_operator_sink_spec_refused", **labels) == 1

        driver.reporter.condition("LastFlushSucceeded", False, "AccessDenied", "the store refuses the keys")
        namespace.until_reason("orders", "LastFlushSucceeded", "AccessDenied", 10)
        assert namespace.condition("orders", "Ready")[:2] == ("False", "SpecRefused")
        assert [pod["metadata"]["name"] for pod in namespace.pods("orders")] == [driver.pod]
        assert namespace.deployment()["metadata"]["generation"] == deployment["metadata"]["generation"]
        assert namespace.manifest() == manifest
        time.sleep(3)
        assert len(refusals(namespace)) == 1
        (event,) = refusals(namespace)
        assert (event["type"], event["message"]) == ("Warning", message)

        namespace.patch("orders", {"source": {"topicPattern": "ord(ers|bills"}})
        refused(namespace)
        assert len(refusals(namespace)) == 2

    namespace.patch("orders", {"source": {"topicPattern": "ord(ers)"}})
    namespace.until_reason("orders", "Accepted", "Valid")
    assert namespace.condition("orders", "Ready")[0] == "False"
    until("another pod", lambda: [p for p in namespace.pods("orders") if p["metadata"]["name"] != driver.pod])
    with Driver(namespace, "orders"):
        namespace.until_served()
    assert own_operator.metric("s3sink_operator_sink_spec_refused", **labels) == 0
    assert "Accepted" in namespace.events("orders")


def test_stopped_stops_whatever_else_the_spec_says(namespace: SinkNamespace, own_operator: Operator) -> None:
    own_operator.start()
    namespace.apply(sink())
    with Driver(namespace, "orders"):
        namespace.until_served()
        namespace.patch("orders", NO_PATTERN | {"state": "Paused"})
        assert refused(namespace).endswith("spec.state: Paused takes effect once the spec is valid, Stopped at once")
        assert namespace.pods("orders")
        namespace.patch("orders", {"state": "Stopped"})
        until("no Deployment", lambda: not namespace.get("deployment", "orders-s3sink"))
        until("no pods", lambda: not namespace.objects("pods"))
    namespace.until_reason("orders", "Ready", "Stopped")
    assert namespace.condition("orders", "Accepted")[:2] == ("False", "InvalidSpec")
    namespace.patch("orders", {"state": "Running"})
    assert refused(namespace).endswith("; no driver runs")
    assert namespace.status("orders")["phase"] == "Failed"
    assert not namespace.get("deployment", "orders-s3sink")


def test_a_restarted_operator_writes_nothing_about_a_known_refusal(
    namespace: SinkNamespace, own_operator: Operator
) -> None:
    own_operator.start()
    namespace.apply(sink())
    with Driver(namespace, "orders"):
        namespace.until_served()
        namespace.patch("orders", NO_PATTERN)
        refused(namespace)
        time.sleep(3)
        before = namespace.get("s3sink", "orders")
        own_operator.stop()
        own_operator.start()
        until("a look at it", lambda: own_operator.metric("s3sink_operator_reconciles_total") > 0)
        time.sleep(3)
        assert own_operator.metric("s3sink_operator_writes_total") == 0
        assert namespace.get("s3sink", "orders") == before
        assert len(refusals(namespace)) == 1
