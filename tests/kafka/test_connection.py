"""Properties of Kafka's clients contain the paths of secrets, never their content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from s3sink_api.spec import Source, parse
from s3sink_job.base.errors import FinalError
from s3sink_job.base.secrets import Secrets, write_secrets
from s3sink_job.kafka.properties import connection, consumer_group, jvm_options

JAAS = b'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="hunter2";'
TOKENS = "https://login.example.com/token"


def source(**given: Any) -> Source:
    document = {
        "apiVersion": "s3sink.dev/v1alpha1",
        "kind": "S3Sink",
        "metadata": {"name": "sink"},
        "spec": {
            "source": {"bootstrapServers": "kafka:9092", "topics": ["t"], **given},
            "destination": {"bucket": "lake"},
            "format": {"type": "Json"},
        },
    }
    return parse(document).spec.source


FROM_AUTH = source(propertiesFrom=[{"secretRef": {"name": "auth"}}])


def mounted(folder: Path, **content: bytes) -> Secrets:
    return write_secrets(folder, {"auth": {key.replace("__", "."): value for key, value in content.items()}})


def test_properties_refer_to_a_secret_and_do_not_contain_it(tmp_path: Path) -> None:
    made = connection(FROM_AUTH, mounted(tmp_path, sasl__jaas__config=JAAS, ssl__key__password=b"swordfish\n"))
    assert "hunter2" not in str(made)
    assert "swordfish" not in str(made)
    assert made["ssl.key.password"] == f"${{mounted:{tmp_path}/auth:ssl.key.password}}"
    assert made["config.providers.mounted.param.allowed.paths"] == str(tmp_path)


def test_without_secrets_nothing_is_read_from_files(tmp_path: Path) -> None:
    assert connection(source(), Secrets(str(tmp_path))) == {"bootstrap.servers": "kafka:9092"}


def test_a_changed_secret_leads_to_new_consumers(tmp_path: Path) -> None:
    one = connection(FROM_AUTH, mounted(tmp_path, sasl__jaas__config=JAAS))
    again = connection(FROM_AUTH, mounted(tmp_path, sasl__jaas__config=JAAS))
    other = connection(FROM_AUTH, mounted(tmp_path, sasl__jaas__config=JAAS.replace(b"hunter2", b"hunter3")))
    assert one == again
    assert consumer_group("s3sink.shop.orders", one).startswith("s3sink.shop.orders.")
    assert consumer_group("s3sink.shop.orders", one) != consumer_group("s3sink.shop.orders", other)
    assert consumer_group("group", connection(source(), Secrets(str(tmp_path)))) == "group"


@pytest.mark.parametrize("key", ["sasl.jaas.config", "listener.name.x.plain.sasl.jaas.config", "SASL.JAAS.CONFIG"])
def test_a_login_module_of_others_is_refused_by_secret_and_key(tmp_path: Path, key: str) -> None:
    evil = b'com.sun.security.auth.module.LdapLoginModule required userProvider="ldap://evil/hunter2";'
    secrets = write_secrets(tmp_path, {"auth": {key: evil}})
    with pytest.raises(FinalError) as caught:
        connection(FROM_AUTH, secrets)
    assert caught.value.reason == "PropertyRefused"
    assert f"Secret 'auth', key '{key}': must begin with one of Kafka's own login modules" in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert "Ldap" not in str(caught.value)


def test_references_inside_a_secret_are_not_resolved(tmp_path: Path) -> None:
    """Kafka resolves references once, not those inside of a file."""
    made = connection(FROM_AUTH, mounted(tmp_path, client__id=b"${mounted:/etc:passwd}"))
    assert made["client.id"] == f"${{mounted:{tmp_path}/auth:client.id}}"


def test_a_folder_name_that_kafka_cannot_read_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "a:b"
    folder.mkdir()
    with pytest.raises(FinalError) as caught:
        connection(FROM_AUTH, mounted(folder, client__id=b"x"))
    assert caught.value.reason == "SecretsFolder"


def test_a_relative_folder_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mounted(tmp_path / "here", client__id=b"x")
    made = connection(FROM_AUTH, Secrets("here"))
    assert made["client.id"] == f"${{mounted:{tmp_path}/here/auth:client.id}}"


def test_java_may_only_call_the_configured_token_url() -> None:
    allowed = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls="
    assert f"{allowed}{TOKENS} " in jvm_options(source(properties={"sasl.oauthbearer.token.endpoint.url": TOKENS}))
    assert f"{allowed} " in jvm_options(source())


def test_tokens_are_fetched_from_the_configured_url(tmp_path: Path) -> None:
    handler = "sasl.login.callback.handler.class"
    named = source(properties={"sasl.oauthbearer.token.endpoint.url": TOKENS})
    assert connection(named, Secrets(str(tmp_path)))[handler].endswith(".OAuthBearerLoginCallbackHandler")
    assert handler not in connection(source(), Secrets(str(tmp_path)))
