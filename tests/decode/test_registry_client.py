"""The schema registry: what it knows is found, and what it cannot say now is never taken for a bad record."""

from __future__ import annotations

import gzip
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import trustme

from s3sink_api.spec import SchemaRegistry as Registry
from s3sink_api.spec import SecretRef, SecretSource
from s3sink_job.base.errors import FinalError, S3SinkError, TransientError
from s3sink_job.base.retry import NO_RETRIES, RetryPolicy
from s3sink_job.base.secrets import Secrets, write_secrets
from s3sink_job.decode import registry_http
from s3sink_job.decode.registry_client import RegistryClient, registry_client
from s3sink_job.decode.writer_schemas import Reference, WriterSchema, numbered
from tests.decode.registry_answers import AVRO, FOUND, Answer, Respond, answering
from tools.parts.processes import free_ports
from tools.parts.registry import SchemaRegistry

NO_SECRETS = Secrets("/nonexistent")
QUICK = RetryPolicy(max=3, backoff=0.001)
PASSWORD, TOKEN = "pa:ss wörd", "t0ken-of-the-sink"


def client_of(url: str, retry: RetryPolicy = NO_RETRIES) -> RegistryClient:
    return registry_client(Registry(url=url), NO_SECRETS, retry)


def record(name: str, **fields: Any) -> str:
    return json.dumps({"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields.items()]})


def refers(name: str, subject: str, version: int = 1) -> dict[str, Any]:
    return {"name": name, "subject": subject, "version": version}


@pytest.fixture
def client(registry: SchemaRegistry) -> RegistryClient:
    return client_of(registry.url)


def test_a_schema_is_found_by_its_id(registry: SchemaRegistry, client: RegistryClient, topic_name: str) -> None:
    text = record("Order", id="long")
    number = registry.register(f"{topic_name}-value", text)
    assert client.schema(numbered(number)) == WriterSchema("AVRO", text)


def test_references_come_after_what_they_refer_to(
    registry: SchemaRegistry, client: RegistryClient, topic_name: str
) -> None:
    subject = {name: f"{topic_name}/{name} %é" for name in ("A", "B", "C", "D")}
    text = {"A": record("A", x="int"), "B": record("B", a="A"), "C": record("C", a="A", b="B"), "D": record("D", c="C")}
    a, b, c = (refers(name, subject[name]) for name in ("A", "B", "C"))
    registry.register(subject["A"], text["A"])
    registry.register(subject["B"], text["B"], references=[a])
    registry.register(subject["C"], text["C"], references=[b, a])
    number = registry.register(subject["D"], text["D"], references=[c])
    references = tuple(Reference(name, text[name]) for name in ("A", "B", "C"))
    assert client.schema(numbered(number)) == WriterSchema("AVRO", text["D"], references)


@pytest.mark.parametrize("number", [0, 999_999, 2**31 - 1, 2**31, 2**32 - 1, -1])
def test_an_unknown_id_is_no_error(client: RegistryClient, number: int) -> None:
    assert client.schema(numbered(number)) is None


def test_the_latest_version_of_a_subject_is_found(
    registry: SchemaRegistry, client: RegistryClient, topic_name: str
) -> None:
    subject = f"{topic_name}-value"
    assert client.latest(topic_name, "value") is None
    assert list(client.newest(topic_name, "value", 5)) == []
    numbers = [registry.register(subject, record("Order", **{f"f{n}": "int"})) for n in range(4)]
    latest = client.latest(topic_name, "value")
    assert latest is not None
    assert latest.name == f"{subject}, version 4, id {numbers[-1]}"
    assert latest.schema == client.schema(numbered(numbers[-1]))
    newest = list(client.newest(topic_name, "value", 3))
    assert newest[0] == latest
    assert [found.ids for found in newest] == [(numbered(number),) for number in reversed(numbers)][:3]


def test_a_schema_of_two_megabytes_is_read(registry: SchemaRegistry, client: RegistryClient, topic_name: str) -> None:
    text = json.dumps(json.loads(record("Large", id="long")) | {"doc": "x" * 2 * 2**20})
    assert client.schema(numbered(registry.register(f"{topic_name}-value", text))) == WriterSchema("AVRO", text)


def test_a_wrong_path_is_not_an_unknown_id(registry: SchemaRegistry) -> None:
    with pytest.raises(FinalError, match=r"is schemaRegistry\.url right") as raised:
        client_of(registry.url.replace("v7", "v77")).schema(numbered(1))
    assert raised.value.reason == "RegistryNotJson"


def test_a_frozen_registry_is_a_retry(
    registry: SchemaRegistry, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = registry.register(f"{topic_name}-value", AVRO)
    monkeypatch.setattr(registry_http, "READ_TIMEOUT", 0.3)
    registry_http._pool.cache_clear()
    client = client_of(registry.url)
    registry.pause()
    try:
        with pytest.raises(TransientError, match=rf"{registry.url}/schemas/ids/{number}.*[Tt]imed? ?out") as raised:
            client.schema(numbered(number))
    finally:
        registry.resume()
    registry_http._pool.cache_clear()
    assert raised.value.reason == "RegistryUnavailable"
    assert client_of(registry.url).schema(numbered(number)) == WriterSchema("AVRO", AVRO)


def counted(requests: list[str], answer: Answer) -> Respond:
    """Always this answer; the paths are added to `requests`."""

    def respond(path: str, _: Mapping[str, str]) -> Answer:
        requests.append(path)
        return answer

    return respond


HTML = b"<!DOCTYPE html><title>Sign in</title>"


@pytest.mark.parametrize(
    ("answer", "reason", "words"),
    [
        (Answer(200, HTML), "RegistryNotJson", "answered HTML instead of JSON: is schemaRegistry.url right?"),
        (Answer(404, HTML), "RegistryNotJson", "answered HTML instead of JSON"),
        (Answer(404, b""), "RegistryNotJson", "answered nothing instead of JSON"),
        (Answer(200, b"[" * 100_000), "RegistryNotJson", "answered text instead of JSON"),
        (Answer(200, b"[1]"), "RegistryInvalid", "has no schema"),
        (Answer(200, b'{"schema": 5}'), "RegistryInvalid", "has no schema"),
        (Answer(200, b'{"schema": "", "references": [1]}'), "RegistryInvalid", "has no subject"),
        (Answer(200, b'{"schema": "", "references": 1}'), "RegistryInvalid", "not a list"),
        (Answer(404, b'{"error_code": 404, "message": "HTTP 404 Not Found"}'), "RegistryRefused", "404 Not Found"),
        (Answer(404, b'{"error_code": [1]}'), "RegistryRefused", "404"),
        (Answer(422, b'{"error_code": 42201}'), "RegistryRefused", "422"),
        (Answer(401, HTML), "RegistryDenied", "401: check the Secret of schemaRegistry.credentialsFrom"),
        (Answer(403, b'{"error_code": 40301}'), "RegistryDenied", "403"),
        (Answer(302, b"", {"Location": "http://elsewhere/x"}), "RegistryRefused", "redirected to elsewhere,"),
        (Answer(302, b"", {"Location": "http://[::1"}), "RegistryRefused", "redirected to something that is no URL,"),
        (Answer(302, b"", {"Location": "/again"}), "RegistryRefused", "redirected 3 times"),
        (Answer(200, b'"' + b"x" * 2**24 + b'"'), "RegistryInvalid", "more than 16 MiB"),
        (
            Answer(200, gzip.compress(b" " * 2**26), {"Content-Encoding": "gzip"}),
            "RegistryInvalid",
            "more than 16 MiB",
        ),
    ],
)
def test_an_answer_that_waiting_cannot_mend_stops_at_once(answer: Answer, reason: str, words: str) -> None:
    requests: list[str] = []
    with answering(counted(requests, answer)) as url, pytest.raises(FinalError) as raised:
        client_of(url, QUICK).schema(numbered(7))
    assert raised.value.reason == reason
    assert words in str(raised.value)
    assert f"{url}/schemas/ids/7" in str(raised.value) or f"registry {url}: " in str(raised.value)
    assert len([path for path in requests if path == "/schemas/ids/7"]) == 1


@pytest.mark.parametrize(
    "body",
    [
        {"error_code": 40403, "message": "Schema not found"},
        {"status": 404, "name": "ContentNotFoundException", "detail": "No content with ID '7' was found."},
    ],
)
def test_an_unknown_id_is_known_by_the_words_of_each_registry(body: dict[str, Any]) -> None:
    with answering(lambda *_: Answer(404, json.dumps(body).encode())) as url:
        assert client_of(url).schema(numbered(7)) is None


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_an_answer_that_means_later_is_retried(status: int) -> None:
    answers = iter([Answer(status, HTML), Answer(status), FOUND])
    with answering(lambda *_: next(answers)) as url:
        assert client_of(url, QUICK).schema(numbered(7)) == WriterSchema("AVRO", AVRO)


def test_retries_end_with_an_error_that_a_later_try_may_mend() -> None:
    requests: list[str] = []
    answer = Answer(503, b'{"message": "leader is not known"}')
    words = r"/schemas/ids/7: 503, 'leader is not known'"
    with answering(counted(requests, answer)) as url, pytest.raises(TransientError, match=words) as raised:
        client_of(url, QUICK).schema(numbered(7))
    assert raised.value.reason == "RegistryUnavailable"
    assert len(requests) == QUICK.max + 1


@pytest.mark.parametrize(("retry_after", "waited"), [("2", 2.0), ("3600", 10.0), ("soon", 0.0), ("-5", 0.0)])
def test_a_throttled_registry_is_left_alone_for_as_long_as_it_asks(retry_after: str, waited: float) -> None:
    answers = iter([Answer(429, headers={"Retry-After": retry_after}), FOUND])
    waits: list[float] = []
    with answering(lambda *_: next(answers)) as url:
        get = registry_http.open_registry(Registry(url=url), NO_SECRETS)
        assert RegistryClient(url, get, QUICK, waits.append).schema(numbered(7)) is not None
    assert waits == [waited]


def test_a_refused_connection_is_a_retry() -> None:
    (port,) = free_ports(1)
    with pytest.raises(TransientError, match=f"http://127.0.0.1:{port}/schemas/ids/7.*refused") as raised:
        client_of(f"http://127.0.0.1:{port}").schema(numbered(7))
    assert raised.value.reason == "RegistryUnavailable"


def test_a_connection_that_breaks_off_is_a_retry() -> None:
    broken = Answer(200, b"{", {"Content-Length": "1000", "Connection": "close"})
    answers = iter([broken, FOUND])
    with answering(lambda *_: next(answers)) as url:
        assert client_of(url, QUICK).schema(numbered(7)) == WriterSchema("AVRO", AVRO)


def test_an_answer_that_trickles_does_not_hold_a_task_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_http, "WHOLE_TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def trickle() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                try:
                    while True:
                        connection.sendall(b"1\r\n \r\n")
                        time.sleep(0.02)
                except OSError:
                    pass

        threading.Thread(target=trickle, daemon=True).start()
        with pytest.raises(TransientError, match="no whole answer within"):
            client_of(f"http://127.0.0.1:{server.getsockname()[1]}").schema(numbered(7))


def test_a_redirect_on_the_same_host_is_followed() -> None:
    def respond(path: str, _: Mapping[str, str]) -> Answer:
        return FOUND if path.startswith("/v2/") else Answer(308, b"", {"Location": f"/v2{path}"})

    with answering(respond) as url:
        assert client_of(url).schema(numbered(7)) == WriterSchema("AVRO", AVRO)


def test_references_that_form_a_cycle_are_refused() -> None:
    def respond(path: str, _: Mapping[str, str]) -> Answer:
        other = "b" if path.startswith("/subjects/a") else "a"
        return Answer(body=json.dumps({"schema": AVRO, "references": [refers("R", other)]}).encode())

    words = "subject a, version 1 refers to itself"
    with answering(respond) as url, pytest.raises(FinalError, match=words) as raised:
        client_of(url).schema(numbered(7))
    assert raised.value.reason == "RegistryInvalid"


def test_a_deleted_version_that_a_schema_refers_to_is_still_read() -> None:
    asked = []

    def respond(path: str, _: Mapping[str, str]) -> Answer:
        asked.append(path)
        if path.startswith("/schemas"):
            return Answer(body=json.dumps({"schema": AVRO, "references": [refers("R", "gone/é", 3)]}).encode())
        return FOUND if path.endswith("?deleted=true") else Answer(404, b'{"error_code": 40406}')

    with answering(respond) as url:
        assert client_of(url).schema(numbered(7)) == WriterSchema("AVRO", AVRO, (Reference("R", AVRO),))
    assert asked[1] == "/subjects/gone%2F%C3%A9/versions/3?deleted=true"


def test_a_reference_to_nothing_is_named() -> None:
    def respond(path: str, _: Mapping[str, str]) -> Answer:
        if path.startswith("/schemas"):
            return Answer(body=json.dumps({"schema": AVRO, "references": [refers("R", "gone", 3)]}).encode())
        return Answer(404, b'{"error_code": 40401}')

    with answering(respond) as url, pytest.raises(FinalError, match="schema id 7 refers to subject gone, version 3"):
        client_of(url).schema(numbered(7))


def source(name: str) -> SecretSource:
    return SecretSource(secret_ref=SecretRef(name=name))


@pytest.fixture
def logins(tmp_path: Path) -> Secrets:
    content = {
        "basic": {"username": b"sink", "password": PASSWORD.encode()},
        "bearer": {"token": f"{TOKEN}\r\n".encode()},
        "both": {"username": b"sink", "password": b"p", "token": TOKEN.encode()},
        "neither": {"user": b"sink"},
        "two-lines": {"token": f"{TOKEN}\r\nX-Other: 1".encode()},
    }
    return write_secrets(tmp_path, content)


@pytest.mark.parametrize(
    ("name", "header"), [("basic", "Basic c2luazpwYTpzcyB3w7ZyZA=="), ("bearer", f"Bearer {TOKEN}")]
)
def test_a_login_is_sent_and_never_repeated_in_an_error(name: str, header: str, logins: Secrets) -> None:
    def respond(path: str, headers: Mapping[str, str]) -> Answer:
        return FOUND if headers.get("authorization") == header and path.endswith("7") else Answer(401)

    with answering(respond) as url:
        client = registry_client(Registry(url=url, credentials_from=source(name)), logins, NO_RETRIES)
        assert client.schema(numbered(7)) == WriterSchema("AVRO", AVRO)
        with pytest.raises(FinalError) as raised:
            client.schema(numbered(8))
        with pytest.raises(FinalError, match="401"):
            client_of(url).schema(numbered(7))
    assert all(secret not in str(raised.value) for secret in (PASSWORD, TOKEN, header))


@pytest.mark.parametrize("name", ["both", "neither", "two-lines", "missing"])
def test_a_secret_that_is_no_login_is_refused_without_its_content(name: str, logins: Secrets) -> None:
    with pytest.raises(FinalError, match=f"Secret '{name}'") as raised:
        registry_client(Registry(url="http://r", credentials_from=source(name)), logins)
    assert TOKEN not in str(raised.value)


def test_a_changed_login_is_used_by_the_next_client(tmp_path: Path) -> None:
    with answering(lambda _, headers: FOUND if headers.get("authorization") == "Bearer new" else Answer(401)) as url:
        registry = Registry(url=url, credentials_from=source("login"))
        with pytest.raises(FinalError, match="401"):
            registry_client(registry, write_secrets(tmp_path, {"login": {"token": b"old"}})).schema(numbered(7))
        assert registry_client(registry, write_secrets(tmp_path, {"login": {"token": b"new"}})).schema(numbered(7))


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def certificates(authority: trustme.CA, tmp_path: Path) -> Secrets:
    own = authority.issue_cert("sink")
    pair = {"tls.crt": own.cert_chain_pems[0].bytes(), "tls.key": own.private_key_pem.bytes()}
    other = trustme.CA()
    secrets = {
        "ca": {"ca.crt": authority.cert_pem.bytes()},
        "other-ca": {"ca.crt": other.cert_pem.bytes()},
        "no-ca": {"ca.crt": b"nothing"},
        "client": pair,
        "mixed": pair | {"tls.key": other.issue_cert("sink").private_key_pem.bytes()},
    }
    return write_secrets(tmp_path / "tls", secrets)


@pytest.fixture
def secure_url(authority: trustme.CA) -> Iterator[str]:
    """A registry that wants certificates of its clients."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(tls)
    authority.configure_trust(tls)
    tls.verify_mode = ssl.CERT_REQUIRED
    with answering(lambda *_: FOUND, tls) as url:
        yield url


def tls_error(url: str, secrets: Secrets, ca: str, cert: str) -> S3SinkError:
    registry = Registry(url=url, ca_from=source(ca) if ca else None, cert_from=source(cert) if cert else None)
    with pytest.raises(S3SinkError) as raised:
        registry_client(registry, secrets, NO_RETRIES).schema(numbered(7))
    return raised.value


def test_a_private_authority_and_a_client_certificate_are_used(secure_url: str, certificates: Secrets) -> None:
    registry = Registry(url=secure_url, ca_from=source("ca"), cert_from=source("client"))
    assert registry_client(registry, certificates).schema(numbered(7)) == WriterSchema("AVRO", AVRO)


@pytest.mark.parametrize(
    ("ca", "cert", "words"),
    [
        ("", "client", "certificate in certificate chain"),
        ("other-ca", "client", "certificate in certificate chain"),
        ("no-ca", "client", ""),
        ("ca", "mixed", "KEY_VALUES_MISMATCH"),
    ],
)
def test_a_tls_mistake_is_named(secure_url: str, certificates: Secrets, ca: str, cert: str, words: str) -> None:
    error = tls_error(secure_url, certificates, ca, cert)
    assert (type(error), error.reason) == (FinalError, "RegistryTls")
    assert words in str(error)
    assert "schemaRegistry.caFrom" in str(error)


def test_a_registry_without_tls_behind_https_is_named(certificates: Secrets) -> None:
    with answering(lambda *_: FOUND) as url:
        error = tls_error(url.replace("http:", "https:"), certificates, "ca", "")
    assert error.reason == "RegistryTls"


def test_a_missing_client_certificate_is_named(secure_url: str, certificates: Secrets) -> None:
    error = tls_error(secure_url, certificates, "ca", "")
    assert error.reason in {"RegistryTls", "RegistryUnavailable"}
    assert "certFrom" in str(error)


def test_a_secret_without_a_certificate_is_named(secure_url: str, certificates: Secrets) -> None:
    assert "lacks the key 'tls.crt'" in str(tls_error(secure_url, certificates, "ca", "ca"))
