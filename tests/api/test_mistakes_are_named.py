from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import yaml

from s3sink_api.spec import CODECS, FieldError, SpecError, parse
from tests.api.documents import drop, errors_of, everything_built, full, minimal, put

TEN_MISTAKES = """
apiVersion: s3sink.dev/v1
kind: S3Sink
metadata: {name: Orders_}
spec:
  state: running
  source:
    bootstrapServer: kafka:9092
    topics: [orders, orders]
    startingOffsets: {position: Latest, timestamp: 2026-01-01T00:00:00Z}
  destination: {bucket: s3://lake/raw, partSize: 1Mi}
  format: {type: Json, compression: {codec: Snappy}}
  flush: {records: 0, interval: 5}
"""


def test_ten_mistakes_are_reported_at_once():
    assert errors_of(yaml.safe_load(TEN_MISTAKES)) == {
        "apiVersion": 'must be s3sink.dev/v1alpha1, got "s3sink.dev/v1"',
        "metadata.name": "must be lower-case letters, digits and hyphens, a letter or digit at both ends, "
        'got "Orders_"',
        "spec.state": 'must be one of Running, Paused, Stopped, got "running"; did you mean Running?',
        "spec.source.bootstrapServers": "must be set",
        "spec.source.bootstrapServer": "unknown field; did you mean `bootstrapServers`?",
        "spec.source.topics[1]": "names the topic orders a second time",
        "spec.source.startingOffsets.timestamp": "is only for position: Timestamp, and position is Latest",
        "spec.destination.bucket": 'must be the bucket name only, "lake"; the rest is destination.prefix',
        "spec.destination.partSize": 'must be at least 5Mi, got "1Mi"',
        "spec.format.compression.codec": "Json supports None, Gzip, Lz4, Zstd, Brotli, Bzip2, Xz, got Snappy",
        "spec.flush.records": "must be at least 1, got 0",
        "spec.flush.interval": "must be a duration with its unit, such as 15m, got 5",
    }


def test_a_spec_error_is_final_and_travels_between_processes():
    with pytest.raises(SpecError) as caught:
        parse({})
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.retryable, error.errors) == (False, caught.value.errors)
    assert error.errors[0] == FieldError("apiVersion", "must be set to s3sink.dev/v1alpha1")


SPEC = minimal()["spec"]
PLACED = {"destination": {"bucket": "lake", "prefix": "raw/all"}}
TEXT = SPEC["source"] | {"value": {"format": "String"}}
BY_PATTERN = {"bootstrapServers": "kafka:9092", "topicPattern": ".*"}
NEXT_TO_ORDERS = {"bucket": "lake", "prefix": "raw", "statePrefix": "orders"}
FLAT = {"type": "Json", "columns": {"meta": "Airbyte", "flatten": True}}
WRAPPED = {"type": "Json", "envelope": {"enabled": True, "key": False, "headers": False, "metadata": False}}
ALIKE = [{"type": "Key", "as": "a"}, {"type": "Header", "name": "a"}]
REFRESH = {"run": "Once", "mode": "FullRefresh"}
AT_ONCE = "must not be Bytes with mode: FullRefresh, since its objects are visible before the run is complete"
YEARS = {"type": "Time", "source": "Record", "format": "'year='yyyy"}


def letters(prefix: str) -> dict[str, Any]:
    return {"errors": {"deadLetter": {"prefix": prefix}}}


def routed(**parts: Any) -> list[Any]:
    return [{"topics": ["orders"], **parts}]


