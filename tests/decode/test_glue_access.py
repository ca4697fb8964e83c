"""How AWS Glue is reached: roles that are assumed, and proxies. No trouble with either is ever a bad record."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from s3sink_api.spec import AssumeRole, Proxy, SchemaRegistry, SecretRef, SecretSource
from s3sink_job.base.errors import FinalError, TransientError
from s3sink_job.base.retry import NO_RETRIES
from s3sink_job.base.secrets import Secrets, write_secrets
from s3sink_job.decode.glue_client import GlueClient
from s3sink_job.decode.schema_access import SchemaAccess
from s3sink_job.decode.settings import SchemaSource
from s3sink_job.decode.writer_schemas import WriterSchema
from tests.decode.glue_registry import (
    KEYS,
    ROLE,
    SOME,
    always,
    credentials,
    error,
    refusal_of_sts,
    registered,
    registry_at,
    sessions,
    version,
)
from tests.decode.registry_answers import Answer, answering
from tools.parts.forward_proxy import ForwardProxy
from tools.parts.proxy import Call, FaultProxy, Status, request_is
from tools.parts.s3 import Moto

PASSWORD = "p@ss/w:rd%"


@pytest.fixture
def sts(moto: Moto) -> Iterator[FaultProxy]:
    with FaultProxy("127.0.0.1", moto.port) as between:
        yield between


def with_role(glue: str, sts: str, **more: str) -> SchemaRegistry:
    return replace(registry_at(glue), assume_role=AssumeRole(arn=ROLE, endpoint=sts, **more))


def through(url: str, glue: str) -> SchemaRegistry:
    login = SecretSource(secret_ref=SecretRef(name="proxy"))
    return replace(registry_at(glue), proxy=Proxy(url=url, credentials_from=login))


def with_password(folder: Path, password: str) -> Secrets:
    return write_secrets(folder, {"aws": KEYS, "proxy": {"username": b"sink", "password": password.encode()}})


def test_a_role_is_assumed_once_and_its_credentials_are_renewed_before_they_expire(
    moto: Moto, sts: FaultProxy, secrets: Secrets
) -> None:
    number = version(registered(moto, "AVRO", '"int"'))
    sent: list[tuple[str, str]] = []
    with FaultProxy("127.0.0.1", moto.port) as glue:
        glue.on(lambda request: sent.append(credentials(request)) is not None, Call())
        registry = with_role(glue.endpoint, sts.endpoint, external_id="ours:42", session_name="renewed")
        # As two tasks of one process.
        for _ in range(2):
            client = GlueClient(registry, secrets, NO_RETRIES)
            assert client.schema(number) == WriterSchema("AVRO", '"int"')
        (first,) = sessions(moto, "renewed")
        assert (first["role_arn"], first["external_id"]) == (ROLE, "ours:42")
        assert sent == [(first["access_key_id"], first["session_token"])] * 2

        signer = client._client._request_signer
        signer._credentials._time_fetcher = lambda: datetime.now(UTC) + timedelta(minutes=50)
        client.schema(number)
    _, second = sessions(moto, "renewed")
    assert sent[2:] == [(second["access_key_id"], second["session_token"])]
    assert len(sts.requests) == 2


@pytest.mark.parametrize("code", ["AccessDenied", "InvalidClientTokenId", "EntityNotFoundException"])
def test_a_role_that_may_not_be_assumed_is_no_bad_record(moto: Moto, secrets: Secrets, code: str) -> None:
    """Whatever the code: Glue's own for an unknown version as well."""
    with answering(always(refusal_of_sts(code))) as sts, pytest.raises(FinalError) as refused:
        GlueClient(with_role(moto.endpoint, sts), secrets, NO_RETRIES).schema(version(SOME))
    assert refused.value.reason == "RegistryDenied"
    text = str(refused.value)
    assert f"with role {ROLE}: GetSchemaVersion of Glue schema version {SOME}: AssumeRole: 403 {code}: User:" in text
    assert "check schemaRegistry.assumeRole, and who the role's trust policy lets in" in text
    assert "secret" not in text


def test_sts_that_does_not_answer_waits(moto: Moto, sts: FaultProxy, secrets: Secrets) -> None:
    client = GlueClient(with_role(moto.endpoint, sts.endpoint), secrets, NO_RETRIES)
    sts.on(request_is("POST"), Status(503, "ServiceUnavailable"), times=1)
    with pytest.raises(TransientError) as later:
        client.schema(version(SOME))
    assert later.value.reason == "RegistryUnavailable"
    assert client.schema(version(SOME)) is None, "the role is assumed as soon as STS answers"


def test_an_answer_of_sts_that_cannot_be_read_waits(moto: Moto, secrets: Secrets) -> None:
    with answering(always(Answer(404, b"<html>not here<br>"))) as sts, pytest.raises(TransientError) as failed:
        GlueClient(with_role(moto.endpoint, sts), secrets, NO_RETRIES).schema(version(SOME))
    assert failed.value.reason == "RegistryUnavailable"
    assert "check schemaRegistry.assumeRole.endpoint" in str(failed.value)


