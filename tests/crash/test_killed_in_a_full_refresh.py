"""`kill -9` between any two steps of a full refresh: one whole generation is there, and the next pod goes on."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, NamedTuple

import pytest

from tests.crash.conftest import MakeSink
from tests.crash.harness import BATCH, BATCH_OBJECTS, COMPLETE, MANIFEST, PART, PARTITIONS, PREFIX, SWAP, Sink
from tests.crash.reader import IndependentReader, places
from tools.parts.proxy import Call, Predicate, Refuse, Request, request_is

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(900)]

POINTER = request_is("PUT", r"/_current\.json$")
DELETE = request_is("DELETE", f"/{PREFIX}/")
PER_PARTITION = BATCH // PARTITIONS


class Kill(NamedTuple):
    step: Predicate
    skip: int
    arrives: bool
    phase: str
    """What the state says afterwards."""


# The first swap of a driver takes over.
BEGIN = Kill(SWAP, 1, False, "")
BEGUN = Kill(SWAP, 1, True, "Writing")
WRITES = Kill(PART, BATCH_OBJECTS // 2, True, "Writing")
MANIFEST_IS_THERE = Kill(MANIFEST, 0, True, "Writing")
COMMITTED = Kill(SWAP, 1, True, "Writing")
ALL_WRITTEN = Kill(SWAP, 1, False, "Writing")
PUBLISHES = Kill(COMPLETE, BATCH_OBJECTS, True, "Publishing")
PUBLISHED = Kill(SWAP, 1, False, "Publishing")
NOT_YET_CURRENT = Kill(SWAP, 2, False, "Publishing")
CURRENT = Kill(SWAP, 2, True, "Removing")
POINTER_IS_THERE = Kill(POINTER, 0, True, "Removing")
REMOVES = Kill(DELETE, BATCH_OBJECTS // 2, True, "Removing")
REMOVED = Kill(SWAP, 1, False, "Removing")
NOT_YET_DONE = Kill(SWAP, 2, False, "Removing")

SAMPLE = (COMMITTED, PUBLISHES, CURRENT, REMOVES)
ALL = (
    *(BEGIN, BEGUN, WRITES, MANIFEST_IS_THERE, COMMITTED, ALL_WRITTEN, PUBLISHES, PUBLISHED, NOT_YET_CURRENT),
    *(CURRENT._replace(skip=1), POINTER_IS_THERE, REMOVES, REMOVED, NOT_YET_DONE),
)


def crash(sink: Sink, kill: Kill) -> None:
    process = sink.start("--run-id", "job-1")

    def die(_: Request) -> None:
        process.kill()

    action = Call(after=die) if kill.arrives else Call(before=die, then=Refuse())
    rule = sink.proxy.on(kill.step, action, times=1, skip=kill.skip)
    assert process.wait() < 0, f"it ended by itself:\n{process.tail()}"
    sink.proxy.remove(rule)
    assert phase(sink) == kill.phase, process.tail()


def phase(sink: Sink) -> str:
    found: dict[str, Any] = sink.state().get("refresh", {})
    return str(found.get("phase", ""))


def rows(sink: Sink, *, new: bool) -> Counter[Any]:
    """What a reader finds of the former generation, or of the new one."""
    reader = IndependentReader(sink.client, sink.bucket, f"{PREFIX}/{sink.topic}/")
    keys = [key for key in reader._objects() if ("-g2." in key) == new]
    return places(line for key in keys for line in reader._read(key))


def expected(sink: Sink, below: int) -> Counter[Any]:
    return Counter((at, json.loads(value)["id"]) for at, value in sink.in_kafka().items() if at[1] < below)


def check_one_whole_generation(sink: Sink) -> None:
    if phase(sink) in {"Removing", "Done"}:
        assert rows(sink, new=True) == expected(sink, 2 * PER_PARTITION)
    else:
        assert rows(sink, new=False) == expected(sink, PER_PARTITION)
    if phase(sink) in {"", "Writing"}:
        assert not rows(sink, new=True), "nothing shows before everything is written"


@pytest.mark.parametrize("kills", [SAMPLE, pytest.param(ALL, marks=pytest.mark.long)], ids=["some", "all"])
def test_a_full_refresh_killed_between_its_steps_leaves_one_whole_generation(
    make_sink: MakeSink, kills: tuple[Kill, ...]
) -> None:
    sink = make_sink(format="Json")
    sink.produce()
    sink.drain()
    sink.change(run="Once", mode="FullRefresh")
    sink.produce()

    for kill in kills:
        if kill is COMMITTED and kills is SAMPLE:
            kill = kill._replace(skip=2)  # the run has not begun yet
        crash(sink, kill)
        check_one_whole_generation(sink)
        if phase(sink) == "Writing" and sink.end == 2 * PER_PARTITION:
            sink.produce()  # above the end of the run
    process = sink.start("--run-id", "job-1")
    assert process.wait() == 0, process.tail()

    assert phase(sink) == "Done"
    assert not rows(sink, new=False)
    check_one_whole_generation(sink)
    report = json.loads(sink.s3sink("verify", "-f", str(sink.manifest), "--json"))
    found = {name: report[name] for name in ("ok", "records", "missing", "duplicates", "unlisted")}
    assert found == {"ok": True, "records": 2 * BATCH, "missing": 0, "duplicates": 0, "unlisted": 0}, report
    pointer = json.loads(sink.client.get_object(Bucket=sink.bucket, Key=f"{PREFIX}/_current.json")["Body"].read())
    assert (pointer["run"], pointer["records"]) == ("job-1", 2 * BATCH)