# path, value, where it is blamed (the path unless given), what is said
REFUSED = [
    ("kind", "S3sink", "", 'must be S3Sink, got "S3sink"'),
    ("extra", 1, "", "unknown field; the fields here are apiVersion, kind, metadata, spec"),
    ("Spec", {}, "", "did you mean `spec`?"),
    ("metadata.name", "a" * 53, "", "must have at most 52 characters, got 53"),
    ("metadata.name", "a.b", "", "must be lower-case letters"),
    ("metadata.namespace", "-a", "", "must be lower-case letters"),
    ("metadata.labels", {"a": 1}, "metadata.labels.a", "must be text; write it in quotes"),
    ("spec", [], "", "must be a mapping, got a list"),
    ("spec.stat", "Running", "", "did you mean `state`?"),
    ("spec.flush_interval", "1h", "", "unknown field"),
    ("spec.flush.record_window", "1h", "", "did you mean `recordWindow`?"),
    ("spec.schedule", "0 * * * *", "", "is only for run: Scheduled, and run is Continuous"),
    ("spec.run", "Scheduled", "spec.schedule", "must be set, since run is Scheduled"),
    ("spec.mode", "FullRefresh", "", "FullRefresh needs run: Once or Scheduled, and run is Continuous"),
    ("spec.allowEmpty", True, "", "is only for mode: FullRefresh, and mode is Append"),
    ("spec", SPEC | REFRESH | {"format": {"type": "Bytes"}}, "spec.format.type", AT_ONCE),
    ("spec", SPEC | REFRESH | {"routes": routed(format={"type": "Bytes"})}, "spec.routes[0].format.type", AT_ONCE),
    ("spec.reset", {}, "spec.reset.nonce", "must be set"),
    ("spec.reset.nonce", " ", "", "must not be empty"),
    ("spec.source", None, "", "must not be null; leave the field out"),
    ("spec.source.bootstrapServers", "kafka", "", "must be host:port"),
    ("spec.source.bootstrapServers", "a:1,,b:2", "", "must be host:port"),
    ("spec.source.bootstrapServers", "a:99999", "", "must be host:port"),
    ("spec.source.topics", "orders", "", 'must be a list, got "orders"; write [orders]'),
    ("spec.source.topics", [], "", "must name at least one topic, unless topicPattern is set"),
    ("spec.source.topics", ["a/b"], "spec.source.topics[0]", "must be a Kafka topic name"),
    ("spec.source.topics", [".."], "spec.source.topics[0]", "must be a Kafka topic name"),
    ("spec.source.topics", ["a" * 250], "spec.source.topics[0]", "must be a Kafka topic name"),
    ("spec.source.topics", ["ok", 5], "spec.source.topics[1]", "must be text, got 5; write it in quotes"),
    ("spec.source.topicPattern", "a.*", "spec.source.topics", "must not be set together with topicPattern"),
    ("spec.source.topicPattern", "(", "", "must be a regular expression"),
    (
        "spec.source.startingOffsets",
        {},
        "spec.source.startingOffsets.position",
        "must be set to one of Earliest, La",
    ),
    ("spec.source.startingOffsets.position", "latest", "", "did you mean Latest?"),
    (
        "spec.source.startingOffsets.position",
        "Timestamp",
        "spec.source.startingOffsets.timestamp",
        "must be set",
    ),
    ("spec.source.startingOffsets.position", "Offsets", "spec.source.startingOffsets.offsets", "must be set"),
    ("spec.source.isolation", "Committed", "", "must be one of ReadCommitted, ReadUncommitted"),
    ("spec.source.onDataLoss", True, "", "must be one of Fail, Skip, got true"),
    ("spec.source.maxBytesPerSecond", "0", "", "must be at least 1"),
    (
        "spec.source.value.format",
        "Avro",
        "spec.source.value.schema",
        "Avro needs schemaRegistry or an inline schema",
    ),
    (
        "spec.source.value.format",
        "Protobuf",
        "spec.source.value.schema",
        "Protobuf needs schemaRegistry or an inline schema",
    ),
    ("spec.source.value.validate", True, "", "is only for JsonSchema, and format is Json"),
    ("spec.source.value.times", "AsWritten", "", "is only for JsonSchema, and format is Json"),
    ("spec.source.value", {"format": "JsonSchema", "schema": "{"}, "spec.source.value.schema", "is not JSON"),
    ("spec.source.value", {"format": "JsonSchema", "schema": "3"}, "spec.source.value.schema", "must be a JSON Schema"),
    ("spec.source.key.schema", "{}", "", "is only for Json, Avro, Protobuf and JsonSchema, and format is String"),
    (
        "spec.source.value.schemaRegistry",
        {"url": "http://r"},
        "",
        "is only for Avro, Protobuf and JsonSchema",
    ),
    (
        "spec.source.value.schemaRegistry",
        {"url": "r"},
        "spec.source.value.schemaRegistry.url",
        "must be an http://",
    ),
    *(
        (
            "spec.source.value",
            {"format": "Avro", "schemaRegistry": registry},
            f"spec.source.value.schemaRegistry.{at}",
            why,
        )
        for registry, at, why in (
            ({}, "url", "must be set with type: Confluent"),
            ({"type": "Confluent"}, "url", "must be set with type: Confluent"),
            ({"type": "AWS"}, "type", "must be one of Confluent, Glue"),
            ({"type": "Glue", "url": "http://r"}, "url", "is only for type: Confluent, and type is Glue"),
            (
                {"type": "Glue", "certFrom": {"secretRef": {"name": "c"}}},
                "certFrom",
                "is only for type: Confluent, and type is Glue",
            ),
            ({"url": "http://r", "region": "eu-west-1"}, "region", "is only for type: Glue, and type is Confluent"),
            ({"url": "http://r", "endpoint": "http://g"}, "endpoint", "is only for type: Glue, and type is Confluent"),
            *(
                ({"url": "http://r", **more}, *more, "is only for type: Glue, and type is Confluent")
                for more in ({"assumeRole": {"arn": "arn:aws:iam::1:role/x"}}, {"proxy": {"url": "http://p"}})
            ),
            (
                {"type": "Glue", "assumeRole": {"arn": "admin"}},
                "assumeRole.arn",
                "must be a role such as arn:aws:iam::",
            ),
            ({"type": "Glue", "proxy": {"url": "http://u:p@x"}}, "proxy.url", "must not contain a user or password"),
            ({"type": "Glue", "region": "EU West"}, "region", "must be a region such as eu-central-1"),
            ({"type": "Glue", "endpoint": "glue"}, "endpoint", "must be an http://"),
        )
    ),
    ("spec.destination.bucket", "la", "", "must be a bucket name of 3 to 63 characters, got 2"),
    ("spec.destination.bucket", "Lake", "", "must be a bucket name of lower-case letters"),
    ("spec.destination.bucket", "a..b", "", "must be a bucket name of lower-case letters"),
    ("spec.destination.bucket", "10.0.0.1", "", "must be a bucket name, not an IP address"),
    ("spec.destination.prefix", "/raw/", "", 'got "/raw/"; write "raw"'),
    ("spec.destination.prefix", "a//b", "", 'write "a/b"'),
    ("spec.destination.prefix", "a/../b", "", 'write "a/b"'),
    ("spec.destination.prefix", "a\nb", "", "must not contain control characters"),
    ("spec.destination.prefix", "é" * 300, "", "must have at most 512 bytes"),
    (
        "spec.destination.prefix",
        ".s3sink",
        "spec.destination.statePrefix",
        'must be outside of prefix ".s3sink"',
    ),
    ("spec.destination.prefix", ".s3sink/x", "", 'must be outside of statePrefix ".s3sink"'),
    ("spec.destination.statePrefix", "", "", "must not be empty; write .s3sink"),
    (
        "spec.destination.statePrefix",
        "orders/state",
        "spec.destination.prefix",
        "the topic orders would share its",
    ),
    ("spec.destination.region", "EU", "", "must be a region such as eu-central-1"),
    ("spec.destination.endpoint", "s3.example.com", "", "must be an http:// or https:// URL"),
    ("spec.destination.endpoint", "ftp://x", "", "must be an http:// or https:// URL"),
    ("spec.destination.endpoint", "http://x:99999", "", "must be an http:// or https:// URL"),
    ("spec.destination.endpoint", "http://x/?a=b", "", "without query or fragment"),
    ("spec.destination.pathStyle", "yes", "", 'must be true or false, got "yes"'),
    (
        "spec.destination.assumeRole",
        {"arn": "admin"},
        "spec.destination.assumeRole.arn",
        "must be a role such as arn:aws:iam::",
    ),
    ("spec.destination.encryption", {"type": "KMS"}, "spec.destination.encryption.keyId", "must be set"),
    (
        "spec.destination.encryption",
        {"type": "aes"},
        "spec.destination.encryption.type",
        "one of AES256, KMS, Custom",
    ),
    (
        "spec.destination.encryption",
        {"type": "AES256", "keyId": "x"},
        "spec.destination.encryption.keyId",
        "is only for type: KMS, and type is AES256",
    ),
    ("spec.destination.storageClass", "standard", "", "must be a storage class such as STANDARD_IA"),
    ("spec.destination.tags", {f"t{n}": "" for n in range(11)}, "", "must have at most 10 items, got 11"),
    ("spec.destination.tags", {"aws:a": ""}, "spec.destination.tags[aws:a]", "not one under aws:"),
    (
        "spec.destination.tags",
        {"a": "x" * 257},
        "spec.destination.tags.a",
        "must have at most 256 characters",
    ),
    ("spec.destination.tags", {"a": "b\nc"}, "spec.destination.tags.a", "must be letters, digits, spaces"),
    ("spec.destination.maxConnections", 0, "", "must be at least 1, got 0"),
    (
        "spec.destination.maxConnections",
        "50",
        "",
        'must be a whole number, got "50"; write it without quotes',
    ),
    ("spec.destination.maxConnections", 5.5, "", "must be a whole number, got 5.5"),
    ("spec.destination.partSize", "6Gi", "", 'must be at most 5Gi, got "6Gi"'),
    ("spec.layout.partitionBy", [{"type": "Topic"}] * 2, "spec.layout.partitionBy[1]", "repeats item 0"),
    ("spec.layout.partitionBy", [{"type": "Field"}], "spec.layout.partitionBy[0].path", "must be set"),
    (
        "spec.layout.partitionBy",
        [{"type": "Field", "path": []}],
        "spec.layout.partitionBy[0].path",
        "at least 1 item",
    ),
    (
        "spec.layout.partitionBy",
        [{"type": "Time", "source": "Record", "format": "yyyy", "as": "x"}],
        "spec.layout.partitionBy[0].as",
        "is only for type: Topic, Partition, Field, Key, Header, and type is Time",
    ),
    (
        "spec.layout.partitionBy",
        [{"type": "Topic", "as": "a=b"}],
        "spec.layout.partitionBy[0].as",
        'must be a folder name without / and =, got "a=b"',
    ),
    (
        "spec.layout.partitionBy",
        [{"type": "Time", "source": "Field", "format": "yyyy"}],
        "spec.layout.partitionBy[0].path",
        "must name the field that holds the time",
    ),
    (
        "spec.layout.partitionBy",
        [{"type": "Time", "source": "Record", "format": "yyyy", "path": ["a"]}],
        "spec.layout.partitionBy[0].path",
        "is only for source: Field, and source is Record",
    ),
    (
        "spec.layout.partitionBy",
        [{"type": "Time", "source": "Record", "format": "'year=yyyy"}],
        "spec.layout.partitionBy[0].format",
        "must close every quote",
    ),
    (
        "spec.layout.partitionBy",
        [{"type": "Time", "source": "Record", "format": "year=yyyy"}],
        "spec.layout.partitionBy[0].format",
        "must not use the letter r outside of quotes; letters of patterns are D E H K L M Q S Y a d e h k m s u w y",
    ),
    (
        "spec.layout.partitionBy",
        [{"type": "Time", "source": "Record", "format": "yyyy[MM]"}],
        "spec.layout.partitionBy[0].format",
        "must have [ in quotes, since Java reserves it: '['",
    ),
    (
        "spec.layout.partitionBy",
        [{"type": "Time", "source": "Record", "format": "yyyy/MMMMMM"}],
        "spec.layout.partitionBy[0].format",
        "must have at most 5 of the letter M in a row, got 6",
    ),
    (
        "spec.layout.partitionBy",
        [{"type": "Time", "source": "Record", "format": "yyyy//MM"}],
        "spec.layout.partitionBy[0].format",
        "must have a folder name on both sides of each /",
    ),
    (
        "spec.layout.partitionBy",
        [{"type": "Time", "source": "Record", "format": "'/'yyyy"}],
        "spec.layout.partitionBy[0].format",
        "must have a folder name on both sides of each /",
    ),
    (
        "spec.layout",
        {"hiveStyle": True, "partitionBy": [{"type": "Header", "name": "a"}, {"type": "Field", "path": ["b", "a"]}]},
        "spec.layout.partitionBy[1]",
        "a= is already the name of another folder; set a different one with as",
    ),
    (
        "spec.layout",
        {"hiveStyle": True, "partitionBy": [{"type": "Topic", "as": "partition"}, {"type": "Partition"}]},
        "spec.layout.partitionBy[1]",
        "partition= is already the name of another folder; set a different one with as",
    ),
    (
        "spec.layout",
        {"hiveStyle": True, "partitionBy": [YEARS, {"type": "Field", "path": ["year"]}]},
        "spec.layout.partitionBy[0].format",
        "year= is already the name of another folder; set a different one with format",
    ),
    (
        "spec",
        SPEC | {"source": TEXT, "layout": {"partitionBy": [{"type": "Field", "path": ["a", "b"]}]}},
        "spec.layout.partitionBy[0].path",
        "needs fields, and source.value.format is String; use Json, ConnectJson, Avro, Protobuf or JsonSchema, got a.b",
    ),
    (
        "spec",
        SPEC | {"source": TEXT, "layout": {"partitionBy": [YEARS | {"source": "Field", "path": ["at"]}]}},
        "spec.layout.partitionBy[0].path",
        "needs fields, and source.value.format is String; use Json, ConnectJson, Avro, Protobuf or JsonSchema, got at",
    ),
    (
        "spec.layout.partitionBy",
        [{"type": "Key", "path": ["id"]}],
        "spec.layout.partitionBy[0].path",
        "needs fields, and source.key.format is String; use Json, ConnectJson, Avro, Protobuf or JsonSchema, got id",
    ),
    (
        "spec",
        SPEC | {"format": {"type": "Bytes"}, "layout": {"objectName": "Upload"}},
        "spec.layout.objectName",
        "must not be Upload, since Bytes names each object by its record",
    ),
    (
        "spec",
        SPEC | {"format": {"type": "Bytes"}, "layout": {"partitionBy": [YEARS | {"source": "Wallclock"}]}},
        "spec.layout.partitionBy[0].source",
        "must not be Wallclock, since Bytes names each object by its record",
    ),
    (
        "spec.layout.topicNames",
        [{"topic": "orders", "as": "x"}, {"topic": "orders", "as": "y"}],
        "spec.layout.topicNames[1]",
        "names the topic orders a second time",
    ),
    (
        "spec.layout.topicNames",
        [{"topic": "orders", "as": "x"}, {"topic": "payments", "as": "x"}],
        "spec.layout.topicNames[1].as",
        "x is already the folder of topic orders; give payments another one",
    ),
    (
        "spec.layout.topicNames",
        [{"topic": "payments", "as": "x"}],
        "spec.layout.topicNames[0].topic",
        "payments is not among spec.source.topics",
    ),
    (
        "spec.layout.topicNames",
        [{"topic": "orders", "as": ".s3sink"}],
        "spec.layout.topicNames[0].as",
        ".s3sink is the folder of the state; use another one, or set destination.prefix",
    ),
    ("spec.layout.topicNames", [{"topic": "orders", "as": "a/b"}], "spec.layout.topicNames[0].as", "Kafka topic name"),
    (
        "spec.layout.topicReplacement",
        {"pattern": "-", "replacement": "a/b"},
        "spec.layout.topicReplacement.replacement",
        "and $1 to $9 for groups of the pattern",
    ),
    (
        "spec.destination",
        {"bucket": "lake", "endpoint": "http://s3", "encryption": {"type": "CustomerKey", "secretRef": {"name": "k"}}},
        "spec.destination.encryption.type",
        "must not be CustomerKey with an http:// endpoint, which would show the key; use https://",
    ),
    (
        "spec.destination.proxy",
        {"url": "http://u:p@proxy:3128"},
        "spec.destination.proxy.url",
        "put them into a Secret",
    ),
    ("spec.destination.timeouts", {"read": "0s"}, "spec.destination.timeouts.read", "must be longer than 0s"),
    ("spec.destination.acl", "public-read", "", "must be one of Private, PublicRead"),
    (
        "spec.destination.assumeRole",
        {"arn": "arn:aws:iam::1:role/x", "sessionName": "a:b"},
        "spec.destination.assumeRole.sessionName",
        "at least 2 letters, digits or",
    ),
    (
        "spec.format.envelope",
        {"enabled": True, "keyAs": "Fields"},
        "spec.format.envelope.keyAs",
        "must be Plain, since source.key.format is String, which has no fields",
    ),
    ("spec.layout.padding.offset", 20, "", "must be at most 19, got 20"),
    ("spec.layout.suffix", "a/b", "", "letters, digits and"),
    ("spec.layout.suffix", "+0+5", "", "letters, digits and"),
    ("spec.layout.suffix", "-g2", "", "not begin with a digit, or with -g and a digit"),
    ("spec.layout.suffix", "_v-000000000012", "", "must not contain - and twelve digits"),
    ("spec.layout.extension", "5.json", "", "not begin with a digit"),
    (
        "spec.layout.onMissingValue",
        "DeadLetter",
        "spec.errors.deadLetter",
        "since layout.onMissingValue is DeadLetter",
    ),
    ("spec.format.type", "JSON", "", "did you mean Json?"),
    ("spec.format.compression", {}, "spec.format.compression.codec", "must be set to one of None, Gzip"),
    (
        "spec.format.compression",
        {"codec": "Lzo"},
        "spec.format.compression.codec",
        "has no maintained writer",
    ),
    (
        "spec.format.compression",
        {"codec": "Gzip", "level": 10},
        "spec.format.compression.level",
        "between 0 and 9 for Gzip",
    ),
    (
        "spec.format.compression",
        {"codec": "Zstd", "level": 0},
        "spec.format.compression.level",
        "between 1 and 22 for Zstd",
    ),
    (
        "spec.format.compression",
        {"codec": "None", "level": 1},
        "spec.format.compression.level",
        "None has no levels",
    ),
    (
        "spec.format",
        {"type": "Orc", "compression": {"codec": "Zstd", "level": 1}},
        "spec.format.compression.level",
        "Orc",
    ),
    ("spec.format.csv", {"delimiter": ";"}, "", "is only for format.type Csv, and it is Json"),
    ("spec.format.csv", {"delimiter": ";;"}, "spec.format.csv.delimiter", "must have at most 1 characters"),
    (
        "spec.format.csv",
        {"delimiter": "\n"},
        "spec.format.csv.delimiter",
        "must not be a quote or a line break",
    ),
    ("spec.format.parquet", {"dictionary": False}, "", "is only for format.type Parquet, and it is Json"),
    ("spec.format.parquet", {"timestamps": "Micros"}, "", "is only for format.type Parquet, and it is Json"),
    (
        "spec.format",
        {"type": "Text", "columns": {"meta": "Kafka"}},
        "spec.format.columns.meta",
        "Text supports no meta columns",
    ),
    ("spec.format.columns", {"flatten": True}, "spec.format.columns.flatten", "is only for columns.meta Airbyte"),
    (
        "spec.format.columns",
        {"meta": "Kafka", "flatten": True},
        "spec.format.columns.flatten",
        "is only for columns.meta Airbyte and Quix",
    ),
    (
        "spec.format",
        {"type": "Csv", "envelope": {"enabled": True}},
        "spec.format.envelope.enabled",
        "must be false, since Csv supports no envelope; use Parquet, Avro, Json or Orc",
    ),
    (
        "spec.format",
        {"type": "Json", "columns": {"meta": "Kafka"}, "envelope": {"enabled": True}},
        "spec.format.envelope.enabled",
        "must be false, since columns.meta is Kafka; keep one of them",
    ),
    (
        "spec.format.envelope",
        {"enabled": True, "key": False, "value": False, "headers": False, "metadata": False},
        "spec.format.envelope.value",
        "must include at least one of key, value, headers and metadata",
    ),
    ("spec.flush.records", 0, "", "must be at least 1, got 0"),
    ("spec.flush.records", "5", "", 'must be a whole number, got "5"'),
    ("spec.flush.records", True, "", "must be a whole number, got true"),
    ("spec.flush.records", 10**30, "", "is a number out of range"),
    ("spec.flush.bytes", "1.5", "", "must be a quantity such as 64Mi"),
    ("spec.flush.bytes", "2Ei", "", "must be at most 1Ei"),
    ("spec.transform", {}, "spec.transform.select", "must be set, unless where, unwrap or steps is"),
    ("spec.transform", {"select": []}, "spec.transform.select", "must have at least 1 item, got 0"),
    ("spec.routes", [{"topics": []}], "spec.routes[0].topics", "must name at least one topic, unless topicPattern is"),
    ("spec.routes", [{}], "spec.routes[0].topics", "must name at least one topic, unless topicPattern is set"),
    (
        "spec.routes",
        routed(topicPattern="o.*"),
        "spec.routes[0].topics",
        "must not be set together with topicPattern; keep one of them",
    ),
    ("spec.routes", [{"topicPattern": "("}], "spec.routes[0].topicPattern", "must be a regular expression"),
    ("spec.routes", [{"topics": ["other"]}], "spec.routes[0].topics[0]", "other is not among spec.source.topics"),
    ("spec.routes", routed(spark={}), "spec.routes[0].spark", "unknown field"),
    (
        "spec",
        SPEC | {"source": BY_PATTERN, "routes": [{"topics": ["a", "b"]}, {"topics": ["c", "b"]}]},
        "spec.routes[1].topics[1]",
        "b is already in routes[0]; name each topic once",
    ),
    (
        "spec.routes",
        routed(destination={"prefix": ".s3sink/x"}),
        "spec.routes[0].destination.prefix",
        'must not overlap with statePrefix ".s3sink", which holds the state, got ".s3sink/x"',
    ),
    (
        "spec",
        SPEC | {"destination": {"bucket": "lake", "statePrefix": "a/b"}, "routes": routed(destination={"prefix": "a"})},
        "spec.routes[0].destination.prefix",
        'must not overlap with statePrefix "a/b", which holds the state, got "a"',
    ),
    (
        "spec",
        SPEC | {"destination": NEXT_TO_ORDERS, "routes": routed(destination={"prefix": ""})},
        "spec.routes[0].destination.prefix",
        "must not be empty, since the topic orders would share its folder with statePrefix",
    ),
    (
        "spec.routes",
        routed(format={"type": "Avro", "compression": {"codec": "Gzip"}}),
        "spec.routes[0].format.compression.codec",
        "Avro supports None, Snappy",
    ),
    (
        "spec",
        SPEC | {"format": {"type": "Json", "compression": {"codec": "Gzip"}}, "routes": routed(format={"type": "Orc"})},
        "spec.routes[0].format.compression.codec",
        "Orc supports None, Snappy, Lz4, Zstd, Deflate, got Gzip",
    ),
    (
        "spec.routes",
        routed(format={"type": "Text", "columns": {"meta": "Kafka"}}),
        "spec.routes[0].format.columns.meta",
        "Text supports no meta columns",
    ),
    (
        "spec.routes",
        routed(format={"csv": {"delimiter": "\n"}}),
        "spec.routes[0].format.csv.delimiter",
        "must not be a quote or a line break",
    ),
    (
        "spec.routes",
        routed(format={"csv": {"header": False}}),
        "spec.routes[0].format.csv",
        "is only for format.type Csv, and it is Json",
    ),
    (
        "spec.routes",
        routed(format={"type": "Csv", "parquet": {"dictionary": False}}),
        "spec.routes[0].format.parquet",
        "is only for format.type Parquet, and it is Csv",
    ),
    (
        "spec.routes",
        routed(format={"columns": {"flatten": True}}),
        "spec.routes[0].format.columns.flatten",
        "is only for columns.meta Airbyte",
    ),
    (
        "spec",
        SPEC | {"format": FLAT, "routes": routed(format={"columns": {"meta": "Kafka"}})},
        "spec.routes[0].format.columns.flatten",
        "is only for columns.meta Airbyte",
    ),
    (
        "spec",
        SPEC | {"format": WRAPPED, "routes": routed(format={"type": "Csv"})},
        "spec.routes[0].format.envelope.enabled",
        "must be false, since Csv supports no envelope",
    ),
    (
        "spec",
        SPEC | {"format": WRAPPED, "routes": routed(format={"columns": {"meta": "Quix"}})},
        "spec.routes[0].format.envelope.enabled",
        "must be false, since columns.meta is Quix; keep one of them",
    ),
    (
        "spec",
        SPEC | {"format": WRAPPED, "routes": routed(format={"envelope": {"value": False}})},
        "spec.routes[0].format.envelope.value",
        "must include at least one of key, value, headers and metadata",
    ),
    (
        "spec.routes",
        routed(layout={"partitionBy": [{"type": "Key", "path": ["id"]}]}),
        "spec.routes[0].layout.partitionBy[0].path",
        "needs fields, and source.key.format is String; use Json, ConnectJson, Avro, Protobuf or JsonSchema, got id",
    ),
    (
        "spec.routes",
        routed(layout={"hiveStyle": True, "partitionBy": [{"type": "Partition"}, {"type": "Key", "as": "partition"}]}),
        "spec.routes[0].layout.partitionBy[1]",
        "partition= is already the name of another folder; set a different one with as",
    ),
    (
        "spec",
        SPEC | {"layout": {"partitionBy": ALIKE}, "routes": routed(layout={"hiveStyle": True})},
        "spec.routes[0].layout.partitionBy[1]",
        "a= is already the name of another folder; set a different one with as",
    ),
    (
        "spec",
        SPEC | {"layout": {"objectName": "Upload"}, "routes": routed(format={"type": "Bytes"})},
        "spec.routes[0].layout.objectName",
        "must not be Upload, since Bytes names each object by its record",
    ),
    (
        "spec.routes",
        routed(format={"type": "Bytes"}, layout={"partitionBy": [YEARS | {"source": "Wallclock"}]}),
        "spec.routes[0].layout.partitionBy[0].source",
        "must not be Wallclock, since Bytes names each object by its record",
    ),
    (
        "spec.routes",
        routed(layout={"onMissingValue": "DeadLetter"}),
        "spec.errors.deadLetter",
        "must be set, since routes[0].layout.onMissingValue is DeadLetter",
    ),
    (
        "spec.errors.records",
        "DeadLetter",
        "spec.errors.deadLetter",
        "must be set, since records is DeadLetter",
    ),
    ("spec.errors.deadLetter", {}, "spec.errors.deadLetter.topic", "must be set, unless prefix is"),
    ("spec.errors.deadLetter", {"prefix": ""}, "spec.errors.deadLetter.prefix", "must not be empty"),
    (
        "spec.errors.deadLetter",
        {"topic": "a", "prefix": "b"},
        "spec.errors.deadLetter.topic",
        "together with prefix",
    ),
    (
        "spec.errors.deadLetter",
        {"prefix": "b", "replicationFactor": 3},
        "spec.errors.deadLetter.replicationFactor",
        "is only for topic, and prefix is set",
    ),
    ("spec.errors.maxPerFlush", -1, "", "must be at least 0, got -1"),
    ("spec.errors.maxPercent", 101, "", "must be at most 100, got 101"),
    *(
        (
            "spec.errors.deadLetter",
            {"prefix": "b", "headers": value},
            "spec.errors.deadLetter.headers",
            "only for topic",
        )
        for value in (True, False)
    ),
    (
        "spec.errors.deadLetter",
        {"topic": "b", "format": "Json"},
        "spec.errors.deadLetter.format",
        "is only for prefix, and topic is set",
    ),
    (
        "spec.errors.deadLetter",
        {"topic": "orders"},
        "spec.errors.deadLetter.topic",
        "must not be one of spec.source.topics: the sink would read its own dead letters",
    ),
    *(
        ("spec", SPEC | place | letters(prefix), "spec.errors.deadLetter.prefix", message)
        for place, prefix, message in (
            ({}, "orders/bad", "must not begin with a topic's name, since destination.prefix is empty"),
            ({}, ".s3sink/letters", 'must not overlap with statePrefix ".s3sink"'),
            (PLACED, "raw/all/bad", 'must not overlap with prefix "raw/all"'),
            (PLACED, "raw", 'must not overlap with prefix "raw/all"'),
            (
                {"routes": routed(destination={"prefix": "pay"})},
                "pay/bad",
                'must not overlap with routes[0].destination.prefix "pay"',
            ),
        )
    ),
    (
        "spec.errors.retries.backoff",
        "2m",
        "spec.errors.retries.maxBackoff",
        "must be at least backoff, 2m, got 1m",
    ),
    ("spec.spark.driver.memory", 2, "", "must be at least 512Mi, got 2"),
    ("spec.spark.driver.cores", 0, "", "must be at least 1, got 0"),
    ("spec.spark.executor.instances", 0, "", "must be at least 1, got 0"),
    ("spec.spark.image", "a b", "", "must be an image reference"),
    ("spec.spark.driver.cpuRequest", 0.5, "", "must be an amount of CPU such as 500m or 2, got 0.5; write 500m"),
    ("spec.spark.driver.podTemplate", None, "", "must not be null"),
    (
        "spec.spark.serviceAccountAnnotations",
        {"role arn": "x"},
        "spec.spark.serviceAccountAnnotations[role arn]",
        "must be an annotation's name such as eks.amazonaws.com/role-arn",
    ),
    ("spec.source.topics", [f"t{n}" for n in range(5001)], "", "must have at most 5000 items, got 5001"),
    ("spec.source.publishOffsetsTo", "x" * 257, "", "must have at most 256 characters"),
    ("spec.source.properties", {f"p{n}": "" for n in range(129)}, "", "must have at most 128 items, got 129"),
]


