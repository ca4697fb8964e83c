"""The Kafka client has the expected version, and parses logins as our parser does."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

from s3sink_job.kafka.jaas import LOGIN_MODULES, LoginRefused, login_of
from s3sink_job.spark.session import versions

PROJECT = Path(__file__).parents[2]


def test_spark_connector_and_client_are_of_one_release(spark: SparkSession) -> None:
    """The configured, the installed and the loaded version."""
    written = {name: coordinate.rpartition(":")[2] for name, coordinate in versions()["spark"].items()}
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    release = written["kafka_connector"]
    assert f"pyspark=={release}" in project["optional-dependencies"]["job"]
    assert re.search(rf"^pyspark=={re.escape(release)} ", (PROJECT / "requirements.lock").read_text(), re.MULTILINE)
    assert version("pyspark") == spark.version == release
    jvm: Any = spark._jvm
    assert str(jvm.org.apache.kafka.common.utils.AppInfoParser.getVersion()) == written["kafka_client"]
    loaded = {
        "kafka_connector": "org.apache.spark.sql.kafka010.KafkaSourceProvider",
        "kafka_token_provider": "org.apache.spark.kafka010.KafkaTokenUtil",
        "kafka_client": "org.apache.kafka.clients.admin.AdminClient",
        "kafka_pool": "org.apache.commons.pool2.impl.GenericKeyedObjectPool",
    }
    assert set(loaded) == set(written)
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for name, kind in loaded.items():
        source = jvm.java.lang.Class.forName(kind, False, loader).getProtectionDomain().getCodeSource()
        assert str(source.getLocation()).endswith(f"-{written[name]}.jar"), name


def test_the_kafka_client_has_no_known_vulnerabilities() -> None:
    """CVE-2025-27817 and CVE-2025-27818 are fixed in 3.9.1."""
    client = versions()["spark"]["kafka_client"].rpartition(":")[2]
    assert tuple(map(int, client.split("."))) >= (3, 9, 1)


pieces = st.sampled_from(
    [
        *LOGIN_MODULES,
        *(
            "com.sun.security.auth.module.UnixLoginModule",
            "required",
            "optional",
            "username",
            "=",
            "==",
            '"',
            "'",
            "\\",
        ),
        *(";", " ", "  ", "\n", "\r", "\t", "/", "//", "/*", "*/", "#", "$", "-", ".", "0", "12", "\\0", "\\12", "\\n"),
        *('"a b"', "'c;d'", '"e\\"f"', "x", "ä", "\u00a0", "\u2028", "\x00", "\x7f", "name=value", 'password="p"'),
    ]
)
entries = st.builds(
    lambda module, rest: f"{module} required {rest}", st.sampled_from(LOGIN_MODULES), st.lists(pieces).map("".join)
)


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.builds(lambda text, end: f"{text}{end}", entries, st.sampled_from(["", ";", " ;\n"])))
def test_kafka_reads_a_login_as_our_parser_does(spark: SparkSession, text: str) -> None:
    try:
        mine = login_of(text)
    except LoginRefused:
        return
    jvm: Any = spark._jvm
    config = jvm.java.util.HashMap()
    config.put("sasl.jaas.config", jvm.org.apache.kafka.common.config.types.Password(text))
    found = jvm.org.apache.kafka.common.security.JaasContext.loadClientContext(config).configurationEntries()
    assert found.size() == 1
    assert str(found.get(0).getLoginModuleName()) == mine.module
    assert set(found.get(0).getOptions().keySet()) == set(mine.options)


def test_what_our_parser_refuses_as_two_entries_kafka_refuses_too(spark: SparkSession) -> None:
    """Shows that the test above uses Kafka's own parser."""
    jvm: Any = spark._jvm
    config = jvm.java.util.HashMap()
    twice = f"{LOGIN_MODULES[0]} required; {LOGIN_MODULES[0]} required;"
    config.put("sasl.jaas.config", jvm.org.apache.kafka.common.config.types.Password(twice))
    with pytest.raises(IllegalArgumentException, match="contains 2 login modules"):
        jvm.org.apache.kafka.common.security.JaasContext.loadClientContext(config)
