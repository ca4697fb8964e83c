"""What cannot be converted is refused with its place and what to do, and never with the text there."""

from __future__ import annotations

import json

import pytest

from s3sink_job.convert.bad_input import BadInput
from s3sink_job.convert.conversion import convert

LENSES = "connector.class=io.lenses.streamreactor.connect.aws.s3.sink.S3SinkConnector\ntopics=t\n"
CONFLUENT = {"connector.class": "io.confluent.connect.s3.S3SinkConnector", "topics": "t", "s3.bucket.name": "bucket"}


def refusal(content: str | bytes) -> str:
    with pytest.raises(BadInput) as caught:
        convert(content.encode() if isinstance(content, str) else content, "input")
    return str(caught.value)


@pytest.mark.parametrize(
    ("kcql", "said"),
    [
        ("INSERT INTO b:p SELECT * FRO", "connect.s3.kcql:1:29: KCQL ends too early; expected FROM or ,"),
        (
            "INSERT INTO b SELECT * FROM t PROPERTIES('a'=1",
            "connect.s3.kcql:1:47: KCQL ends too early; expected ) or ,",
        ),
        ("INSERT INTO b SELECT * FROM t PARTITION BY x", "connect.s3.kcql:1:31: KCQL has a name here that belongs to"),
        ("INSERT INTO b SELECT * FROM t STORE AS JSON", "connect.s3.kcql:1:37: KCQL cannot be understood here"),
        ("UPSERT INTO b SELECT * FROM t", "connect.s3.kcql:1:1: KCQL cannot be understood here; expected INSERT"),
        ("INSERT INTO b SELECT * FROM t STOREAS JSON STOREAS CSV", ":1:44: KCQL has this clause twice"),
        ("INSERT INTO b SELECT * FROM t PROPERTIES('a'=1,'a'=2)", ":1:48: KCQL sets a twice"),
        ("INSERT INTO b SELECT * FROM t NOPARTITION PARTITIONBY x", "KCQL has both PARTITIONBY and NOPARTITION"),
    ],
)
def test_half_a_kcql_is_refused_with_line_and_column(kcql: str, said: str) -> None:
    assert said in refusal(f"{LENSES}connect.s3.kcql={kcql}\n")


def test_the_line_of_a_kcql_in_several_lines_is_its_own() -> None:
    text = json.dumps(
        {
            "connector.class": "io.lenses.streamreactor.connect.aws.s3.sink.S3SinkConnector",
            "connect.s3.kcql": "INSERT INTO b:p\nSELECT * FROM t\nSTOREAS `JSON` (",
        }
    )
    assert "connect.s3.kcql:3:17: KCQL ends too early" in refusal(text)


def test_two_systems_in_one_configuration_are_refused() -> None:
    mixed = {**CONFLUENT, "connect.s3.kcql": "INSERT INTO b SELECT * FROM t"}
    assert refusal(json.dumps(mixed)) == (
        "input: has keys of several systems: confluent, lenses (connect.s3.kcql); convert them one by one"
    )
    without_class = {"aws.s3.bucket.name": "a", "s3.bucket.name": "b"}
    assert "has keys of several systems: confluent, aiven" in refusal(json.dumps(without_class))


def test_documents_of_two_systems_in_one_file_are_refused() -> None:
    first = "s3_bucket_name: lake\ns3_bucket_path: raw\n"
    second = "connector.class: io.confluent.connect.s3.S3SinkConnector\ns3.bucket.name: lake\ntopics: t\n"
    assert "has documents of several systems: airbyte, confluent" in refusal(f"{first}---\n{second}")


@pytest.mark.parametrize(
    "kind",
    [
        "io.lenses.streamreactor.connect.aws.s3.source.S3SourceConnector",
        "io.confluent.connect.s3.source.S3SourceConnector",
        "io.debezium.connector.postgresql.PostgresSourceConnector",
    ],
)
def test_a_source_connector_is_refused(kind: str) -> None:
    assert "is a source connector, which writes to Kafka" in refusal(f"connector.class={kind}\ntopics=t\n")


def test_a_source_is_refused_by_its_type_and_by_its_keys() -> None:
    assert "is a source connector" in refusal(json.dumps({"name": "x", "type": "source", "config": CONFLUENT}))
    assert "is a source connector" in refusal("connect.s3.source.extension.excludes=txt\nconnect.s3.kcql=x\n")


def test_an_unknown_connector_class_is_refused_with_the_known_ones() -> None:
    said = refusal("connector.class=org.apache.camel.kafkaconnector.aws2s3.CamelAws2s3SinkConnector\ntopics=t\n")
    assert "is no S3 sink that s3sink convert knows; it knows io.lenses." in said
    assert "io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: !!python/object:os.system x\n", "input:1:4: has a YAML tag, and tags are not read"),
        ("a: 1\nb: !custom [1]\n", "input:2:4: has a YAML tag"),
        ("a: &x 1\nb: 2\n", "input:1:4: has an anchor or an alias"),
        ("a: 1\nb: 2\na: 3\n", "input:3:1: has a key twice"),
        ("a: [1,\n", "input:2:1: is neither JSON, YAML nor Java properties"),
        ('{"a": 1,}', "input:1:9: is not JSON"),
        ('{"a": 1, "a": 2}', "the key a is there twice"),
        ("a=1\nb=2\na=3\n", "input:3: the key a was set before, in line 1"),
        ("a=\\u12\n", r"input:1: has \u without four hexadecimal digits"),
        ("", "input: is empty"),
        ("# nothing\n", "input: is empty"),
        ('["one", "two"]', "input: is a list; of a Connect worker take the answer to GET /connectors?expand=info"),
        ("just text", "input: is no configuration"),
        ("a: 1\n", "input: is no configuration that s3sink convert knows"),
        ("kind: KafkaTopic\napiVersion: kafka.strimzi.io/v1beta2\n", "has no configuration of an S3 sink; there is"),
        ("kind: KafkaConnector\napiVersion: kafka.strimzi.io/v1beta2\nspec: {}\n", "KafkaConnector has no spec.config"),
    ],
)
def test_what_is_no_configuration_is_refused_with_its_place(text: str, said: str) -> None:
    assert said in refusal(text)


def test_ten_megabytes_are_refused() -> None:
    assert refusal(b"a=" + b"x" * 10_000_000) == "input: has more than 1,048,576 bytes, and a configuration has fewer"


def test_what_is_no_text_is_refused() -> None:
    assert refusal(b"a=1\nb=\xff\n") == "input:2: is not text in UTF-8"


def test_deep_nesting_is_refused() -> None:
    assert "nested" in refusal('{"a":' * 60 + "1" + "}" * 60)
    assert "nested" in refusal("[" * 100_000)


def test_two_connectors_that_would_be_one_sink_are_refused() -> None:
    worker = {name: {"info": {"name": name, "config": {**CONFLUENT, "name": name}}} for name in ("Orders", "orders")}
    assert "two configurations would become the sink 'orders'" in refusal(json.dumps(worker))


def test_a_worker_without_an_s3_sink_is_refused_with_what_it_has() -> None:
    worker = {"db": {"info": {"name": "db", "config": {"connector.class": "x.JdbcSink", "password": "S3CR3T"}}}}
    said = refusal(json.dumps(worker))
    assert "has no configuration of an S3 sink; there is connector db of class x.JdbcSink" in said
    assert "S3CR3T" not in said