@pytest.mark.parametrize(
    ("path", "value", "blamed", "said"), REFUSED, ids=[f"{r[0]}={str(r[1])[:40]}" for r in REFUSED]
)
def test_a_mistake_is_named_with_its_path_and_what_would_be_right(path, value, blamed, said):
    with everything_built():
        errors = errors_of(put(minimal(), path, value))
    assert list(errors) == [blamed or path]
    assert said in errors[blamed or path]


@pytest.mark.parametrize(
    "schedule",
    [
        *("", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "*/0 * * * *"),
        *("5-1 * * * *", "a * * * *", "@reboot", "* * * * * *", "1,,2 * * * *"),
    ],
)
def test_a_schedule_that_no_cronjob_takes_is_refused(schedule):
    document = put(put(minimal(), "spec.run", "Scheduled"), "spec.schedule", schedule)
    with everything_built():
        assert "cron schedule" in errors_of(document)["spec.schedule"]


@pytest.mark.parametrize(
    "schedule", ["0 * * * *", "*/15 0-6,12 1 jan MON-fri", "@hourly", "0 0 1 1 ?", "1-5/2 * * * 0"]
)
def test_a_schedule_that_a_cronjob_takes_is_kept(schedule):
    with everything_built():
        document = put(put(minimal(), "spec.run", "Scheduled"), "spec.schedule", schedule)
        assert parse(document).spec.schedule == schedule


