"""`kill -9` of `s3sink restore` at random moments. In the end the topic has each record once, in order."""

from __future__ import annotations

import json
import random
import time
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.crash.conftest import MakeSink
from tests.crash.harness import PARTITIONS, Sink
from tests.harness import Message, consume_whole

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(900)]

PER_PARTITION = 3_000
LENGTH = 1_000
RATE = "60Ki"
"""Sending would take more than a minute."""


def backed_up(make_sink: MakeSink) -> Sink:
    sink = make_sink(format="Parquet")
    sink.change(
        source={"key": {"format": "Bytes"}, "value": {"format": "Bytes"}},
        format={"type": "Parquet", "compression": {"codec": "Zstd"}, "columns": {"meta": "Kafka"}},
        flush={"records": 1_500, "interval": "1s"},
        spark={"driver": {"cores": 2}},
    )
    for partition in range(PARTITIONS):
        values = [f"{partition} {n} ".encode().ljust(LENGTH, b".") for n in range(PER_PARTITION)]
        records = [(b"k%d" % (n % 7), value, [("n", b"%d" % n)], 1_000 + n) for n, value in enumerate(values)]
        sink.kafka.produce(sink.topic, records, partition)
    sink.s3sink("run", "--once", "-f", str(sink.manifest))
    return sink


def contents(sink: Sink, topic: str) -> list[Message]:
    return [replace(message, offset=0) for message in consume_whole(sink.kafka.bootstrap, topic)]


@pytest.mark.parametrize("kills", [1, pytest.param(10, marks=pytest.mark.long)])
def test_a_restore_killed_at_random_moments_sends_each_record_once_and_in_order(
    make_sink: MakeSink, kills: int
) -> None:
    sink, chance = backed_up(make_sink), random.Random(kills)
    target = f"{sink.topic}-restored"
    arguments = ("restore", "--to-topic", target)
    for kill in range(kills):
        process = sink.command(*arguments, "--rate", RATE)
        if kill == 0:
            process.until(lambda: _sent(sink, target), "the first records to be sent")
        time.sleep(chance.uniform(0, 1 if kill == 0 else 12))
        assert process.alive, process.tail()
        if kill % 2:
            # Its JVM goes on for a moment, maybe while the next try begins.
            process.kill_driver()
        else:
            process.kill()
    report = json.loads(sink.s3sink(*arguments, "-f", str(sink.manifest), "--json"))
    assert report["ok"], report
    assert 0 < report["sent_before"] < report["records"] == PARTITIONS * PER_PARTITION
    assert contents(sink, target) == contents(sink, sink.topic)
    assert len(contents(sink, target)) == PARTITIONS * PER_PARTITION


def _sent(sink: Sink, topic: str) -> bool:
    if topic not in sink.kafka.admin.list_topics(timeout=10).topics:
        return False
    consumer = Consumer({"bootstrap.servers": sink.kafka.bootstrap, "group.id": "watching", "log_level": 0})
    try:
        ends = [consumer.get_watermark_offsets(TopicPartition(topic, p), 10)[1] for p in range(PARTITIONS)]
    finally:
        consumer.close()
    # A transaction has about a second's worth of them: at least one is committed.
    return max(ends) > 50