def test_a_role_without_the_permission_is_named(moto: Moto, secrets: Secrets) -> None:
    with answering(always(error("AccessDeniedException"))) as glue:
        client = GlueClient(with_role(glue, moto.endpoint), secrets, NO_RETRIES)
        with pytest.raises(FinalError, match=rf"{ROLE}.*check schemaRegistry\.assumeRole.*glue:GetSchemaVersion") as no:
            client.schema(version(SOME))
    assert no.value.reason == "RegistryDenied"


def test_a_role_that_sts_cannot_know_is_refused(secrets: Secrets) -> None:
    short = replace(registry_at("http://127.0.0.1:9"), assume_role=AssumeRole(arn="arn:a:iam:::role/x"))
    with pytest.raises(FinalError, match="RoleArn") as refused:
        GlueClient(short, secrets, NO_RETRIES).schema(version(SOME))
    assert refused.value.reason == "RegistryRefused"


def test_roles_of_one_address_do_not_share_schemas(secrets: Secrets) -> None:
    """A version that one account lacks may be in another."""
    access, one = SchemaAccess(secrets, NO_RETRIES), with_role("http://glue", "http://sts")
    other = replace(one, assume_role=AssumeRole(arn=f"{ROLE}2", endpoint="http://sts"))
    found = {id(access.lookup(SchemaSource(registry=registry), "AVRO")) for registry in (one, other, one)}
    assert len(found) == 2


def test_every_request_goes_through_the_proxy_with_the_password_of_the_secret(moto: Moto, tmp_path: Path) -> None:
    number = version(registered(moto, "AVRO", '"int"'))
    files = with_password(tmp_path, PASSWORD)
    with ForwardProxy("sink", PASSWORD) as proxy:
        registry = replace(with_role(moto.endpoint, moto.endpoint), proxy=through(proxy.url, moto.endpoint).proxy)
        client = GlueClient(registry, files, NO_RETRIES)
        assert client.schema(number) == WriterSchema("AVRO", '"int"')
        assert PASSWORD not in client.url
    assert proxy.requests == [("POST", f"{moto.endpoint}/")] * 2, "STS and Glue"


@pytest.mark.parametrize(("scheme", "role"), [("http", False), ("https", False), ("https", True)])
def test_a_proxy_that_refuses_the_password_is_named_and_the_password_is_not(
    moto: Moto, tmp_path: Path, scheme: str, role: bool
) -> None:
    address = f"{scheme}://127.0.0.1:{moto.port}"
    with ForwardProxy("sink", PASSWORD) as proxy:
        registry = through(proxy.url, address)
        if role:
            registry = replace(registry, assume_role=AssumeRole(arn=ROLE, endpoint=address))
        client = GlueClient(registry, with_password(tmp_path, "wrong-one"), NO_RETRIES)
        with pytest.raises(FinalError, match=r"check schemaRegistry\.proxy\.credentialsFrom") as refused:
            client.schema(version(SOME))
    assert refused.value.reason == "ProxyLoginRefused"
    assert "wrong-one" not in str(refused.value)


def test_a_proxy_that_does_not_answer_waits_and_its_password_is_not_shown(tmp_path: Path) -> None:
    registry = through("http://127.0.0.1:9", "http://glue.invalid")
    with pytest.raises(TransientError, match=r"127\.0\.0\.1:9") as failed:
        GlueClient(registry, with_password(tmp_path, "hidden-one"), NO_RETRIES).schema(version(SOME))
    assert failed.value.reason == "RegistryUnavailable"
    assert "hidden-one" not in str(failed.value)


def test_tasks_carry_no_password_of_the_proxy_and_no_credentials_of_the_role(moto: Moto, tmp_path: Path) -> None:
    number = version(registered(moto, "AVRO", '"int"'))
    files = with_password(tmp_path, PASSWORD)
    with ForwardProxy("sink", PASSWORD) as proxy:
        registry = replace(
            through(proxy.url, moto.endpoint),
            assume_role=AssumeRole(arn=ROLE, session_name="pickled", endpoint=moto.endpoint),
        )
        access, source = SchemaAccess(files, NO_RETRIES), SchemaSource(registry=registry)
        lookup = access.lookup(source, "AVRO")
        assert lookup is not None
        assert lookup.find(number) == WriterSchema("AVRO", '"int"')
    sent = pickle.dumps((source, files, access.found))
    assert b'"int"' in sent
    (session,) = sessions(moto, "pickled")
    temporary = [session[name].encode() for name in ("access_key_id", "secret_access_key", "session_token")]
    for secret in (*KEYS.values(), PASSWORD.encode(), *temporary):
        assert secret not in sent


def test_an_answer_of_glue_behind_a_role_is_judged_as_without_one(moto: Moto, secrets: Secrets) -> None:
    with answering(always(Answer(200, b"{}"))) as glue, pytest.raises(FinalError) as raised:
        GlueClient(with_role(glue, moto.endpoint), secrets, NO_RETRIES).schema(version(SOME))
    assert raised.value.reason == "RegistryInvalid"
    client = GlueClient(with_role(moto.endpoint, moto.endpoint), secrets, NO_RETRIES)
    assert client.schema(version(SOME)) is None
