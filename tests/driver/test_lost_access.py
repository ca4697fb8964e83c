"""Access that is taken away while a sink runs, and given back: it stops with the reason, and then continues."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from pyspark.sql import SparkSession

from s3sink_job.base.errors import S3SinkError
from s3sink_job.driver.driver import Driver
from tests.harness import World, failure_of
from tests.kafka.test_kafka_secrets import FROM_AUTH, auth, set_password
from tools.parts.kafka import KafkaBroker
from tools.parts.s3 import S3Server

PREFIX = "listener.name.sasl_ssl.scram-sha-512"
CONTINUOUS: dict[str, Any] = {"run": "Continuous", "flush": {"records": 1, "interval": "1h"}}


@pytest.fixture(scope="module")
def guarded() -> Iterator[KafkaBroker]:
    """A broker with ACLs. On the plain listener everybody is a super user. Sessions by SASL end after seconds."""
    config = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        f"{PREFIX}.connections.max.reauth.ms": "2000",
    }
    with KafkaBroker(secure=True, config=config) as broker:
        yield broker


@pytest.fixture
def world(
    guarded: KafkaBroker, s3: S3Server, spark: SparkSession, bucket: str, topic_name: str, tmp_path: Path
) -> Iterator[World]:
    made = World(guarded, s3, spark, bucket, topic_name, tmp_path)
    guarded.create_topic(topic_name)
    yield made
    for driver in made.drivers:
        driver.close()


class Clock:
    """Jumps over the half minute after which the sink looks again at what only a person can fix."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def step(driver: Driver, clock: Clock) -> str:
    """The reason why a step failed, or why its partition waits; empty if all is well."""
    clock.now += 60
    try:
        driver.step()
    except S3SinkError as error:
        return error.reason
    return next((problem.reason for problem in driver.problems.values()), "")


def until(driver: Driver, clock: Clock, holds: Callable[[str], bool]) -> str:
    for _ in range(40):
        if holds(reason := step(driver, clock)):
            return reason
    raise AssertionError(f"last: {reason}, {driver.problems}")


def acl(kind: ResourceType, name: str, user: str, operation: AclOperation, pattern: ResourcePatternType) -> AclBinding:
    return AclBinding(kind, name, pattern, f"User:{user}", "*", operation, AclPermissionType.ALLOW)


def grant(world: World, user: str, topic_name: str, *operations: AclOperation) -> None:
    topic, group = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
    wanted = [acl(ResourceType.TOPIC, topic_name, user, operation, topic) for operation in operations]
    wanted.append(acl(ResourceType.GROUP, "s3sink.default.sink", user, AclOperation.READ, group))
    create_acls(world, *wanted)


def create_acls(world: World, *wanted: AclBinding) -> None:
    for future in world.kafka.admin.create_acls(list(wanted)).values():
        future.result(timeout=30)


def revoke(world: World, user: str, operation: AclOperation) -> None:
    found = AclBindingFilter(
        *(ResourceType.TOPIC, world.topic, ResourcePatternType.LITERAL, f"User:{user}", "*", operation),
        AclPermissionType.ALLOW,
    )
    for future in world.kafka.admin.delete_acls([found]).values():
        assert len(future.result(timeout=30)) >= 1


