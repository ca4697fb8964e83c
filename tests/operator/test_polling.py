"""Drivers are asked all the time, and only what changes something is told."""

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

from s3sink_operator.model import Key
from s3sink_operator.poll import Poller, _batches
from s3sink_operator.settings import Settings
from s3sink_operator.store import Store
from tests.operator.facts import report

SINK = Key("shop", "orders")
_METADATA = {"namespace": "shop", "uid": "u", "resourceVersion": "1", "generation": 1}


def put_sink(store: Store) -> None:
    store.put("S3Sink", {"metadata": {**_METADATA, "name": "orders"}, "spec": {}})


def put_pod(store: Store) -> None:
    labels = {"s3sink.dev/sink": "orders", "s3sink.dev/role": "driver"}
    status = {"podIP": "127.0.0.1", "containerStatuses": [{"name": "driver", "ready": True}], "phase": "Running"}
    store.put("Pod", {"metadata": {**_METADATA, "name": "orders-1", "labels": labels}, "status": status})


@dataclass
class Told:
    """A driver that answers as it is told, and what a poller made of it."""

    answer: Callable[[http.server.BaseHTTPRequestHandler], None]
    port: int = 0
    requests: int = 0
    tags: list[str | None] = field(default_factory=list)
    told: int = 0
    failed: int = 0
    poller: Poller = field(init=False)

    def ask(self, seconds: float, **settings: Any) -> Poller:
        """Polls for so long, ten times a second."""
        store = Store()
        put_sink(store)
        put_pod(store)
        given = {"poll_every": 0.1, "report_timeout": 0.4, "driver_port": self.port} | settings
        chosen = Settings(image="x", cluster="y", **given)

        async def run() -> Poller:
            poller = self.poller = Poller(store, chosen, self._tell, self._fail)
            try:
                await asyncio.wait_for(poller.run(), seconds)
            except TimeoutError:
                return poller
            raise AssertionError("it never ends by itself")

        return asyncio.run(run())

    def _tell(self, key: Key) -> None:
        assert key == SINK
        self.told += 1

    def _fail(self) -> None:
        self.failed += 1


@contextmanager
def driver(answer: Callable[[http.server.BaseHTTPRequestHandler], None]) -> Iterator[Told]:
    made = Told(answer)

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


def test_the_same_report_is_told_once_however_often_it_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with driver(says(reports())) as asked:
        poller = asked.ask(0.8)
    assert asked.requests >= 4
    assert (asked.told, asked.failed) == (1, 0)
    heard = poller.heard(SINK).report
    assert heard is not None
    assert heard.document["phase"] == "Running"


def test_a_driver_with_tags_need_not_say_the_same_twice() -> None:
    body = reports()
    tag = f'"{hashlib.sha256(body).hexdigest()[:8]}"'

    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        if handler.headers.get("If-None-Match") == tag:
            handler.send_response(304)
            handler.end_headers()
        else:
            says(body, ETag=tag)(handler)

    with driver(answer) as asked:
        poller = asked.ask(0.8)
    assert asked.tags[:2] == [None, tag]
    assert (asked.told, asked.failed) == (1, 0)
    heard = poller.heard(SINK).report
    assert heard is not None
    assert (heard.changed, heard.document["phase"]) == (heard.heard, "Running")


def test_another_state_is_told_at_once_and_other_figures_when_they_are_due() -> None:
    lag = iter(range(1000))

    def growing(handler: http.server.BaseHTTPRequestHandler) -> None:
        says(reports(lag={"records": next(lag)}))(handler)

    def failing(handler: http.server.BaseHTTPRequestHandler) -> None:
        says(reports(phase=next(phases)))(handler)

    with driver(growing) as asked:
        asked.ask(0.8, figures_every=60.0)
        assert asked.told == 1
        asked.told = 0
        asked.ask(0.8, figures_every=0.3)
        assert 2 <= asked.told <= 3
        asked.told = 0
        phases = iter(["Running", "Running", "Degraded"] + ["Degraded"] * 100)
        asked.answer = failing
        asked.ask(0.8, figures_every=60.0)
        assert asked.told == 2


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (says(b"not json"), "not JSON"),
        (says(b"[]"), "not a JSON object"),
        (says(b'{"phase": 5, "conditions": "x"}'), "lacks phase or conditions"),
        (says(b"x" * ((1 << 20) + 1)), "larger than 1 MiB"),
        (says(b"", code=503), "HTTP 503"),
        (lambda handler: time.sleep(3), "does not answer (TimeoutError"),
        (lambda handler: handler.connection.close(), "does not answer"),
    ],
)
def test_what_is_no_report_is_a_problem_with_a_name_and_told_once(answer: Any, said: str) -> None:
    with driver(answer) as asked:
        poller = asked.ask(1.3)
    assert said in poller.heard(SINK).problem
    assert asked.failed >= 2
    assert asked.told == 1


def test_a_report_that_never_ends_is_cut_off() -> None:
    def drip(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000000")
        handler.end_headers()
        for _ in range(20):
            handler.wfile.write(b" ")
            time.sleep(0.1)

    with driver(drip) as asked:
        began = time.monotonic()
        poller = asked.ask(1.0)
        assert time.monotonic() - began < 1.5
    assert "does not answer" in poller.heard(SINK).problem


def test_with_many_sinks_each_is_asked_less_often_and_may_be_silent_longer() -> None:
    poller = Poller(Store(), Settings(image="x", cluster="y"), lambda _: None, lambda: None)
    assert poller.stale_after() == 45.0
    poller._count = 3000
    assert poller._interval(3000) == 60.0
    assert poller.stale_after() == 180.0


@pytest.mark.parametrize(
    ("count", "interval", "batches", "largest"), [(0, 10, 1, 0), (1, 10, 1, 1), (1000, 20, 20, 50)]
)
def test_many_are_asked_in_one_go_every_second(count: int, interval: float, batches: int, largest: int) -> None:
    keys = [Key("shop", f"orders-{number}") for number in range(count)]
    made = _batches(keys, interval)
    assert (len(made), max(map(len, made))) == (batches, largest)
    assert [key for batch in made for key in batch] == keys


def test_a_driver_that_was_never_asked_is_asked_as_soon_as_its_pod_is_ready() -> None:
    """Its turn would come after the interval, an hour here."""
    with driver(says(reports())) as asked:
        store = Store()
        put_sink(store)
        settings = Settings(image="x", cluster="y", poll_every=3600.0, driver_port=asked.port)

        async def run() -> Poller:
            told = asyncio.Event()
            poller = Poller(store, settings, lambda _: told.set(), lambda: None)
            polling = asyncio.create_task(poller.run())
            await poller.asked.wait()
            assert asked.requests == 0
            put_pod(store)
            poller.saw_pods(SINK)
            await asyncio.wait_for(told.wait(), 5)
            polling.cancel()
            return poller

        poller = asyncio.run(run())
    assert asked.requests == 1
    assert poller.heard(SINK).report is not None
