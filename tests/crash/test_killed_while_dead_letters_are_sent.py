"""`kill -9` around the transaction of dead letters. Each is in the topic once, for readers of committed records."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.crash.conftest import MakeSink
from tests.crash.harness import BATCH, PARTITIONS, SWAP
from tests.harness import consume_whole
from tools.parts.proxy import request_is

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(600)]

READ_STAGED = request_is("GET", r"/letters/[^?]+\.parquet$")
BAD = b'{"id": 0, "_offset": 1}'
"""It has a field that the sink adds itself."""


def test_a_driver_killed_around_the_transaction_sends_each_dead_letter_once(make_sink: MakeSink) -> None:
    sink = make_sink(format="Json")
    letters = f"{sink.topic}-dlq"
    sink.change(errors={"records": "DeadLetter", "deadLetter": {"topic": letters, "replicationFactor": 1}})
    sink.produce()
    for partition in range(PARTITIONS):
        sink.kafka.produce(sink.topic, [(b"key", BAD, None, None)] * 3, partition)
    sink.end += 3

    # Committed, and nothing of it is sent.
    sink.crash(SWAP, skip=2, arrives=True)
    assert consume_whole(sink.kafka.bootstrap, letters) == []
    # Within the transaction.
    sink.crash(READ_STAGED)
    assert consume_whole(sink.kafka.bootstrap, letters) == []
    # Sent, but not marked as published.
    sink.crash(SWAP, skip=1)
    assert sink.state()["publishing"]
    sink.drain()

    sent = [dict(message.headers) for message in consume_whole(sink.kafka.bootstrap, letters)]
    names = ("__connect.errors.partition", "__connect.errors.offset")
    places = Counter(tuple(int(headers[name] or b"") for name in names) for headers in sent)
    start = BATCH // PARTITIONS
    assert places == Counter((partition, start + n) for partition in range(PARTITIONS) for n in range(3))
    assert len(sink.reader.lines()) == BATCH
    report = json.loads(sink.s3sink("verify", "-f", str(sink.manifest), "--json"))
    assert (report["ok"], report["records"], report["sent"]) == (True, BATCH, 3 * PARTITIONS), report
    left = sink.client.list_objects_v2(Bucket=sink.bucket, Prefix=".s3sink/default/crashing/letters/")
    assert left["KeyCount"] == 0
