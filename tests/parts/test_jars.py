"""The jars: what Spark lacks and nothing that it has already."""

from __future__ import annotations

from e2e.parts.jars import broker_jars, connector_jars


def test_the_connector_brings_only_what_spark_lacks() -> None:
    names = {jar.name.rpartition("-")[0] for jar in connector_jars()}
    assert names == {
        "commons-pool2",
        "kafka-clients",
        "spark-sql-kafka-0-10_2.13",
        "spark-token-provider-kafka-0-10_2.13",
    }


def test_the_broker_has_its_runtime_and_no_tests_or_sources() -> None:
    names = [jar.name for jar in broker_jars()]
    assert any(name.startswith("kafka_2.13-") for name in names)
    assert any(name.startswith("log4j-slf4j-impl-") for name in names)
    assert not [name for name in names if "test" in name or "sources" in name or "javadoc" in name]
