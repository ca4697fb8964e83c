"""All drivers are polled, and only a change that matters requeues a sink."""

from __future__ import annotations

import asyncio
import hashlib
import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from s3sink_operator.observe.driver_polling import DriverPoller, _batches
from s3sink_operator.observe.object_cache import ObjectCache
from s3sink_operator.settings import Settings
from s3sink_operator.values.objects import SinkKey
from tests.operator.samples import report

SINK = SinkKey("shop", "orders")
_METADATA = {"namespace": "shop", "uid": "u", "resourceVersion": "1", "generation": 1}


def put_sink(cache: ObjectCache) -> None:
    cache.update("S3Sink", {"metadata": {**_METADATA, "name": "orders"}, "spec": {}})


def put_pod(cache: ObjectCache) -> None:
    labels = {"s3sink.dev/sink": "orders", "s3sink.dev/role": "driver"}
    status = {"podIP": "127.0.0.1", "containerStatuses": [{"name": "driver", "ready": True}], "phase": "Running"}
    cache.update("Pod", {"metadata": {**_METADATA, "name": "orders-1", "labels": labels}, "status": status})


@dataclass
class PolledDriver:
    """A driver with a given answer, and what the poller did with it."""

    answer: Callable[[http.server.BaseHTTPRequestHandler], None]
    port: int = 0
    requests: int = 0
    tags: list[str | None] = field(default_factory=list)
    notified: int = 0
    failed: int = 0
    poller: DriverPoller = field(init=False)

    def poll(self, seconds: float, **settings: Any) -> DriverPoller:
        """Polls ten times a second, for so many seconds."""
        cache = ObjectCache()
        put_sink(cache)
        put_pod(cache)
        given = {"poll_every": 0.1, "report_timeout": 0.4, "driver_port": self.port} | settings
        chosen = Settings(image="x", cluster="y", **given)

        async def run() -> DriverPoller:
            poller = self.poller = DriverPoller(cache, chosen, self._notify, self._fail)
            try:
                await asyncio.wait_for(poller.run(), seconds)
            except TimeoutError:
                return poller
            raise AssertionError("it never ends by itself")

        return asyncio.run(run())

    def _notify(self, key: SinkKey) -> None:
        assert key == SINK
        self.notified += 1

    def _fail(self) -> None:
        self.failed += 1


@contextmanager
def driver(answer: Callable[[http.server.BaseHTTPRequestHandler], None]) -> Iterator[PolledDriver]:
    made = PolledDriver(answer)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            made.requests += 1
            made.tags.append(self.headers.get("If-None-Match"))
            made.answer(self)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()


def says(body: bytes, code: int = 200, **headers: str) -> Callable[[http.server.BaseHTTPRequestHandler], None]:
    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def reports(**fields: Any) -> bytes:
    return json.dumps({**report().document, **fields}).encode()


def test_an_unchanged_report_notifies_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with driver(says(reports())) as polled:
        poller = polled.poll(0.8)
    assert polled.requests >= 4
    assert (polled.notified, polled.failed) == (1, 0)
    found = poller.last_result(SINK).report
    assert found is not None
    assert found.document["phase"] == "Running"


def test_an_etag_spares_the_transfer_of_an_unchanged_report() -> None:
    body = reports()
    tag = f'"{hashlib.sha256(body).hexdigest()[:8]}"'

    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        if handler.headers.get("If-None-Match") == tag:
            handler.send_response(304)
            handler.end_headers()
        else:
            says(body, ETag=tag)(handler)

    with driver(answer) as polled:
        poller = polled.poll(0.8)
    assert polled.tags[:2] == [None, tag]
    assert (polled.notified, polled.failed) == (1, 0)
    found = poller.last_result(SINK).report
    assert found is not None
    assert (found.changed, found.document["phase"]) == (found.received, "Running")


def test_conditions_notify_at_once_and_figures_when_they_are_due() -> None:
    lag = iter(range(1000))

    def growing(handler: http.server.BaseHTTPRequestHandler) -> None:
        says(reports(lag={"records": next(lag)}))(handler)

    def failing(handler: http.server.BaseHTTPRequestHandler) -> None:
        says(reports(phase=next(phases)))(handler)

    with driver(growing) as polled:
        polled.poll(0.8, figures_every=60.0)
        assert polled.notified == 1
        polled.notified = 0
        polled.poll(0.8, figures_every=0.3)
        assert 2 <= polled.notified <= 3
        polled.notified = 0
        phases = iter(["Running", "Running", "Degraded"] + ["Degraded"] * 100)
        polled.answer = failing
        polled.poll(0.8, figures_every=60.0)
        assert polled.notified == 2


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (says(b"not json"), "not JSON"),
        (says(b"[]"), "not a JSON object"),
        (says(b'{"phase": 5, "conditions": "x"}'), "lacks phase or conditions"),
        (says(b"x" * ((1 << 20) + 1)), "larger than 1 MiB"),
        (says(b"", code=503), "HTTP 503"),
        (lambda handler: time.sleep(3), "(TimeoutError"),
        (lambda handler: handler.connection.close(), "no answer from"),
    ],
)
def test_an_invalid_report_is_a_named_problem_that_notifies_once(answer: Any, said: str) -> None:
    with driver(answer) as polled:
        poller = polled.poll(1.3)
    assert said in poller.last_result(SINK).problem
    assert polled.failed >= 2
    assert polled.notified == 1


def test_a_report_that_never_ends_times_out() -> None:
    def drip(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000000")
        handler.end_headers()
        for _ in range(20):
            handler.wfile.write(b" ")
            time.sleep(0.1)

    with driver(drip) as polled:
        began = time.monotonic()
        poller = polled.poll(1.0)
        assert time.monotonic() - began < 1.5
    assert "no answer from" in poller.last_result(SINK).problem


def test_with_many_sinks_each_is_polled_less_often_and_stale_later() -> None:
    poller = DriverPoller(ObjectCache(), Settings(image="x", cluster="y"), lambda _: None, lambda: None)
    assert poller.stale_after() == 45.0
    poller._sinks = 3000
    assert poller._interval(3000) == 60.0
    assert poller.stale_after() == 180.0


@pytest.mark.parametrize(
    ("count", "interval", "batches", "largest"), [(0, 10, 1, 0), (1, 10, 1, 1), (1000, 20, 20, 50)]
)
def test_polls_are_sent_in_one_batch_a_second(count: int, interval: float, batches: int, largest: int) -> None:
    keys = [SinkKey("shop", f"orders-{number}") for number in range(count)]
    made = _batches(keys, interval)
    assert (len(made), max(map(len, made))) == (batches, largest)
    assert [key for batch in made for key in batch] == keys


def test_a_new_driver_is_polled_as_soon_as_its_pod_is_ready() -> None:
    """The next regular poll would be an hour later."""
    with driver(says(reports())) as polled:
        cache = ObjectCache()
        put_sink(cache)
        settings = Settings(image="x", cluster="y", poll_every=3600.0, driver_port=polled.port)

        async def run() -> DriverPoller:
            notified = asyncio.Event()
            poller = DriverPoller(cache, settings, lambda _: notified.set(), lambda: None)
            polling = asyncio.create_task(poller.run())
            await poller.all_polled.wait()
            assert polled.requests == 0
            put_pod(cache)
            poller.pods_changed(SINK)
            await asyncio.wait_for(notified.wait(), 5)
            polling.cancel()
            return poller

        poller = asyncio.run(run())
    assert polled.requests == 1
    assert poller.last_result(SINK).report is not None
