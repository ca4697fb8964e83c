"""`kill -9` of `s3sink replay` at every step. Each dead letter is in the output once, and the sink goes on."""

from __future__ import annotations

import json

import pytest

from tests.crash.conftest import MakeSink
from tests.crash.harness import BATCH, COMPLETE, MANIFEST, PART, PARTITIONS, SWAP, Sink
from tools.parts.proxy import Call, Predicate, Refuse

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(600)]

BAD = b'{"id": 0, "_offset": 1}'
"""It has a field that the sink adds itself."""
PER_PARTITION = 3


def kill_replay_at(sink: Sink, step: Predicate, *, arrives: bool = False, skip: int = 0) -> None:
    process = sink.command("replay")
    action = Call(after=lambda _: process.kill()) if arrives else Call(before=lambda _: process.kill(), then=Refuse())
    rule = sink.proxy.on(step, action, times=1, skip=skip)
    assert process.wait() < 0, f"it ended by itself:\n{process.tail()}"
    assert rule.hits == 1
    sink.proxy.remove(rule)


def written(sink: Sink) -> int:
    return sum(line == BAD.decode() for line in sink.reader.lines())


def test_a_replay_killed_at_any_step_goes_on_and_writes_nothing_twice(make_sink: MakeSink) -> None:
    sink = make_sink(format="Json")
    sink.change(errors={"records": "DeadLetter", "deadLetter": {"prefix": "_dead_letter"}})
    sink.produce()
    for partition in range(PARTITIONS):
        sink.kafka.produce(sink.topic, [(b"key", BAD, None, None)] * PER_PARTITION, partition)
    sink.drain()
    state = sink.state()
    sink.change(format={"columns": {"meta": "None"}})

    for step in (PART, MANIFEST):
        kill_replay_at(sink, step)
    # The first swap takes over, the second one commits.
    kill_replay_at(sink, SWAP, skip=1)
    assert written(sink) == 0
    # Committed: the object of one partition is completed, the other one is not.
    kill_replay_at(sink, SWAP, skip=1, arrives=True)
    kill_replay_at(sink, COMPLETE, arrives=True)
    kill_replay_at(sink, SWAP, skip=1)
    assert written(sink) == PARTITIONS * PER_PARTITION, "published, and not marked as published"
    assert "no dead letters to replay" in sink.s3sink("replay", "-f", str(sink.manifest))

    assert written(sink) == PARTITIONS * PER_PARTITION
    assert sink.state() == state, "the sink's own state is as before"
    report = json.loads(sink.s3sink("verify", "-f", str(sink.manifest), "--json"))
    bad = PARTITIONS * PER_PARTITION
    assert (report["ok"], report["records"], report["replayed"]) == (True, BATCH + bad, bad), report