@pytest.mark.parametrize("kind", sorted(CODECS))
def test_each_format_takes_the_codecs_of_the_table_and_no_other(kind):
    every = {codec for codecs in CODECS.values() for codec in codecs}
    with everything_built():
        for codec in every:
            errors = errors_of(put(minimal(), "spec.format", {"type": kind, "compression": {"codec": codec}}))
            if codec in CODECS[kind]:
                assert errors == {}
            else:
                taken = ", ".join(CODECS[kind])
                assert errors == {"spec.format.compression.codec": f"{kind} supports {taken}, got {codec}"}


def test_offsets_are_for_our_topics_once_each():
    offsets = [
        {"topic": "orders", "partition": 0, "offset": 1},
        {"topic": "other", "partition": 0, "offset": 1},
    ]
    document = put(minimal(), "spec.source.startingOffsets", {"position": "Offsets", "offsets": offsets})
    assert errors_of(document) == {
        "spec.source.startingOffsets.offsets[1].topic": "other is not among spec.source.topics"
    }
    offsets[1] = copy.deepcopy(offsets[0])
    document = put(minimal(), "spec.source.startingOffsets", {"position": "Offsets", "offsets": offsets})
    assert errors_of(document) == {
        "spec.source.startingOffsets.offsets[1]": "names partition 0 of orders a second time"
    }


