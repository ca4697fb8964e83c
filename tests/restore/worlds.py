"""A topic with every kind of record, and restores of it in this process."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import Any

from confluent_kafka import Producer

from s3sink_job.base.retry import RetryPolicy
from s3sink_job.cli.opened_sink import LOCAL_CLUSTER
from s3sink_job.commit.ledger import Ledger
from s3sink_job.driver.driver import Driver
from s3sink_job.flush.state import Owner
from s3sink_job.kafka.admin import Admin
from s3sink_job.kafka.properties import connection
from s3sink_job.proof.kafka_records import KafkaAccess
from s3sink_job.restore.report import RestoreReport
from s3sink_job.restore.restore import Restore, RestoreOptions
from s3sink_job.stores.factory import open_bucket
from tests.harness import PATIENCE, Message, World

NOW = 1_795_000_000_000
TEXT_RECORDS: list[Any] = [
    (b"key", b"value", None, NOW),
    (None, b"no key", None, 0),
    (b"no value", None, None, 1),
    (None, None, None, NOW),
    (b"", b"", None, NOW),
    (b"empty value", b"", [], NOW),
    (b"quotes", b'a "quoted" \\ back\\slash, comma; \ttab', None, NOW),
    ("ключ".encode(), "значение 𝄞 \u2028".encode(), None, NOW),
    (b"control", b"\x01\x1f\x7f", None, NOW),
    (b"json", b'{"a": 1, "headers": [], "metadata": {}}', None, NOW),
    (b"null", b"null", None, NOW),
    (b"headers", b"v", [("a", b"1"), ("a", b"2"), ("", b""), ("null", None), ("binary", b"\xff\x00\xfe")], NOW),
    (b"header texts", b"v", [("q", b'"]}\\'), ("u", "ж".encode())], 86_400_000),
    (b"large", bytes(range(32, 127)) * 9_700, None, NOW),
]
LINE_BREAKS: list[Any] = [(b"a\nb", b"line\nbreak\r\n", [("h", b"\n")], NOW)]
BINARY_RECORDS: list[Any] = [
    (bytes(range(256)), bytes(range(255, -1, -1)), [("b", bytes(range(256)))], NOW),
    (b"\x00", b"\x00", None, NOW),
    (b"\xff\xfe", b"\xc3\x28", None, NOW - 1),
]


def fill(world: World, records: list[Any], partitions: int = 2) -> None:
    """Every kind of record in each partition, with a committed and an aborted transaction among them."""
    world.kafka.create_topic(world.topic, partitions, {"max.message.bytes": "2000000"})
    for partition in range(partitions):
        world.kafka.produce(world.topic, records, partition)
        for number, commits in enumerate((True, False)):
            producer = Producer(
                {
                    "bootstrap.servers": world.kafka.bootstrap,
                    "transactional.id": f"{world.topic}-{partition}-{number}",
                    "log_level": 0,
                }
            )
            producer.init_transactions(PATIENCE)
            producer.begin_transaction()
            for n in range(10):
                producer.produce(world.topic, f"in transaction {n}", b"t", partition, timestamp=NOW + n)
            assert producer.flush(PATIENCE) == 0
            if commits:
                producer.commit_transaction(PATIENCE)
            else:
                producer.abort_transaction(PATIENCE)
        world.kafka.produce(world.topic, records[:3], partition)


def restoring(world: World, driver: Driver, kafka: Admin, **options: Any) -> Restore:
    sink = driver.sink
    retries = sink.spec.errors.request_retries
    bucket = open_bucket(sink.spec.destination, driver.secrets, RetryPolicy(retries.max, retries.backoff))
    ledger = Ledger(bucket, ".s3sink/default/sink", Owner(LOCAL_CLUSTER, "default", "sink"), conditional=True)
    access = KafkaAccess(world.spark, kafka, connection(sink.spec.source, driver.secrets))
    return Restore(sink, driver.secrets, bucket, ledger, access, RestoreOptions(**options))


def restore(world: World, driver: Driver, *, dry_run: bool = False, **options: Any) -> RestoreReport:
    options.setdefault("targets", {world.topic: f"{world.topic}-restored"})
    with closing(Admin(world.spark._jvm, connection(driver.sink.spec.source, driver.secrets))) as admin:
        return restoring(world, driver, admin, **options).run(dry_run=dry_run)


def contents(messages: list[Message]) -> list[Message]:
    """Without offsets, in order of partitions and offsets: those of a restore differ."""
    return [replace(message, offset=0) for message in messages]


def restored(world: World) -> list[Message]:
    return contents(world.messages(f"{world.topic}-restored"))