@pytest.mark.parametrize(
    ("revoked", "pattern", "wanted"),
    [
        (AclOperation.READ, False, "JobFailed"),
        (AclOperation.ANY, False, "TopicAuthorization"),
        (AclOperation.ANY, True, "TopicMissing"),
    ],
    ids=["read", "all", "all by pattern"],
)
def test_a_revoked_acl_stops_the_topic_and_a_granted_one_continues_it(
    world: World, revoked: AclOperation, pattern: bool, wanted: str
) -> None:
    user, clock, other = f"acl-{world.topic}", Clock(), f"{world.topic}-other"
    world.kafka.create_topic(other)
    set_password(world.kafka, user, "secret")
    rights = (AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
    grant(world, user, world.topic, *rights)
    grant(world, user, other, *rights)
    secrets = world.secrets(auth=auth(world.kafka, username=user, password="secret"))
    topics: dict[str, Any] = {"topics": [world.topic, other]}
    if pattern:
        topics = {"topics": [], "topicPattern": f"{world.topic}.*"}
    source = {"bootstrapServers": world.kafka.secure.bootstrap, **topics, **FROM_AUTH}
    driver = world.driver(secrets=secrets, source=source, clock=clock, **CONTINUOUS)
    world.produce([1])
    assert step(driver, clock) == ""
    assert world.rows(topic=world.topic) == [1]
    revoke(world, user, revoked)
    world.produce([2])
    assert until(driver, clock, bool) == wanted
    world.produce(["more"], topic=other)
    for _ in range(2):
        assert step(driver, clock) == wanted
    assert world.rows(topic=world.topic) == [1]
    assert world.rows(topic=other) == ([] if wanted == "TopicAuthorization" else ["more"])
    grant(world, user, world.topic, *rights)
    until(driver, clock, lambda reason: not reason and len(world.rows(topic=world.topic)) == 2)
    assert (world.rows(topic=world.topic), world.rows(topic=other)) == ([1, 2], ["more"])
    assert world.verify(driver).ok


def refusal(driver: Driver, clock: Clock, text: str) -> S3SinkError:
    """Of a sink that is started again and again until it is refused for this cause: ACLs take effect after a moment."""
    for _ in range(40):
        clock.now += 60
        error = failure_of(driver.step)
        if text in str(error):
            return error
        time.sleep(0.1)
    raise AssertionError(f"last: {error}")


def test_a_dead_letter_topic_that_may_not_be_written_is_refused_before_anything_is(world: World) -> None:
    user, clock, letters = f"letters-{world.topic}", Clock(), f"{world.topic}-dlq"
    set_password(world.kafka, user, "secret")
    grant(world, user, world.topic, AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
    secrets = world.secrets(auth=auth(world.kafka, username=user, password="secret"))
    source = {"bootstrapServers": world.kafka.secure.bootstrap, **FROM_AUTH}
    errors = {"records": "DeadLetter", "deadLetter": {"topic": letters, "replicationFactor": 1}}
    driver = world.driver(secrets=secrets, source=source, errors=errors, clock=clock, **CONTINUOUS)
    world.produce([1, b"{broken"])

    found = [refusal(driver, clock, f"may not see {letters}: grant Describe, Read and Write")]
    grant(world, user, letters, AclOperation.DESCRIBE)
    found.append(refusal(driver, clock, f"{letters}, create it: TopicAuthorizationException"))
    world.kafka.create_topic(letters)
    found.append(refusal(driver, clock, f"may not use {letters}: grant Read and Write"))
    grant(world, user, letters, AclOperation.WRITE)
    found.append(refusal(driver, clock, f"may not use {letters}: grant Read on it"))
    assert {(error.reason, error.retryable) for error in found} == {("TopicAuthorization", False)}
    grant(world, user, letters, AclOperation.READ)
    assert refusal(driver, clock, "transactional id").reason == "TransactionalIdAuthorization"
    assert all("spec.errors.deadLetter.topic" in str(error) for error in found)
    assert world.objects("") == [".s3sink/default/sink/state.json"]
    assert world.messages(letters) == []

    name, prefixed = "s3sink.default.sink.letters", ResourcePatternType.PREFIXED
    operations = (AclOperation.DESCRIBE, AclOperation.WRITE)
    create_acls(world, *(acl(ResourceType.TRANSACTIONAL_ID, name, user, one, prefixed) for one in operations))
    until(driver, clock, lambda reason: not reason)
    assert (world.rows(), [m.value for m in world.messages(letters)]) == ([1], [b"{broken"])
    grant(world, user, letters, AclOperation.DESCRIBE_CONFIGS)
    report = world.verify(driver)
    assert (report.ok, report.sent) == (True, 1), report


def test_a_kafka_password_that_expires_stops_the_sink_until_the_secret_has_the_new_one(world: World) -> None:
    user, clock = f"expiring-{world.topic}", Clock()
    set_password(world.kafka, user, "first")
    grant(world, user, world.topic, AclOperation.READ, AclOperation.DESCRIBE)
    secrets = world.secrets(auth=auth(world.kafka, username=user, password="first"))
    source = {"bootstrapServers": world.kafka.secure.bootstrap, **FROM_AUTH}
    driver = world.driver(secrets=secrets, source=source, clock=clock, **CONTINUOUS)
    world.produce([1])
    assert step(driver, clock) == ""
    set_password(world.kafka, user, "second")
    world.produce([2])
    assert until(driver, clock, lambda reason: reason == "SaslAuthentication")
    world.secrets(auth=auth(world.kafka, username=user, password="second"))
    until(driver, clock, lambda reason: not reason and len(world.rows()) == 2)
    assert world.rows() == [1, 2]


def test_s3_credentials_that_expire_stop_the_sink_until_the_secret_has_new_ones(world: World) -> None:
    clock = Clock()
    driver = world.driver(clock=clock, **CONTINUOUS)
    world.produce([1])
    assert step(driver, clock) == ""
    wrong = {"AWS_ACCESS_KEY_ID": b"expired", "AWS_SECRET_ACCESS_KEY": b"expired"}
    world.secrets(s3=wrong)
    world.produce([2])
    assert until(driver, clock, bool) == "AccessDenied"
    assert world.rows() == [1]
    world.secrets()
    until(driver, clock, lambda reason: not reason and len(world.rows()) == 2)
    assert world.rows() == [1, 2]
    assert world.verify(driver).ok