OFFSET = {"topic": "orders", "partition": 0, "offset": 5}


@pytest.mark.parametrize(
    ("start", "end", "field", "words"),
    [
        ({"position": "Earliest"}, {"position": "Earliest"}, "position", "must be one of Latest, Timestamp, Offsets"),
        ({"position": "Earliest"}, {"position": "Timestamp"}, "timestamp", "must be set"),
        (
            {"position": "Timestamp", "timestamp": "2026-02-01"},
            {"position": "Timestamp", "timestamp": "2026-02-01"},
            "timestamp",
            "must be later than startingOffsets.timestamp",
        ),
        (
            {"position": "Offsets", "offsets": [OFFSET]},
            {"position": "Offsets", "offsets": [OFFSET | {"offset": 4}]},
            "offsets[0].offset",
            "must not be below 5, where startingOffsets begins",
        ),
        (
            {"position": "Earliest"},
            {"position": "Offsets", "offsets": [OFFSET | {"topic": "other"}]},
            "offsets[0].topic",
            "other is not among spec.source.topics",
        ),
    ],
)
def test_an_end_before_the_start_or_of_another_topic_is_named(start, end, field, words):
    document = put(put(minimal(), "spec.run", "Once"), "spec.source.startingOffsets", start)
    ((where, message),) = errors_of(put(document, "spec.source.endingOffsets", end)).items()
    assert where == f"spec.source.endingOffsets.{field}"
    assert message.startswith(words)


