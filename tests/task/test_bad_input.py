"""Bad input gets a clear error that names the record or object, and nothing is lost."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

from s3sink_job.base.errors import FencedError
from s3sink_job.base.retry import LONGEST_WAIT, RetryPolicy
from tests.harness import World, failure_of
from tools.parts.kafka import KafkaBroker

STATE = ".s3sink/default/sink/state.json"


def put(world: World, key: str, body: bytes) -> None:
    world.client().put_object(Bucket=world.bucket, Key=key, Body=body)


def test_a_record_that_is_not_json_stops_its_partition_there_and_no_other(world: World) -> None:
    world.kafka.create_topic(world.topic, partitions=2)
    world.produce([1, 2, b"{broken", 4], partition=0)
    world.produce(["fine"], partition=1)
    driver = world.drain()
    assert (world.rows(0), world.rows(1)) == ([1, 2], ["fine"])
    problem = driver.problems[world.topic, 0]
    assert problem.reason == "BadRecord"
    assert f"topic {world.topic}, partition 0, offset 2" in problem.message
    assert world.state()["topics"][world.topic]["partitions"]["0"]["offset"] == 2
    assert "offset 2" in driver.reporter.status()["retry"]["lastError"]
    assert world.verify(driver).ok


def test_skipped_records_are_counted_and_remembered(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1, b"NaN", 3, b"\xff", b"[1,]"])
    driver = world.drain(errors={"records": "Skip"})
    assert world.rows() == [1, 3]
    assert driver.reporter.status()["retry"]["skippedRecords"] == 3
    report = world.verify(driver)
    assert (report.ok, report.skipped, report.counts.records) == (True, 3, 2)


def test_more_bad_records_than_allowed_stop_the_partition_whatever_the_policy(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1, b"x", b"x", b"x", 5])
    driver = world.drain(errors={"records": "Skip", "maxPerFlush": 2})
    assert "errors.maxPerFlush = 2" in driver.problems[world.topic, 0].message
    assert world.rows() == []
    assert world.state()["topics"][world.topic]["partitions"]["0"]["offset"] == 0


def test_a_missing_bucket_is_named_with_what_to_do(world: World) -> None:
    error = failure_of(world.driver(destination={"bucket": "no-such-bucket"}).step)
    assert (error.reason, error.retryable) == ("BucketMissing", False)
    assert "no-such-bucket" in str(error)
    assert "create the bucket" in str(error)


def test_wrong_credentials_are_named_and_never_shown(world: World) -> None:
    secrets = world.secrets(wrong={"AWS_ACCESS_KEY_ID": b"nobody", "AWS_SECRET_ACCESS_KEY": b"topsecret"})
    driver = world.driver(secrets=secrets, destination={"credentials": {"secretRef": {"name": "wrong"}}})
    error = failure_of(driver.step)
    assert (error.reason, error.retryable) == ("AccessDenied", False)
    assert "topsecret" not in str(error)


def test_a_missing_secret_or_key_is_named(world: World) -> None:
    driver = world.driver(destination={"credentials": {"secretRef": {"name": "absent"}}})
    assert "'absent'" in str(failure_of(driver.step))
    secrets = world.secrets(half={"AWS_ACCESS_KEY_ID": b"x"})
    driver = world.driver(secrets=secrets, destination={"credentials": {"secretRef": {"name": "half"}}})
    assert "AWS_SECRET_ACCESS_KEY" in str(failure_of(driver.step))


def test_an_unreachable_broker_is_a_retryable_error_that_names_it(world: World) -> None:
    properties = {"default.api.timeout.ms": "2000", "request.timeout.ms": "1000"}
    driver = world.driver(source={"bootstrapServers": "127.0.0.1:9", "properties": properties})
    error = failure_of(driver.step)
    assert (error.reason, error.retryable) == ("KafkaUnavailable", True)
    assert "127.0.0.1:9" in str(error)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"formatVersion": 1}', b"\xff\xfe"])
def test_a_corrupt_state_is_refused_and_left_alone(world: World, body: bytes) -> None:
    world.kafka.create_topic(world.topic)
    put(world, STATE, body)
    error = failure_of(world.driver().step)
    assert (error.reason, error.retryable) == ("CorruptState", False)
    assert STATE in str(error)
    assert world.content(STATE) == body


def test_a_state_of_a_newer_version_is_refused_and_left_alone(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.drain()
    newer = {**world.state(), "formatVersion": 99}
    put(world, STATE, json.dumps(newer).encode())
    error = failure_of(world.driver().step)
    assert error.reason == "NewerFormat"
    assert "newer s3sink" in str(error)
    assert world.state()["formatVersion"] == 99


def test_a_lost_state_is_refused_while_manifests_show_that_there_was_one(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1])
    world.drain()
    world.client().delete_object(Bucket=world.bucket, Key=STATE)
    error = failure_of(world.driver().step)
    assert error.reason == "StateLost"
    assert world.rows() == [1]


def test_the_state_of_another_cluster_is_refused_unless_adopted_by_name(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1])
    world.drain(world.driver(cluster="prod-a"))
    world.produce([2])
    error = failure_of(world.driver(cluster="prod-b").step)
    assert error.reason == "ForeignState"
    assert "prod-a/default/sink" in str(error)
    wrong = world.driver(cluster="prod-b", annotations={"s3sink.dev/adopt-from": "prod-x"})
    assert failure_of(wrong.step).reason == "ForeignState"
    world.drain(world.driver(cluster="prod-b", annotations={"s3sink.dev/adopt-from": "prod-a"}))
    assert world.rows() == [1, 2]
    assert world.state()["owner"]["cluster"] == "prod-b"


def test_a_foreign_object_at_our_key_is_never_overwritten_and_moving_it_heals(world: World) -> None:
    world.kafka.create_topic(world.topic)
    key = f"raw/{world.topic}/0/{0:019d}.jsonl"
    put(world, key, b"precious")
    world.produce([1, 2])
    driver = world.driver()
    error = failure_of(driver.step)
    assert (error.reason, error.retryable) == ("KeyTaken", False)
    assert key in str(error)
    assert world.content(key) == b"precious"
    world.client().delete_object(Bucket=world.bucket, Key=key)
    world.drain(driver)
    assert world.rows() == [1, 2]
    assert world.verify(driver).ok


def test_a_driver_that_was_replaced_stops_and_its_uploads_never_show(world: World) -> None:
    world.kafka.create_topic(world.topic)
    old = world.driver(run="Continuous", flush={"records": 1})
    old.step()
    world.produce([1])
    world.drain()
    world.produce([2])
    assert isinstance(failure_of(old.step), FencedError)
    assert world.rows() == [1]
    driver = world.drain()
    assert world.rows() == [1, 2]
    assert world.verify(driver).ok


def test_a_line_break_in_text_is_a_bad_record_not_two_lines(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([b"one", b"two\nhalves"])
    driver = world.drain(source={"value": {"format": "String"}}, format={"type": "Text"})
    assert world.lines() == ["one"]
    assert "line break" in driver.problems[world.topic, 0].message


def test_a_field_that_clashes_with_a_kafka_column_is_a_bad_record(world: World) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([{"_offset": 1}])
    driver = world.drain(format={"type": "Json", "columns": {"meta": "Kafka"}})
    assert "_offset" in driver.problems[world.topic, 0].message


def test_secured_brokers_are_reached_with_sasl_and_tls_from_a_secret(world: World, kafka: KafkaBroker) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1, 2, 3])
    secure = kafka.secure
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    auth = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{module} required username="{secure.username}" password="{secure.password}";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": secure.ca_pem,
    }
    secrets = world.secrets(auth={k: v.encode() for k, v in auth.items()})
    source = {"bootstrapServers": secure.bootstrap, "propertiesFrom": [{"secretRef": {"name": "auth"}}]}
    driver = world.drain(world.driver(secrets=secrets, source=source))
    assert world.rows() == [1, 2, 3]
    assert world.verify(driver).ok
    status = json.dumps(driver.reporter.status())
    assert secure.password not in status


def test_a_wrong_kafka_password_is_a_final_error_that_does_not_show_it(world: World, kafka: KafkaBroker) -> None:
    secure = kafka.secure
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    auth = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{module} required username="{secure.username}" password="wrongsecret";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": secure.ca_pem,
    }
    secrets = world.secrets(auth={k: v.encode() for k, v in auth.items()})
    source = {"bootstrapServers": secure.bootstrap, "propertiesFrom": [{"secretRef": {"name": "auth"}}]}
    error = failure_of(world.driver(secrets=secrets, source=source).step)
    assert (error.reason, error.retryable) == ("SaslAuthentication", False)
    assert "wrongsecret" not in str(error)


def test_a_class_name_in_a_kafka_secret_is_refused(world: World, spark: SparkSession) -> None:
    secrets = world.secrets(auth={"sasl.login.callback.handler.class": b"evil.Class"})
    driver = world.driver(secrets=secrets, source={"propertiesFrom": [{"secretRef": {"name": "auth"}}]})
    error = failure_of(driver.step)
    assert error.reason == "PropertyRefused"
    assert "sasl.login.callback.handler.class" in str(error)


def test_retrying_waits_longer_each_time() -> None:
    waits = [RetryPolicy(5, 0.05).wait(n) for n in range(5)]
    assert all(0.05 * 2**n * 0.5 <= wait <= 0.05 * 2**n * 1.5 for n, wait in enumerate(waits))


def test_no_single_wait_of_a_request_becomes_hours() -> None:
    """The manifest may ask for a million retries."""
    assert RetryPolicy(1_000_000, 0.05).wait(999_999) <= LONGEST_WAIT * 1.5
    assert RetryPolicy(5, 60.0).wait(4) >= 30.0, "a longer first wait is the user's choice"
