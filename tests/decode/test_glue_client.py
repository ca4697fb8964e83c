"""AWS Glue Schema Registry: what it knows is found, and what it cannot say now is never taken for a bad record."""

from __future__ import annotations

import json
import pickle
import ssl
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
import trustme

from s3sink_api.spec import SchemaRegistry, SecretRef, SecretSource
from s3sink_job.base.errors import FinalError, S3SinkError, TransientError
from s3sink_job.base.retry import NO_RETRIES, RetryPolicy
from s3sink_job.base.secrets import Secrets, write_secrets
from s3sink_job.decode.glue_client import GlueClient
from s3sink_job.decode.registries import open_client
from s3sink_job.decode.schema_access import SchemaAccess
from s3sink_job.decode.settings import SchemaSource
from s3sink_job.decode.writer_schemas import WriterSchema, numbered
from tests.decode.glue_registry import (
    KEYS,
    REGION,
    SOME,
    always,
    error,
    newer_version,
    registered,
    registry_at,
    version,
)
from tests.decode.registry_answers import Answer, answering
from tools.parts.processes import free_ports
from tools.parts.s3 import Moto

QUICK = RetryPolicy(max=2, backoff=0.001)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("AVRO", '{"type":"record","name":"R","fields":[]}'),
        ("JSON", '{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}'),
        ("PROTOBUF", 'syntax = "proto3"; message A {}'),
    ],
)
def test_a_schema_is_found_by_its_version(moto: Moto, secrets: Secrets, kind: str, text: str) -> None:
    client = open_client(registry_at(moto.endpoint), secrets, NO_RETRIES)
    assert client.schema(version(registered(moto, kind, text))) == WriterSchema(kind, text)


def test_a_version_that_glue_does_not_have_is_unknown(moto: Moto, secrets: Secrets) -> None:
    client = open_client(registry_at(moto.endpoint), secrets, NO_RETRIES)
    assert client.schema(version(str(uuid4()))) is None
    assert client.schema(numbered(7)) is None


@pytest.mark.parametrize("part", ["key", "value"])
def test_the_latest_version_is_found_by_the_name_of_the_topic(moto: Moto, secrets: Secrets, part: str) -> None:
    client = open_client(registry_at(moto.endpoint), secrets, NO_RETRIES)
    topic = f"orders-{uuid4()}"
    assert client.latest(topic, part) is None
    registered(moto, "AVRO", '"int"', topic, registry="default-registry")
    newest = newer_version(moto, topic, '"long"')
    latest = client.latest(topic, part)
    if part == "key":
        assert latest is None, "keys have no usual name"
        return
    assert latest is not None
    assert (latest.ids, latest.schema) == ((version(newest),), WriterSchema("AVRO", '"long"'))
    assert latest.name == f"schema {topic} in default-registry, version 2, id {newest}"


@pytest.mark.parametrize("trusted", [True, False])
def test_an_endpoint_with_a_private_authority_needs_its_certificate(tmp_path: Path, trusted: bool) -> None:
    authority, other = trustme.CA(), trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(tls)
    ca = (authority if trusted else other).cert_pem.bytes()
    files = write_secrets(tmp_path, {"aws": KEYS, "ca": {"ca.crt": ca}})
    found = Answer(200, json.dumps({"DataFormat": "AVRO", "SchemaDefinition": '"int"'}).encode())
    with answering(always(found), tls) as url:
        registry = replace(registry_at(url), ca_from=SecretSource(secret_ref=SecretRef(name="ca")))
        client = GlueClient(registry, files, NO_RETRIES)
        if trusted:
            assert client.schema(version(SOME)) == WriterSchema("AVRO", '"int"')
            return
        with pytest.raises(FinalError, match=r"schemaRegistry\.caFrom") as raised:
            client.schema(version(SOME))
    assert raised.value.reason == "RegistryTls"


