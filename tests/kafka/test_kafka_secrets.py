"""Kafka's secrets: read by its clients where they run, never sent, and read again when they change."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from pyspark.sql import SparkSession

from s3sink_job.base.secrets import Secrets
from s3sink_job.flush.manifest import Slice
from s3sink_job.kafka.properties import connection
from s3sink_job.kafka.slice_reader import read_slices
from tests.harness import World
from tools.parts.jars import java
from tools.parts.kafka import KafkaBroker

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
FROM_AUTH = {"propertiesFrom": [{"secretRef": {"name": "auth"}}]}


def auth(kafka: KafkaBroker, *, username: str = "", password: str = "", **more: str) -> dict[str, bytes]:
    secure = kafka.secure
    login = f'{SCRAM} required username="{username or secure.username}" password="{password or secure.password}";'
    properties = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": login,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": secure.ca_pem,
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    return {name: value.encode() for name, value in properties.items() if value}


def serialized(spark: SparkSession, thing: Any) -> bytes:
    """As Spark's scheduler does it before it sends a task to an executor."""
    jvm: Any = spark._jvm
    serializer = jvm.org.apache.spark.SparkEnv.get().closureSerializer().newInstance()
    return bytes(serializer.serialize(thing, jvm.scala.reflect.ClassTag.Any()).array())


def test_no_secret_is_in_what_spark_sends_to_a_task(world: World, kafka: KafkaBroker, spark: SparkSession) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1, 2, 3])
    secrets = world.secrets(auth=auth(kafka))
    source = {"bootstrapServers": kafka.secure.bootstrap, **FROM_AUTH}
    driver = world.driver(secrets=secrets, source=source)
    made = connection(driver.spec.source, secrets)
    frame = read_slices(
        *(spark, [Slice(world.topic, 1, 0, 0, 3, "records")], made),
        columns=("value",),
        group="g",
        isolation="ReadCommitted",
    )
    rdd = frame._jdf.queryExecution().toRdd()
    tasks = serialized(spark, rdd) + b"".join(serialized(spark, part) for part in rdd.partitions())
    assert kafka.secure.password.encode() not in tasks
    assert b"BEGIN CERTIFICATE" not in tasks
    assert f"{secrets.folder}/auth:sasl.jaas.config".encode() in tasks, "the options of the reader are in it"
    assert kafka.secure.password not in str(frame._jdf.queryExecution().toString())
    assert [row.value for row in frame.collect()] == [b"1", b"2", b"3"]


def test_a_changed_password_is_taken_by_consumers_too(world: World, kafka: KafkaBroker) -> None:
    world.kafka.create_topic(world.topic)
    user = f"rotating-{world.topic}"
    set_password(kafka, user, "first-secret")
    secrets = world.secrets(auth=auth(kafka, username=user, password="first-secret"))
    source = {"bootstrapServers": kafka.secure.bootstrap, **FROM_AUTH}
    driver = world.driver(secrets=secrets, source=source, run="Continuous", flush={"records": 1})
    world.produce([1])
    driver.step()
    assert world.rows() == [1]
    set_password(kafka, user, "second-secret")
    world.secrets(auth=auth(kafka, username=user, password="second-secret"))
    world.produce([2])
    for _ in range(3):
        driver.step()
    assert world.rows() == [1, 2]
    assert not driver.problems


def set_password(kafka: KafkaBroker, user: str, password: str) -> None:
    scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    wanted = UserScramCredentialUpsertion(user, scram, password.encode())
    for future in kafka.admin.alter_user_scram_credentials([wanted]).values():
        future.result(timeout=30)


def test_a_line_break_at_the_end_of_a_password_is_ignored(world: World, kafka: KafkaBroker) -> None:
    """`kubectl create secret --from-file` keeps it, and Kafka's client reads the file itself."""
    world.kafka.create_topic(world.topic)
    world.produce([1])
    store = world.folder / "trust.p12"
    keytool = [str(Path(java()).parent / "keytool"), "-importcert", "-noprompt", "-alias", "ca"]
    keytool += ["-file", str(kafka.secure.ca_file), "-keystore", str(store), "-storetype", "PKCS12"]
    subprocess.run([*keytool, "-storepass", "changeit"], check=True, capture_output=True)
    content = auth(kafka, ssl_truststore_type="PKCS12", ssl_truststore_certificates="")
    content |= {"ssl.truststore.location": str(store).encode(), "ssl.truststore.password": b"changeit\n"}
    content["sasl.jaas.config"] += b"\n"
    source = {"bootstrapServers": kafka.secure.bootstrap, **FROM_AUTH}
    world.drain(world.driver(secrets=world.secrets(auth=content), source=source))
    assert world.rows() == [1]


def settings(spark: SparkSession, more: dict[str, str]) -> str:
    """The error of Kafka's client for settings that our code did not check."""
    jvm: Any = spark._jvm
    config = jvm.java.util.HashMap()
    for name, value in {"bootstrap.servers": "127.0.0.1:1", **more}.items():
        config.put(name, value)
    with pytest.raises(Exception, match="not allowed") as caught:
        jvm.org.apache.kafka.clients.admin.AdminClient.create(config)
    return str(caught.value)


@pytest.mark.parametrize("module", ["Ldap", "Jndi", "Krb5"])
def test_java_itself_refuses_modules_that_load_code(spark: SparkSession, module: str) -> None:
    login = f"com.sun.security.auth.module.{module}LoginModule required;"
    more = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": login}
    assert f"{module}LoginModule is not allowed" in settings(spark, more)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://169.254.169.254/latest/meta-data"])
def test_java_itself_refuses_urls_that_the_sink_does_not_configure(spark: SparkSession, url: str) -> None:
    package = "org.apache.kafka.common.security.oauthbearer"
    more = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f'{package}.OAuthBearerLoginModule required clientId="a" clientSecret="b";',
        "sasl.login.callback.handler.class": f"{package}.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": url,
    }
    assert f"{url} is not allowed" in settings(spark, more)


def test_java_itself_refuses_other_readers_of_files(spark: SparkSession) -> None:
    provider = "org.apache.kafka.common.config.provider.FileConfigProvider"
    more = {"config.providers": "file", "config.providers.file.class": provider, "client.id": "${file:/etc/passwd:x}"}
    assert f"{provider} is not allowed" in settings(spark, more)


def test_a_reference_cannot_read_files_outside_of_the_secrets(world: World, spark: SparkSession) -> None:
    """A spec cannot contain one. Even then the provider opens only its own folder."""
    outside = world.folder / "outside"
    outside.mkdir()
    (outside / "token").write_text(base64.b64encode(b"token").decode())
    secrets = world.secrets(auth={"client.id": b"mine"})
    made = connection(world.driver(source=FROM_AUTH).spec.source, Secrets(secrets.folder))
    config = spark._jvm.java.util.HashMap()
    inside = made["client.id"]
    for value, wanted in [(inside, "mine"), (f"${{mounted:{outside}:token}}", f"${{mounted:{outside}:token}}")]:
        config.clear()
        for name, setting in {**made, "client.id": value}.items():
            config.put(name, setting)
        resolved = spark._jvm.org.apache.kafka.clients.admin.AdminClientConfig(config)
        assert str(resolved.getString("client.id")) == wanted
