"""Besides the driver there are Spark's JVM and Python workers: here one of those dies."""

from __future__ import annotations

import pytest

from tests.crash.conftest import MakeSink
from tests.crash.harness import BATCH, COMPLETE, PART, PER_OBJECT, in_formats
from tests.crash.processes import Member, kill
from tools.parts.proxy import Call, Refuse, Request
from tools.parts.registry import SchemaRegistry

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("format", in_formats("Parquet"))
def test_a_killed_worker_is_replaced_and_a_killed_jvm_ends_the_driver(
    make_sink: MakeSink, registry: SchemaRegistry, format: str
) -> None:
    """A new worker has no schemas and no decoders of Protobuf: it gets them with its task, or requests them."""
    sink = make_sink(format=format, meta=False, input="Protobuf", registry=registry)
    sink.produce()
    first = sink.start()
    victims: list[Member] = []

    def kill_worker(_: Request) -> None:
        victims.extend(first.workers)
        kill(victims)

    sink.proxy.on(PART, Call(before=kill_worker, then=Refuse()), times=1, skip=2)
    sink.settle(first)
    assert victims
    assert not {v.pid for v in victims} & {w.pid for w in first.workers}
    assert sink.state()["flush"] == 1, "Spark should have retried only the task"
    sink.check_exactly_once()

    writing = sink.proxy.on(PART, Call(before=lambda _: kill(first.java), then=Refuse()), times=1, skip=2)
    sink.produce()
    assert first.wait() == 1, first.tail()
    assert writing.hits == 1
    assert first.logged("the Spark JVM is gone"), first.tail()
    sink.check_nothing_twice()
    assert len(sink.reader.lines()) == BATCH

    second = sink.start()
    # The swap is done, and publishing needs no JVM; the next step does.
    sink.proxy.on(COMPLETE, Call(before=lambda _: kill(second.java)), times=1, skip=1)
    assert second.wait() == 1, second.tail()
    assert second.logged("the Spark JVM is gone"), second.tail()
    sink.check_nothing_twice()
    assert len(sink.reader.lines()) > BATCH

    sink.produce(2 * PER_OBJECT)
    sink.drain()
    assert sink.state()["epoch"] == 3
    sink.prove()