@pytest.mark.parametrize("run", ["Continuous", "Scheduled", None])
def test_an_end_is_only_for_a_run_that_happens_once(run):
    document = put(minimal(), "spec.source.endingOffsets", {"position": "Latest"})
    if run:
        document = put(document, "spec.run", run)
    if run == "Scheduled":
        document = put(document, "spec.schedule", "0 * * * *")
    assert errors_of(document) == {
        "spec.source.endingOffsets": f"is only for run: Once, and run is {run or 'Continuous'}"
    }
    assert errors_of(put(drop(document, "spec.schedule") if run == "Scheduled" else document, "spec.run", "Once")) == {}


def test_neither_topics_nor_a_pattern_is_a_mistake_and_a_pattern_alone_is_none():
    document = drop(minimal(), "spec.source.topics")
    assert errors_of(document) == {"spec.source.topics": "must name at least one topic, unless topicPattern is set"}
    with everything_built():
        assert parse(put(document, "spec.source.topicPattern", r"shop\..*")).spec.source.topics == ()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.layout", {"partitionBy": ALIKE}),
        ("spec.layout", {"hiveStyle": True, "partitionBy": [{"type": "Topic"}, {"type": "Key", "as": "topic"}]}),
        ("spec.layout", {"hiveStyle": True, "partitionBy": [YEARS, {"type": "Topic", "as": "topic"}]}),
        ("spec", SPEC | {"format": WRAPPED, "routes": routed(format={"type": "Csv", "envelope": {"enabled": False}})}),
        ("spec", SPEC | {"format": FLAT, "routes": routed(format={"columns": {"meta": "None", "flatten": False}})}),
        ("spec", SPEC | {"format": {"type": "Csv", "csv": {"header": False}}, "routes": routed(format=FLAT)}),
        ("spec.routes", routed(format={"csv": {"header": True}, "parquet": {"rowGroupBytes": "65536Ki"}})),
        ("spec.routes", [{"topicPattern": "ord.*"}, *routed()]),
        ("spec", SPEC | {"source": BY_PATTERN, "routes": routed()}),
        ("spec", SPEC | {"destination": NEXT_TO_ORDERS, "routes": routed(destination={"prefix": "pay"})}),
    ],
)
def test_what_is_close_to_a_mistake_is_taken(path, value):
    assert errors_of(put(minimal(), path, value)) == {}


