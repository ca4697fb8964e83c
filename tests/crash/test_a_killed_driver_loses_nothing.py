"""`kill -9` at every step of the protocol. Each driver resumes where the one before died, and dies at a later step."""

from __future__ import annotations

import pytest

from tests.crash.conftest import MakeSink
from tests.crash.harness import (
    BATCH,
    BATCH_OBJECTS,
    COMPLETE,
    CREATE,
    MANIFEST,
    PART,
    PARTITIONS,
    PER_OBJECT,
    SWAP,
    in_formats,
)
from tools.parts.proxy import Refuse
from tools.parts.registry import SchemaRegistry

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("format", in_formats("Parquet"))
def test_a_driver_killed_at_any_step_is_resumed_by_the_next(
    make_sink: MakeSink, registry: SchemaRegistry, format: str
) -> None:
    """Lines are of JSON records, columns of Avro records, whose schemas each driver has to request again."""
    sink = make_sink(
        format=format,
        input="Avro" if format == "Parquet" else "Json",
        registry=registry if format == "Parquet" else None,
        spec={"source": {"startingOffsets": {"position": "Latest"}}},
    )
    sink.produce()
    start = BATCH // PARTITIONS

    # The first swap takes over the sink, the second stores the starting offsets: now `Latest` is an offset.
    sink.crash(SWAP, skip=1, arrives=True)
    sink.produce()

    sink.crash(CREATE)
    assert sink.reader.lines() == []
    sink.produce()

    sink.crash(PART, skip=BATCH_OBJECTS // 2, whole=False)
    sink.produce()

    sink.crash(MANIFEST)
    sink.crash(SWAP, skip=1)
    assert sink.state()["flush"] == 0
    assert sink.reader.lines() == []

    sink.crash(SWAP, skip=1, arrives=True)
    assert sink.state()["publishing"]
    assert sink.reader.lines() == []

    # The next driver finds a committed flush and publishes it: no Spark job is needed for that.
    others = sink.proxy.on(COMPLETE, Refuse(), skip=2)
    sink.crash(COMPLETE, skip=1, arrives=True)
    sink.proxy.remove(others)
    assert 0 < len(sink.reader.lines()) <= 2 * PER_OBJECT
    # All is published, but not marked as published.
    sink.crash(SWAP, skip=1)
    assert len(sink.reader.lines()) > 2 * PER_OBJECT
    assert sink.state()["publishing"]

    sink.produce()
    sink.drain()
    assert sink.state()["publishing"] is None
    assert sink.state()["epoch"] == 9
    sink.prove(start)


@pytest.mark.long
def test_a_killed_driver_with_a_filter_keeps_and_counts_each_record_once(make_sink: MakeSink) -> None:
    transform = {"where": "id % 3 = 0", "select": ["id", "upper(text) AS text"]}
    sink = make_sink(format="Parquet", every=3, spec={"transform": transform})
    sink.produce()

    sink.crash(PART, whole=False)
    sink.crash(MANIFEST)
    sink.crash(SWAP, skip=1)
    assert sink.reader.lines() == []
    sink.produce()

    sink.crash(SWAP, skip=1, arrives=True)
    assert sink.state()["publishing"]
    sink.crash(COMPLETE, arrives=True)
    sink.produce()

    sink.drain()
    assert sink.state()["filtered"] == sink.end * PARTITIONS * 2 // 3
    sink.prove()


@pytest.mark.parametrize("format", in_formats("Json"))
def test_a_driver_killed_during_a_reset_never_resets_twice(make_sink: MakeSink, format: str) -> None:
    sink = make_sink(format=format)
    sink.produce()
    sink.crash(COMPLETE)
    assert sink.state()["publishing"]
    sink.change(reset={"nonce": "again", "to": {"position": "Latest"}})

    # The committed flush is published, and marked so, before the reset.
    sink.crash(SWAP, skip=1)
    assert (sink.state()["resets"], bool(sink.state()["publishing"])) == ([], True)
    assert len(sink.reader.lines()) == BATCH

    sink.crash(SWAP, skip=2)
    assert (sink.state()["resets"], sink.state()["publishing"]) == ([], None)

    sink.crash(SWAP, skip=1, arrives=True)
    assert [done["nonce"] for done in sink.state()["resets"]] == ["again"]
    assert sink.state()["publishing"] is None

    sink.produce()
    sink.drain()
    assert sink.state()["topics"][sink.topic]["generation"] == 2
    assert sink.state()["topics"][sink.topic]["partitions"]["0"]["start"] == BATCH // PARTITIONS
    sink.prove()
