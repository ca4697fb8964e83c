"""`kill -9` in a run that has an end, with dead letters below a prefix: the same end, and nothing twice."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.crash.conftest import MakeSink
from tests.crash.harness import BATCH, PARTITIONS, PREFIX, SWAP, Sink
from tests.crash.reader import IndependentReader, places
from tools.parts.proxy import Refuse, request_is

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(600)]

LETTERS = "_dead_letter"
COMPLETE_LETTERS = request_is("POST", f"/{LETTERS}/", r"\buploadId=")
BAD = b'{"id": 0, "_offset": 1}'
"""It has a field that the sink adds itself."""
EVERY, GOOD = BATCH // PARTITIONS + 3, BATCH // PARTITIONS
"""Records of each partition below the end, and those of them that are not bad."""


def committed(sink: Sink) -> list[int]:
    partitions = sink.state()["topics"][sink.topic]["partitions"]
    return [partitions[str(number)]["offset"] for number in range(PARTITIONS)]


def test_a_bounded_run_killed_in_the_middle_ends_at_the_same_end_with_nothing_twice(make_sink: MakeSink) -> None:
    errors = {"records": "DeadLetter", "deadLetter": {"prefix": LETTERS, "format": "Parquet"}}
    sink = make_sink(format="Json", spec={"run": "Once", "errors": errors})
    sink.change(source={"endingOffsets": {"position": "Latest"}})
    letters = IndependentReader(sink.client, sink.bucket, f"{LETTERS}/")
    sink.produce()
    for partition in range(PARTITIONS):
        sink.kafka.produce(sink.topic, [(b"key", BAD, None, None)] * 3, partition)

    # The end is fixed. One partition is committed and not published, nothing of the other is written.
    other = sink.proxy.on(request_is("PUT", f"/{PREFIX}/{sink.topic}/1/", r"\bpartNumber="), Refuse())
    sink.crash(SWAP, skip=2, arrives=True)
    sink.proxy.remove(other)
    assert committed(sink) == [EVERY, 0]
    assert (sink.reader.lines(), letters.lines()) == ([], [])
    # What arrives now is above the end.
    sink.produce()
    # The dead letters of the first are published, but not marked so. The other partition is left.
    sink.crash(COMPLETE_LETTERS, arrives=True)
    assert (len(letters.lines()), committed(sink)) == (3, [EVERY, 0])
    # All is written and published. What is left is to note that the run is complete.
    sink.crash(SWAP, skip=4)
    assert (committed(sink), bool(sink.state()["end"])) == ([EVERY] * PARTITIONS, True)
    sink.produce()
    sink.drain()

    assert (committed(sink), "end" in sink.state()) == ([EVERY] * PARTITIONS, False)
    rows = [json.loads(line) for line in letters.lines()]
    bad = [(partition, GOOD + n) for partition in range(PARTITIONS) for n in range(3)]
    assert Counter((row["partition"], row["offset"]) for row in rows) == Counter(bad)
    below = {at: json.loads(value)["id"] for at, value in sink.in_kafka().items() if at[1] < GOOD}
    assert places(sink.reader.lines()) == Counter(below.items())
    report = json.loads(sink.s3sink("verify", "-f", str(sink.manifest), "--json"))
    assert (report["ok"], report["records"], report["deadLettered"]) == (True, BATCH, 3 * PARTITIONS), report
