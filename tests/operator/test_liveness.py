"""A watch that has died silently is the one thing a restart can mend."""

from __future__ import annotations

import http.client

from prometheus_client import CollectorRegistry

from s3sink_operator.health import Pulse, serve


def test_the_operator_calls_itself_dead_when_one_watch_is_silent() -> None:
    clock = [0.0]
    pulse = Pulse((("", "s3sinks"), ("", "pods")), 180.0, lambda: clock[0])
    assert not pulse.ready
    pulse.beat("/apis/s3sink.dev/v1alpha1/s3sinks")
    assert not pulse.ready
    pulse.beat("/api/v1/pods")
    assert pulse.ready
    clock[0] = 170.0
    pulse.beat("/api/v1/pods")
    assert pulse.silent() == []
    clock[0] = 190.0
    assert pulse.silent() == ["s3sinks"]


def test_every_namespace_has_a_watch_that_may_die() -> None:
    clock = [0.0]
    pulse = Pulse((("shop", "pods"), ("bank", "pods")), 180.0, lambda: clock[0])
    clock[0] = 170.0
    pulse.beat("/api/v1/namespaces/shop/pods")
    assert not pulse.ready
    clock[0] = 190.0
    assert pulse.silent() == ["pods in bank"]


def test_the_probe_names_the_dead_watch() -> None:
    clock = [0.0]
    pulse = Pulse((("", "s3sinks"),), 10.0, lambda: clock[0])
    server = serve(("127.0.0.1", 0), CollectorRegistry(), pulse)
    try:
        assert get(server.server_address[1], "/healthz") == (200, "ok\n")
        clock[0] = 11.0
        assert get(server.server_address[1], "/healthz") == (503, "no word from the watch of s3sinks\n")
    finally:
        server.shutdown()
        server.server_close()


def get(port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()
