"""A setting that nothing acts on must never be taken in silence."""

from __future__ import annotations

import pytest

from s3sink_job.spec import NOT_BUILT, parse
from tests.spec.documents import drop, errors_of, everything_built, full, minimal, put

ROUTE = [{"topics": ["orders"], "destination": {"prefix": "x"}}]
# What a person would write to use the feature of each row.
WANTED = {
    "spec.mode": "FullRefresh",
    "spec.reset": {"nonce": "1"},
    "spec.source.key.format": "Avro",
    "spec.source.key.schemaRegistry": {"url": "http://r"},
    "spec.source.key.schema": "{}",
    "spec.source.value.format": "Protobuf",
    "spec.source.value.schemaRegistry": {"url": "http://r"},
    "spec.source.value.schema": '{"type": "object", "properties": {"a": {"type": "integer"}}}',
    "spec.destination.assumeRoleArn": "arn:aws:iam::1:role/x",
    "spec.destination.encryption.type": "CustomerKey",
    "spec.layout.partitionBy": [{"type": "Topic"}],
    "spec.layout.hiveStyle": True,
    "spec.layout.onMissingValue": "Fail",
    "spec.layout.objectName": "Confluent",
    "spec.layout.padding.offset": 12,
    "spec.layout.padding.partition": 3,
    "spec.layout.suffix": "x",
    "spec.layout.extension": "x",
    "spec.format.type": "Orc",
    "spec.format.compression.codec": "Xz",
    "spec.format.csv.header": False,
    "spec.format.csv.delimiter": ";",
    "spec.format.csv.quote": "All",
    "spec.format.columns.meta": "Airbyte",
    "spec.format.columns.flatten": True,
    "spec.format.envelope.enabled": True,
    "spec.format.envelope.key": False,
    "spec.format.envelope.value": False,
    "spec.format.envelope.headers": False,
    "spec.format.envelope.metadata": False,
    "spec.format.schemaEvolution.mode": "Full",
    "spec.format.schemaEvolution.onChange": "Roll",
    "spec.nullValues": "Skip",
    "spec.transform": {"where": "a > 0"},
    "spec.routes": ROUTE,
    "spec.errors.records": "DeadLetter",
    "spec.errors.deadLetter": {"topic": "dlq"},
    "spec.errors.logRecords": True,
}
# What has to stand beside it for the manifest to be valid otherwise.
BESIDE = {
    "spec.mode": {"spec.run": "Once"},
    "spec.source.key.format": {"spec.source.key.schema": "{}"},
    "spec.source.key.schemaRegistry": {"spec.source.key.format": "Avro"},
    "spec.source.key.schema": {"spec.source.key.format": "Avro"},
    "spec.source.value.format": {"spec.source.value.schemaRegistry": {"url": "http://r"}},
    "spec.source.value.schemaRegistry": {"spec.source.value.format": "Avro"},
    "spec.destination.encryption.type": {"spec.destination.encryption.secretRef": {"name": "k"}},
    "spec.format.csv.header": {"spec.format.type": "Csv"},
    "spec.format.csv.delimiter": {"spec.format.type": "Csv"},
    "spec.format.csv.quote": {"spec.format.type": "Csv"},
    "spec.errors.records": {"spec.errors.deadLetter": {"topic": "dlq"}},
}


@pytest.mark.parametrize("row", NOT_BUILT, ids=lambda row: row.path)
def test_what_is_not_built_is_refused_by_name(row):
    document = put(minimal(), row.path, WANTED[row.path])
    for path, value in BESIDE.get(row.path, {}).items():
        document = put(document, path, value)
    with everything_built():
        assert errors_of(document) == {}
    errors = errors_of(document)
    assert errors[row.path].endswith(f"not built yet; {row.instead}")
    assert all("not built yet; " in message for message in errors.values())


@pytest.mark.parametrize("row", NOT_BUILT, ids=lambda row: row.path)
def test_writing_the_default_out_is_no_mistake(row):
    document = minimal()
    for value in row.built:
        document = put(document, row.path, value)
        if row.path == "spec.destination.encryption.type" and value == "KMS":
            document = put(document, "spec.destination.encryption.keyId", "k")
        assert errors_of(document) == {}


def test_no_row_names_a_field_that_the_resource_lacks():
    assert set(WANTED) == {row.path for row in NOT_BUILT}
    assert len(NOT_BUILT) == len(WANTED)


def test_the_default_format_takes_its_own_codecs():
    assert errors_of(drop(minimal(), "spec.format")) == {}
    for codec in ("None", "Snappy", "Gzip", "Zstd", "Lz4", "Brotli"):
        assert errors_of(put(drop(minimal(), "spec.format"), "spec.format.compression.codec", codec)) == {}


def test_everything_of_a_full_manifest_that_is_not_built_is_named_at_once():
    errors = errors_of(full())
    for path in ("spec.mode", "spec.transform", "spec.routes", "spec.layout.hiveStyle"):
        assert "not built yet; " in errors[path]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.state", "Paused"),
        ("spec.state", "Stopped"),
        ("spec.run", "Once"),
        ("spec", minimal()["spec"] | {"run": "Scheduled", "schedule": "@hourly"}),
        ("spec.delivery", "AtLeastOnce"),
        ("spec.errors.records", "Skip"),
        ("spec.source.startingOffsets", {"position": "Latest"}),
        ("spec.source.startingOffsets", {"position": "Timestamp", "timestamp": "2026-01-01T00:00:00Z"}),
        ("spec.source.onDataLoss", "Skip"),
        ("spec.source.isolation", "ReadUncommitted"),
        ("spec.source.publishOffsetsTo", "orders-s3"),
        ("spec.source.value.format", "Bytes"),
        ("spec.source.propertiesFrom", [{"secretRef": {"name": "a"}}]),
        ("spec.destination.encryption", {"type": "KMS", "keyId": "k"}),
        ("spec.destination.caFrom", {"secretRef": {"name": "ca"}}),
        ("spec.format.type", "Text"),
        ("spec.format.compression", {"codec": "Gzip", "level": 6}),
        ("spec.format.compression", {"codec": "Zstd", "level": 3}),
        ("spec.format.columns", {"meta": "Kafka"}),
        ("spec.format.columns", {"meta": "Quix"}),
        ("spec.flush", {"records": 5, "interval": "10s"}),
        ("spec.flush", {"bytes": "500Mi", "aligned": "15m", "recordWindow": "1h"}),
        ("spec.source.maxBytesPerSecond", "50Mi"),
        ("spec.spark", {"driver": {"cores": 2}, "conf": {"spark.sql.session.timeZone": "UTC"}, "image": "x"}),
    ],
)
def test_what_is_built_is_taken(path, value):
    parse(put(minimal(), path, value))
