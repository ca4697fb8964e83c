"""Whatever keys a configuration has, each is in the report once, and what comes out is a valid manifest."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from s3sink_api.spec import parse
from s3sink_job.convert import aiven, confluent, connect, lenses
from s3sink_job.convert.conversion import convert
from s3sink_job.convert.output import conversion_json, reports_text
from s3sink_job.convert.properties_syntax import read_properties
from s3sink_job.convert.rules import looks_secret

CLASSES = {
    "lenses": "io.lenses.streamreactor.connect.aws.s3.sink.S3SinkConnector",
    "confluent": "io.confluent.connect.s3.S3SinkConnector",
    "aiven": "io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector",
}
TABLES = {"lenses": lenses.TABLE, "confluent": confluent.TABLE, "aiven": aiven.TABLE}
COMMON = [
    *connect.TABLE,
    *("topics", "topics.regex", "name", "transforms", "transforms.a.type", "transforms.a.field", "predicates.p.type"),
    *("key.converter", "key.converter.schema.registry.url", "value.converter", "value.converter.schemas.enable"),
    *("errors.tolerance", "errors.deadletterqueue.topic.name", "consumer.override.group.id"),
    *("consumer.override.sasl.jaas.config", "consumer.override.ssl.truststore.location", "path.format", "timezone"),
    *("partitioner.class", "partition.field.name", "timestamp.extractor", "format.class", "file.name.template"),
    *("format.output.fields", "format.output.type", "s3.compression.type", "rotate.schedule.interval.ms"),
]
values = st.one_of(
    st.sampled_from(
        [
            *(
                "true",
                "false",
                "-1",
                "0",
                "1",
                "60000",
                "99999999999999999999",
                "none",
                "all",
                "gzip",
                "snappy",
                "NONE",
            ),
            *(
                "io.confluent.connect.avro.AvroConverter",
                "org.apache.kafka.connect.json.JsonConverter",
                "x.Y",
                "${a:b}",
            ),
            *(
                "'year'=YYYY/'month'=MM",
                "xx/ww",
                "TimeBasedPartitioner",
                "http://u:p@host:1/",
                "https://h",
                "a,b",
                "a.b",
            ),
            *("io.confluent.connect.storage.partitioner.TimeBasedPartitioner", "Record", "RecordField", "UTC", "jsonl"),
            *("{{topic}}/{{partition}}/{{start_offset}}", "{{key}}", "parquet", "key,value,offset", "", " ", "*", "["),
        ]
    ),
    st.text(st.characters(codec="utf-8", exclude_characters="\r\n\\"), max_size=20),
)


@pytest.mark.parametrize("system", CLASSES)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_every_key_is_reported_once_and_the_manifest_is_valid(system: str, data: st.DataObject) -> None:
    known = st.sampled_from([*TABLES[system], *COMMON])
    unknown = st.text(st.sampled_from("abs.3_"), min_size=1, max_size=12)
    drawn: dict[str, str] = data.draw(st.dictionaries(st.one_of(known, unknown), values, max_size=12))
    config: dict[str, Any] = {**drawn, "connector.class": CLASSES[system]}
    if system == "lenses":
        config["connect.s3.kcql"] = data.draw(statements)
    (sink,) = convert(_json(config), "input").sinks
    reported = Counter(entry.key for entry in sink.report.entries)
    assert {key: reported[key] for key in config} == dict.fromkeys(config, 1)
    assert max(reported.values()) == 1
    assert not [key for key in reported if key not in config and not key.startswith("connect.s3.kcql[")]
    parse(sink.manifest)


def test_the_locale_of_weeks_is_reported_with_the_pattern_if_it_is_not_set() -> None:
    partitioner = "io.confluent.connect.storage.partitioner.TimeBasedPartitioner"
    config = {"connector.class": CLASSES["confluent"], "topics": "t", "partitioner.class": partitioner}
    (sink,) = convert(_json({**config, "path.format": "xx/ww"}), "input").sinks
    texts = {entry.key: entry.text for entry in sink.report.entries}
    assert texts.keys() == {*config, "path.format"}
    assert "locale: en-GB" in texts["path.format"]


names = st.sampled_from(
    ["a", "`a.b`", "_key", "_key.f", "_header.h", "_topic", "_partition", "_date.`yyyy/MM`", "_date.x"]
)
properties = st.dictionaries(
    st.sampled_from(
        [
            *("flush.count", "flush.size", "flush.interval", "padding.type", "padding.char", "padding.length.offset"),
            *("store.envelope", "store.envelope.fields.key", "partition.include.keys", "key.suffix", "nonsense"),
        ]
    ),
    st.sampled_from(["1", "0", "true", "false", "NoOp", "RightPad", "'x'", "20", "'-eu'"]),
    max_size=5,
)


@st.composite
def _statements(draw: st.DrawFn) -> str:
    parts = []
    for number in range(draw(st.integers(1, 3))):
        text = f"INSERT INTO bucket-{number}:p{number} SELECT * FROM t{draw(st.integers(0, 2))}"
        if draw(st.booleans()):
            text += f" PARTITIONBY {', '.join(draw(st.lists(names, min_size=1, max_size=4)))}"
        if draw(st.booleans()):
            text += f" STOREAS `{draw(st.sampled_from(['JSON', 'AVRO', 'Parquet', 'TEXT', 'CSV', 'BYTES', 'ORC']))}`"
        found = draw(properties)
        if found:
            listed = ", ".join(f"'{name}'={value}" for name, value in found.items())
            text += f" PROPERTIES({listed})"
        parts.append(text)
    return "; ".join(parts)


statements = _statements()


def _json(config: dict[str, Any]) -> bytes:
    return json.dumps(config).encode()


@settings(max_examples=200, deadline=None)
@given(
    where=st.sampled_from([(name, key) for name, table in TABLES.items() for key in table if looks_secret(key)]),
    more=st.sampled_from(["password", "consumer.override.sasl.jaas.config", "value.converter.basic.auth.user.info"]),
)
def test_values_of_secret_keys_are_in_no_output(where: tuple[str, str], more: str) -> None:
    system, key = where
    config: dict[str, Any] = {
        "connector.class": CLASSES[system],
        key: "S3CR3T-1",
        more: "S3CR3T-2",
        "x.unknown": "S3CR3T",
    }
    if system == "lenses":
        config["connect.s3.kcql"] = "INSERT INTO bucket SELECT * FROM t"
    assert "S3CR3T" not in conversion_json(convert(_json(config), "input"))


def test_a_key_whose_section_is_taken_out_is_lost_too() -> None:
    config = {
        "connector.class": CLASSES["confluent"],
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "not a topic",
        "errors.deadletterqueue.topic.replication.factor": "3",
    }
    (sink,) = convert(_json(config), "input").sinks
    assert "deadLetter" not in sink.manifest["spec"].get("errors", {})
    lost = {entry.key for entry in sink.report.of("Lost")}
    assert lost == config.keys() - {"connector.class"}


@pytest.mark.parametrize(
    ("system", "key"),
    [
        ("confluent", "store.url"),
        ("confluent", "s3.proxy.url"),
        ("confluent", "value.converter.schema.registry.url"),
        ("confluent", "consumer.override.bootstrap.servers"),
        ("lenses", "connect.s3.custom.endpoint"),
        ("aiven", "aws.s3.endpoint"),
        ("aiven", "aws.sts.config.endpoint"),
    ],
)
def test_logins_in_urls_are_in_no_output(system: str, key: str) -> None:
    config = {
        "connector.class": CLASSES[system],
        "connect.s3.kcql" if system == "lenses" else "x": "INSERT INTO bucket SELECT * FROM t",
        "value.converter": "io.confluent.connect.avro.AvroConverter",
        key: "https://S3CR3T:S3CR3T@host:443",
    }
    conversion = convert(_json(config), "input")
    assert "S3CR3T" not in conversion_json(conversion) + reports_text(conversion)


def test_a_key_with_codes_of_a_terminal_is_printed_without_them() -> None:
    config = {"connector.class": CLASSES["confluent"], "a\n\x1b[2Jcarried over exactly:": "1"}
    text = reports_text(convert(_json(config), "input"))
    assert "\x1b" not in text
    assert r"  a\x0a\x1b[2Jcarried over exactly:: is no key" in text


@given(st.dictionaries(st.text(st.characters(codec="ascii"), min_size=1), st.text(st.characters(codec="utf-8"))))
def test_properties_are_read_as_java_writes_them(settings_of: dict[str, str]) -> None:
    def escaped(text: str, key: bool) -> str:
        found = (
            text.replace("\\", "\\\\")
            .replace("\n", "\\n")
            .replace("\r", "\\r")
            .replace("\t", "\\t")
            .replace("\f", "\\f")
        )
        found = "".join(f"\\u{ord(c):04x}" if c in "\x0b\x1c\x1d\x1e\x85\u2028\u2029" else c for c in found)
        if key:
            return "".join(f"\\{c}" if c in " =:#!" else c for c in found)
        return f"\\{found}" if found.startswith((" ", "#", "!")) else found

    text = "".join(f"{escaped(key, True)}={escaped(value, False)}\n" for key, value in settings_of.items())
    assert read_properties(text, "input") == {key: value.strip() for key, value in settings_of.items()}


def test_lines_of_properties_continue_and_have_three_separators() -> None:
    text = "# c\n! c\n\na = 1\nb:2\nc 3\nd = x, \\\n    y\\\n  z\ne\\ f=\\u00e4\\=\n"
    assert read_properties(text, "input") == {"a": "1", "b": "2", "c": "3", "d": "x, yz", "e f": "ä="}
