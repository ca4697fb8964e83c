"""A watch that stalls without an error must be noticed: only a restart helps."""

from __future__ import annotations

import http.client

from prometheus_client import CollectorRegistry

from s3sink_operator.process.probe_server import serve
from s3sink_operator.process.watch_liveness import WatchKey, WatchLiveness


def test_one_silent_watch_is_reported_as_stalled() -> None:
    clock = [0.0]
    liveness = WatchLiveness((WatchKey("", "s3sinks"), WatchKey("", "pods")), 180.0, lambda: clock[0])
    assert not liveness.ready
    liveness.record_activity("/apis/s3sink.dev/v1alpha1/s3sinks")
    assert not liveness.ready
    liveness.record_activity("/api/v1/pods")
    assert liveness.ready
    clock[0] = 170.0
    liveness.record_activity("/api/v1/pods")
    assert liveness.stalled() == []
    clock[0] = 190.0
    assert liveness.stalled() == ["s3sinks"]


def test_each_namespace_has_its_own_watch() -> None:
    clock = [0.0]
    liveness = WatchLiveness((WatchKey("shop", "pods"), WatchKey("bank", "pods")), 180.0, lambda: clock[0])
    clock[0] = 170.0
    liveness.record_activity("/api/v1/namespaces/shop/pods")
    assert not liveness.ready
    clock[0] = 190.0
    assert liveness.stalled() == ["pods in bank"]


def test_healthz_names_the_stalled_watch() -> None:
    clock = [0.0]
    liveness = WatchLiveness((WatchKey("", "s3sinks"),), 10.0, lambda: clock[0])
    server = serve(("127.0.0.1", 0), CollectorRegistry(), liveness)
    try:
        assert get(server.server_address[1], "/healthz") == (200, "ok\n")
        clock[0] = 11.0
        assert get(server.server_address[1], "/healthz") == (503, "no events or watch restarts from: s3sinks\n")
    finally:
        server.shutdown()
        server.server_close()


def get(port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()
