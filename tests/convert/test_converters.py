"""Converters of Kafka Connect as formats of keys and values."""

from __future__ import annotations

import json

import pytest

from s3sink_job.convert.conversion import convert


@pytest.mark.parametrize(("as_confluent", "outcome"), [("true", "Exact"), ("false", "Lost")])
def test_ids_of_eight_bytes_in_front_of_records_are_reported_as_lost(as_confluent: str, outcome: str) -> None:
    converter = {
        "value.converter": "io.apicurio.registry.utils.converter.AvroConverter",
        "value.converter.apicurio.registry.url": "http://registry:8080/apis/registry/v2",
        "value.converter.apicurio.registry.as-confluent": as_confluent,
    }
    connector = {"connector.class": "io.confluent.connect.s3.S3SinkConnector", "topics": "t", "s3.bucket.name": "b"}
    (sink,) = convert(json.dumps(connector | converter).encode(), "input").sinks
    (found,) = [entry for entry in sink.report.entries if entry.key.endswith("as-confluent")]
    assert (found.outcome, "4 bytes" in found.text) == (outcome, outcome == "Exact")