def test_state_and_data_may_lie_side_by_side():
    assert errors_of(put(minimal(), "spec.destination.prefix", ".s3sink-data")) == {}
    assert (
        errors_of(put(put(minimal(), "spec.destination.prefix", "raw"), "spec.destination.statePrefix", "rawstate"))
        == {}
    )


def test_null_never_stands_for_absent():
    document = put(minimal(), "spec.destination.endpoint", None)
    document = put(document, "spec.source.topics", ["a", None, "b/c"])
    assert errors_of(document) == {
        "spec.destination.endpoint": "must not be null; leave the field out",
        "spec.source.topics[1]": "must not be null; leave the field out",
        "spec.source.topics[2]": "must be a Kafka topic name: "
        '1 to 249 letters, digits, dots, hyphens or underscores, got "b/c"',
    }


@pytest.mark.parametrize("document", [None, [], "x", 5])
def test_what_is_no_manifest_at_all_is_refused(document):
    assert list(errors_of(document)) == ["document"]


def test_a_document_that_holds_itself_ends_in_an_error():
    document = minimal()
    document["spec"]["source"]["again"] = document["spec"]
    assert any("is too large or too deeply nested" in message for message in errors_of(document).values())


def test_keys_that_are_not_text_are_named():
    errors = errors_of(put(minimal(), "spec.destination.tags", {1: "a", None: "b"}))
    assert set(errors) == {"spec.destination.tags[1]", "spec.destination.tags.None"}


def test_the_full_manifest_has_no_mistake():
    assert errors_of(full()) == {}


def test_a_secret_named_without_its_reference_is_shown_the_way():
    assert errors_of(put(minimal(), "spec.destination.credentials", {"name": "s3"})) == {
        "spec.destination.credentials.secretRef": "must be set",
        "spec.destination.credentials.name": "unknown field; the fields here are secretRef",
    }


def test_a_reset_begins_at_offsets_of_our_topics():
    start = {"position": "Offsets", "offsets": [{"topic": "other", "partition": 0, "offset": 1}]}
    document = put(minimal(), "spec.reset", {"nonce": "1", "to": start})
    assert errors_of(document) == {"spec.reset.to.offsets[0].topic": "other is not among spec.source.topics"}
    by_pattern = put(drop(document, "spec.source.topics"), "spec.source.topicPattern", "o.*")
    assert errors_of(by_pattern) == {}
