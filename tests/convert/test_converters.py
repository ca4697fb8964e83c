"""Registries of Kafka Connect's converters, with the ways to reach them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from s3sink_job.convert.conversion import Conversion, convert
from s3sink_job.convert.output import conversion_text, reports_text

AWS = "com.amazonaws.services.schemaregistry.kafkaconnect.AWSKafkaAvroConverter"
CONNECTOR = {"connector.class": "io.confluent.connect.s3.S3SinkConnector", "topics": "t", "s3.bucket.name": "bucket"}
ROLE = "arn:aws:iam::123456789012:role/schemas"


def converted(kind: str, **options: str) -> Conversion:
    values = {f"value.converter.{name}": value for name, value in options.items()}
    return convert(json.dumps({**CONNECTOR, "name": "orders", "value.converter": kind, **values}).encode(), "input")


def outcome(conversion: Conversion, option: str) -> tuple[str, str]:
    (sink,) = conversion.sinks
    (entry,) = [entry for entry in sink.report.entries if entry.key == f"value.converter.{option}"]
    return entry.outcome, entry.text


def registry(conversion: Conversion) -> dict[str, Any]:
    (sink,) = conversion.sinks
    found: dict[str, Any] = sink.manifest["spec"]["source"]["value"]["schemaRegistry"]
    return found


def test_role_and_proxy_of_aws_converters_are_carried_over() -> None:
    url = "http://connect:hunter2@proxy.example.com:3128"
    found = converted(AWS, region="eu-west-1", assumeRoleArn=ROLE, assumeRoleSessionName="connect", proxyUrl=url)
    login = {"secretRef": {"name": "orders-glue-proxy"}}
    assert registry(found) == {
        "type": "Glue",
        "region": "eu-west-1",
        "assumeRole": {"arn": ROLE, "sessionName": "connect"},
        "proxy": {"url": "http://proxy.example.com:3128", "credentialsFrom": login},
    }
    assert outcome(found, "assumeRoleArn")[0] == outcome(found, "assumeRoleSessionName")[0] == "Exact"
    assert "the login in the URL goes into the Secret orders-glue-proxy" in outcome(found, "proxyUrl")[1]
    assert "hunter2" not in conversion_text(found) + reports_text(found)


def test_the_name_of_a_session_without_a_role_means_nothing() -> None:
    found = converted(AWS, assumeRoleSessionName="connect")
    assert registry(found) == {"type": "Glue"}
    assert outcome(found, "assumeRoleSessionName") == ("Exact", "has no meaning without assumeRoleArn")


@pytest.mark.parametrize(
    ("kind", "option"),
    [("io.confluent.connect.avro.AvroConverter", "schema.registry.url"), (AWS, "proxyUrl")],
)
def test_an_address_that_is_no_url_is_reported_and_its_password_is_not_shown(kind: str, option: str) -> None:
    found = converted(kind, **{option: "http://user:hunter2@["})
    assert outcome(found, option)[0] == "Lost"
    assert "hunter2" not in conversion_text(found) + reports_text(found)


@pytest.mark.parametrize(("as_confluent", "expected"), [("true", "Exact"), ("false", "Lost")])
def test_ids_of_eight_bytes_in_front_of_records_are_reported_as_lost(as_confluent: str, expected: str) -> None:
    url = {"apicurio.registry.url": "http://registry:8080/apis/registry/v2"}
    apicurio = "io.apicurio.registry.utils.converter.AvroConverter"
    found = converted(apicurio, **url, **{"apicurio.registry.as-confluent": as_confluent})
    result, text = outcome(found, "apicurio.registry.as-confluent")
    assert (result, "4 bytes" in text) == (expected, expected == "Exact")
