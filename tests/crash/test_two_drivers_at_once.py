"""A driver freezes, another takes over, and then the first one resumes where it was."""

from __future__ import annotations

import pytest

from tests.crash.conftest import MakeSink
from tests.crash.harness import BATCH, COMPLETE, MANIFEST, PART, SWAP, in_formats
from tests.crash.processes import SinkProcess
from tools.parts.registry import SchemaRegistry

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(600)]

FENCED = 3


@pytest.mark.parametrize("format", in_formats("Json"))
def test_a_frozen_driver_that_was_replaced_writes_nothing(
    make_sink: MakeSink, registry: SchemaRegistry, format: str
) -> None:
    sink = make_sink(format=format, input="JsonSchema", registry=registry)
    sink.produce()
    driver: SinkProcess = sink.start()
    for epoch, (step, skip) in enumerate(
        [(PART, 2), (MANIFEST, 0), (SWAP, 0), (COMPLETE, 1)],
        start=2,
    ):
        with sink.frozen(driver, step, skip=skip):
            state = sink.state()
            assert state["epoch"] == epoch - 1
            assert bool(state["publishing"]) == (step is COMPLETE)
            successor = sink.start()
            sink.produce()
            sink.settle(successor)
            assert sink.state()["epoch"] == epoch
            sink.check_exactly_once()
            before = sink.state()
        assert driver.wait() == FENCED, driver.tail()
        assert driver.logged("another driver of this sink took over"), driver.tail()
        assert sink.state() == before
        sink.check_exactly_once()
        driver = successor
        if step is not COMPLETE:
            sink.produce()
    assert driver.alive
    driver.terminate()
    assert driver.wait() == 0, driver.tail()
    assert len(sink.reader.lines()) == 8 * BATCH

    sink.produce()
    racing = [sink.start("--once") for _ in range(2)]
    codes = sorted(process.wait() for process in racing)
    assert codes in ([0, 0], [0, FENCED]), "\n".join(process.tail() for process in racing)
    sink.prove()
