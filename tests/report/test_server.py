"""The driver's HTTP server for clients that poll it."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator

import pytest

from s3sink_job.report.server import serve
from s3sink_job.report.status import Reporter


@pytest.fixture
def reporter() -> Reporter:
    return Reporter()


@pytest.fixture
def connection(reporter: Reporter) -> Iterator[http.client.HTTPConnection]:
    server = serve(reporter, ("127.0.0.1", 0), lambda: True)
    made = http.client.HTTPConnection("127.0.0.1", int(server.server_address[1]), timeout=10)
    yield made
    made.close()
    server.shutdown()
    server.server_close()


def ask(connection: http.client.HTTPConnection, tag: str = "") -> tuple[int, str, bytes]:
    connection.request("GET", "/status", headers={"If-None-Match": tag} if tag else {})
    answer = connection.getresponse()
    return answer.status, answer.headers["ETag"], answer.read()


def test_an_unchanged_status_is_not_sent_again(reporter: Reporter, connection: http.client.HTTPConnection) -> None:
    code, tag, body = ask(connection)
    assert (code, json.loads(body)["phase"]) == (200, "Starting")
    assert ask(connection, tag) == (304, tag, b"")
    reporter.phase("Running")
    code, changed, body = ask(connection, tag)
    assert (code, json.loads(body)["phase"]) == (200, "Running")
    assert changed != tag


def test_the_time_of_the_report_does_not_change_the_etag(connection: http.client.HTTPConnection) -> None:
    _, tag, first = ask(connection)
    time.sleep(1.1)
    _, same, second = ask(connection)
    assert json.loads(first)["reportedAt"] != json.loads(second)["reportedAt"]
    assert same == tag


def test_the_connection_is_kept_open(connection: http.client.HTTPConnection) -> None:
    _, tag, _ = ask(connection)
    kept = connection.sock
    ask(connection, tag)
    ask(connection)
    assert connection.sock is kept is not None
