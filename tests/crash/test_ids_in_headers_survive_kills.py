"""Records with ids of schemas in front and in headers. A slice of JSON with both is read twice, by every new driver."""

from __future__ import annotations

import pytest

from tests.crash.conftest import MakeSink
from tests.crash.harness import BATCH_OBJECTS, COMPLETE, PART, SWAP
from tests.crash.processes import kill
from tests.crash.records import TYPED
from tools.parts.proxy import Call, Refuse
from tools.parts.registry import SchemaRegistry

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(600)]
INPUTS = [pytest.param(kind, marks=[] if kind == "JsonSchema" else pytest.mark.long) for kind in TYPED]


@pytest.mark.parametrize("input", INPUTS)
def test_killed_drivers_and_workers_lose_no_record_with_its_id_in_a_header(
    make_sink: MakeSink, registry: SchemaRegistry, input: str
) -> None:
    sink = make_sink(format="Parquet", input=input, registry=registry, in_headers=True)
    sink.produce()
    sink.crash(PART, skip=BATCH_OBJECTS // 2, whole=False)
    assert sink.reader.lines() == []
    sink.produce()
    sink.crash(SWAP, skip=1, arrives=True)
    assert sink.state()["publishing"]

    others = sink.proxy.on(COMPLETE, Refuse(), skip=2)
    sink.crash(COMPLETE, skip=1, arrives=True)
    sink.proxy.remove(others)

    driver = sink.start()
    sink.settle(driver)
    before = sink.state()["flush"]
    killing = sink.proxy.on(PART, Call(before=lambda _: kill(driver.workers), then=Refuse()), times=1, skip=2)
    sink.produce()
    sink.settle(driver)
    assert (killing.hits, sink.state()["flush"] > before) == (1, True)
    driver.terminate()
    assert driver.wait() == 0, driver.tail()
    sink.prove()
