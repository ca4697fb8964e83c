"""A topic with every kind of record, and restores of it in this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import pytest
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

NOW = 1_700_000_000_000
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


@contextmanager
def restoring(world: World, driver: Driver, **options: Any) -> Iterator[Restore]:
    sink, properties = driver.sink, connection(driver.sink.spec.source, driver.secrets)
    retries = sink.spec.errors.request_retries
    bucket = open_bucket(sink.spec.destination, driver.secrets, RetryPolicy(retries.max, retries.backoff))
    ledger = Ledger(bucket, ".s3sink/default/sink", Owner(LOCAL_CLUSTER, "default", "sink"), conditional=True)
    options.setdefault("targets", {world.topic: f"{world.topic}-restored"})
    with closing(Admin(world.spark._jvm, properties)) as admin:
        access = KafkaAccess(world.spark, admin, properties)
        yield Restore(sink, driver.secrets, bucket, ledger, access, RestoreOptions(**options))


def restore(world: World, driver: Driver, *, dry_run: bool = False, **options: Any) -> RestoreReport:
    with restoring(world, driver, **options) as work:
        return work.run(dry_run=dry_run)


class BrokenOff(Exception):
    pass


def unfinished(world: World, driver: Driver, *, after: int, **options: Any) -> int:
    """Breaks a restore off once that many rows more are sent, or at the end of a chunk after it. Returns the rows."""
    seen: list[int] = []

    def see(sent: int, rows: int) -> None:
        seen.append(sent)
        if sent - seen[0] >= after:
            raise BrokenOff

    with restoring(world, driver, **options) as work:
        work.on_progress = see
        with pytest.raises(BrokenOff):
            work.run()
    return seen[-1]


def contents(messages: list[Message]) -> list[Message]:
    """Without offsets, in order of partitions and offsets: those of a restore differ."""
    return [replace(message, offset=0) for message in messages]


def restored(world: World) -> list[Message]:
    return contents(world.messages(f"{world.topic}-restored"))
