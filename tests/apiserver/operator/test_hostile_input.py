"""Broken or hostile input of one sink shows in its own status and does not affect another sink."""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
import yaml

from s3sink_api.spec import SpecError, parse
from tests.api.documents import Steps, put
from tests.apiserver.conftest import DEFINITION, install
from tests.apiserver.manifests import SCHEMA
from tests.apiserver.operator.namespaces import Neighbour, SinkNamespace, sink
from tests.apiserver.test_older_sinks_live_on import lax
from tools.cluster.client import NAMESPACES, Client, Document, Refused
from tools.operator_harness import Answer, FakeNode, Operator, report
from tools.polling import until

TEXT = "é 日本 🎉 \u202e\u2028 'x\""
TEXTS = (TEXT, "é 日本 🎉 \u202e", "é日本")
LIMIT = 1 << 20

pytestmark = pytest.mark.usefixtures("busy_operator")


def says(body: bytes, code: int = 200, header: tuple[str, str] = ("Server", "none")) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        handler.send_header(*header)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def drips(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    with_pauses(lambda: handler.wfile.write(b" "))


def never_ends(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    for _ in range(1000):
        handler.wfile.write(b"10000\r\n" + b" " * (1 << 16) + b"\r\n")


def with_pauses(write: Callable[[], object]) -> None:
    for _ in range(100):
        write()
        time.sleep(0.1)


LIES: dict[str, tuple[Answer, str]] = {
    "not-json": (says(b"<html>"), "is not JSON"),
    "deep": (says(b"[" * 100_000), "is not JSON"),
    "a-list": (says(b"[]"), "is not a JSON object"),
    "wrong-types": (says(b'{"phase": 5, "conditions": "x"}'), "lacks phase or conditions"),
    "too-large": (says(b" " * (LIMIT + 1)), "is larger than 1 MiB"),
    "endless": (never_ends, "is larger than 1 MiB"),
    "failing": (says(b"{}", 500), "HTTP 500"),
    "sent-elsewhere": (says(b"", 302, ("Location", "http://127.0.0.1:1/")), "HTTP 302"),
    "zipped": (says(b"\x1f\x8b\x08\x00", 200, ("Content-Encoding", "gzip")), "is not JSON"),
    "slow": (drips, "no answer from"),
    "silent": (lambda _: time.sleep(10), "no answer from"),
    "gone": (lambda handler: handler.connection.close(), "no answer from"),
}


def test_a_driver_with_an_invalid_slow_or_endless_report_is_named(
    namespace: SinkNamespace, node: FakeNode, neighbour: Neighbour, busy_operator: Operator
) -> None:
    failures = busy_operator.metric("s3sink_operator_status_poll_failures_total")
    for name, (answer, _) in LIES.items():
        node.answers[namespace.name, name] = answer
        namespace.apply(sink(name))
    neighbour.is_served()
    for name, (_, said) in LIES.items():
        assert said in namespace.until_reason(name, "Ready", "NoReport", 20), name
        assert namespace.condition(name, "Ready")[0] == "Unknown"
    neighbour.is_served()
    assert busy_operator.metric("s3sink_operator_status_poll_failures_total") > failures + len(LIES)
    assert "Traceback" not in busy_operator.log
    # They recover without any help.
    del node.answers[namespace.name, "silent"], node.answers[namespace.name, "deep"]
    namespace.until_served("silent")
    namespace.until_served("deep")


def test_only_the_valid_part_of_a_report_is_used(
    namespace: SinkNamespace, node: FakeNode, neighbour: Neighbour
) -> None:
    long = TEXT * 200
    wild = report(
        flush={"lastTime": "yesterday", "lastReason": long, "records": -1, "bytes": 2**80, "objects": True},
        retry={"attempts": "many", "lastError": long, "skippedRecords": float("nan")},
        lag={"records": 7, "seconds": float("inf"), "worst": {"topic": long, "partition": 0, "records": 7}},
        offsets=[{"topic": long, "partition": n, "committed": 1, "end": 8, "lag": 7} for n in range(60)],
        gaps={"count": 3, "recent": [None, [], {"topic": "\ud800"}]},
        driver=[],
        unheard_of=long,
    )
    wild["conditions"] += [{**wild["conditions"][0], "message": long}, {"type": "Ready"}, 5, None]
    assert LIMIT > len(json.dumps(wild)) > LIMIT / 2
    node.reports[namespace.name, "orders"] = wild
    namespace.apply(sink())
    namespace.until_served()
    status = namespace.status("orders")
    assert status["lag"]["records"] == 7
    assert "lastTime" not in status["flush"]
    assert len(json.dumps(status)) < 64 * 1024
    neighbour.is_served()


def test_the_longest_and_the_shortest_names_work(namespace: SinkNamespace, neighbour: Neighbour) -> None:
    twins = ["n" * 51 + "1", "n" * 51 + "2"]
    names = ["a", "0", *twins, "a-" * 25 + "bc", f"{'b' * 36}{'-' * 10}{'c' * 6}"]
    for name in names:
        namespace.apply(sink(name, spark={"mode": "Cluster"}))
    namespace.apply(sink("m" * 52, run="Scheduled", schedule="@hourly"), sink("o" * 52, run="Once"))
    for name in (*names, "o" * 52):
        namespace.until_served(name)
    namespace.until_reason("m" * 52, "Ready", "WaitingForSchedule")
    # Each has its own Deployment and two accounts.
    assert len(namespace.objects("deployment")) == len(names)
    assert len(namespace.objects("serviceaccount")) == 2 * len(names) + 2 + 1
    with pytest.raises(Refused, match="52"):
        namespace.apply(sink("x" * 53))
    neighbour.is_served()


def text_fields(schema: Any, at: Steps = ("spec",)) -> list[Steps]:
    """Those that take any text."""
    if schema.get("type") == "string" and "enum" not in schema:
        return [at]
    return [path for name, inner in schema.get("properties", {}).items() for path in text_fields(inner, (*at, name))]


def test_texts_with_any_character_reach_the_driver(namespace: SinkNamespace, neighbour: Neighbour) -> None:
    document, taken = sink(), []
    for at in text_fields(SCHEMA):
        candidates = (put(document, at, text) for text in TEXTS)
        if found := next((each for each in candidates if is_taken(namespace, each)), None):
            document = found
            taken.append(".".join(map(str, at)))
    assert {"spec.destination.prefix", "spec.source.publishOffsetsTo"} <= set(taken), taken
    document["metadata"]["annotations"] |= {"note": TEXT * 100, "s3sink.dev/note": TEXT}
    namespace.client.post(namespace.path("s3sink"), document)
    namespace.until_served()
    stored = namespace.get("s3sink", "orders") or {}
    assert namespace.manifest()["spec"] == stored["spec"]
    assert namespace.manifest()["metadata"]["annotations"] == {"s3sink.dev/note": TEXT}
    neighbour.is_served()


def is_taken(namespace: SinkNamespace, document: Document) -> bool:
    try:
        parse(document)
        namespace.client.try_post(namespace.path("s3sink"), document)
    except (SpecError, Refused):
        return False
    return True


def test_the_largest_spec_works_and_a_larger_one_is_refused(namespace: SinkNamespace, neighbour: Neighbour) -> None:
    topics = [f"topic-{n:04}-{'x' * 40}" for n in range(5000)]
    fields = {f"field_{n}_{'x' * 60}": {"type": "string"} for n in range(2000)}
    schema = json.dumps({"type": "object", "properties": fields})
    assert 200_000 > len(schema) > 180_000
    source = {"bootstrapServers": "kafka:9092", "topics": topics, "value": {"format": "Json", "schema": schema}}
    namespace.apply(sink(source=source, format={"type": "Parquet"}))
    namespace.until_served()
    assert namespace.manifest()["spec"]["source"]["topics"] == topics
    neighbour.is_served()
    # More than a ConfigMap holds.
    variables = [{"name": f"NOTE_{n}", "value": "x" * 100_000} for n in range(11)]
    template = {"spec": {"containers": [{"name": "driver", "env": variables}]}}
    namespace.apply(sink("huge", spark={"driver": {"podTemplate": template}}))
    assert "may not be more than 1048576 bytes" in namespace.until_reason("huge", "Ready", "Refused")
    neighbour.is_served()
    namespace.apply(sink("huge"))
    namespace.until_served("huge")


def test_a_spec_from_an_older_definition_is_refused_and_its_driver_runs_on(
    namespace: SinkNamespace, api: Client, neighbour: Neighbour
) -> None:
    today = yaml.safe_load(DEFINITION.read_text())
    namespace.apply(sink())
    namespace.until_served()
    (pod,), deployment = namespace.pods("orders"), namespace.deployment()
    install(api, lax(today))
    try:
        until("the laxer definition to hold", lambda: _may(namespace, {"flush": {"interval": "5"}}), every=0.05)
    finally:
        install(api, today)
    # A new value each time: the API server does not check a value again that it has stored.
    values = map(str, itertools.count(6))
    until("today's definition to hold", lambda: not _may(namespace, {"flush": {"interval": next(values)}}), every=0.05)
    assert "spec.flush.interval" in namespace.until_reason("orders", "Accepted", "InvalidSpec")
    neighbour.is_served(30)
    assert [found["metadata"]["uid"] for found in namespace.pods("orders")] == [pod["metadata"]["uid"]]
    assert namespace.deployment()["metadata"]["generation"] == deployment["metadata"]["generation"]
    assert namespace.condition("orders", "Ready")[:2] == ("False", "SpecRefused")
    namespace.patch("orders", {"flush": {"interval": "6m"}})
    namespace.until_reason("orders", "Accepted", "Valid")
    namespace.until_served()


def _may(namespace: SinkNamespace, spec: Document) -> bool:
    try:
        namespace.patch("orders", spec)
    except Refused:
        return False
    return True


def test_a_namespace_can_be_deleted_at_any_moment(
    new_namespace: Callable[[], SinkNamespace], api: Client, neighbour: Neighbour, busy_operator: Operator
) -> None:
    shop = new_namespace()
    for number in range(12):
        shop.apply(sink(f"orders-{number}", spark={"mode": "Cluster"}))
    until("the first child", lambda: shop.get("configmap", "orders-0-s3sink"), every=0.01)
    shop.remove()
    neighbour.is_served()
    until("the namespace to be gone", lambda: not api.exists(f"{NAMESPACES}/{shop.name}"))
    until("it to be forgotten", lambda: shop.name not in busy_operator.get("/metrics")[1])
    api.post(NAMESPACES, {"metadata": {"name": shop.name}})
    assert "Traceback" not in busy_operator.log
    assert not re.search(rf"refused an object.*{shop.name}", busy_operator.log)