@pytest.mark.parametrize("code", ["AccessDeniedException", "UnrecognizedClientException", "ExpiredTokenException"])
def test_a_denial_is_an_error_that_says_what_to_check(secrets: Secrets, code: str) -> None:
    with answering(always(error(code))) as url, pytest.raises(FinalError, match="glue:GetSchemaVersion") as raised:
        GlueClient(registry_at(url), secrets, QUICK).schema(version(SOME))
    assert raised.value.reason == "RegistryDenied"
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "answer",
    [error("ThrottlingException"), error("InternalServiceException", 500), Answer(503, b""), Answer(429, b"{}")],
)
def test_throttling_and_failures_are_retried_and_then_wait(secrets: Secrets, answer: Answer) -> None:
    asked = []

    def respond(path: str, headers: Mapping[str, str]) -> Answer:
        asked.append(headers["x-amz-target"])
        return answer

    with answering(respond) as url, pytest.raises(TransientError) as raised:
        GlueClient(registry_at(url), secrets, QUICK).schema(version(SOME))
    assert raised.value.reason == "RegistryUnavailable"
    assert asked == ["AWSGlue.GetSchemaVersion"] * 3


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (error("InvalidInputException"), "RegistryRefused"),
        (error("EntityNotFoundException"), ""),
        (Answer(200, b"<html>"), "RegistryInvalid"),
        (Answer(200, b"[1]"), "RegistryNotJson"),
        (Answer(200, b"\xff"), "RegistryNotJson"),
        (Answer(400, b"[1]"), "RegistryNotJson"),
        (Answer(403, b"<html>"), "RegistryDenied"),
        (Answer(404, b"<html>"), "RegistryRefused"),
        (Answer(302, b"", {"Location": "http://127.0.0.1:1/"}), "RegistryRefused"),
        (Answer(200, b"{}"), "RegistryInvalid"),
        (Answer(200, b'{"SchemaDefinition": "{}"}'), "RegistryInvalid"),
    ],
)
def test_other_answers_are_errors_unless_the_version_is_unknown(secrets: Secrets, answer: Answer, reason: str) -> None:
    with answering(always(answer)) as url:
        client = GlueClient(registry_at(url), secrets, QUICK)
        if not reason:
            assert client.schema(version(SOME)) is None
            return
        with pytest.raises(S3SinkError) as raised:
            client.schema(version(SOME))
    assert raised.value.reason == reason


def test_a_refused_connection_waits(secrets: Secrets) -> None:
    (port,) = free_ports(1)
    with pytest.raises(TransientError) as raised:
        GlueClient(registry_at(f"http://127.0.0.1:{port}"), secrets, NO_RETRIES).schema(version(SOME))
    assert raised.value.reason == "RegistryUnavailable"


def test_without_credentials_or_a_region_the_cause_is_named(
    tmp_path: Path, moto: Moto, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "AWS_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    chain = SchemaRegistry(type="Glue", region=REGION, endpoint=moto.endpoint)
    with pytest.raises(FinalError, match="no AWS credentials found") as raised:
        GlueClient(chain, Secrets("nowhere"), NO_RETRIES).schema(version(SOME))
    assert raised.value.reason == "RegistryDenied"
    with pytest.raises(FinalError, match=r"set schemaRegistry\.region"):
        GlueClient(SchemaRegistry(type="Glue"), Secrets("nowhere"), NO_RETRIES)


def test_the_default_chain_is_used_without_a_secret(moto: Moto, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value.decode())
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    found = registered(moto, "AVRO", '"long"')
    client = GlueClient(SchemaRegistry(type="Glue", endpoint=moto.endpoint), Secrets("nowhere"), NO_RETRIES)
    assert client.schema(version(found)) == WriterSchema("AVRO", '"long"')


def test_tasks_carry_no_credentials(moto: Moto, secrets: Secrets) -> None:
    access = SchemaAccess(secrets, NO_RETRIES)
    lookup = access.lookup(SchemaSource(registry=registry_at(moto.endpoint)), "AVRO")
    assert lookup is not None
    assert lookup.find(version(registered(moto, "AVRO", '"int"'))) == WriterSchema("AVRO", '"int"')
    sent = pickle.dumps((SchemaSource(registry=registry_at(moto.endpoint)), secrets, access.found))
    assert b'"int"' in sent
    for secret in KEYS.values():
        assert secret not in sent
