"""The schema registry dies while a driver runs, and comes back without its data."""

from __future__ import annotations

import pytest

from tests.crash.conftest import MakeSink
from tests.crash.harness import BATCH
from tests.crash.records import TypedRecords
from tools.parts.registry import SchemaRegistry

pytestmark = [pytest.mark.crash, pytest.mark.slow]


def test_records_wait_for_a_killed_registry_and_none_is_skipped(make_sink: MakeSink) -> None:
    with SchemaRegistry() as registry:
        sink = make_sink(input="Avro", registry=registry, spec={"errors": {"records": "Skip"}})
        records = sink.records
        assert isinstance(records, TypedRecords)
        records.versions = [0]
        sink.produce()
        driver = sink.start()
        sink.settle(driver)

        registry.kill()
        sink.produce()
        # The driver has this schema.
        sink.settle(driver)

        records.versions = [0, 1]
        sink.produce()
        driver.until(lambda: driver.logged("slice failed"), "a request to the registry")
        assert {line["reason"] for line in driver.logged("slice failed")} == {"RegistryUnavailable"}
        sink.check_nothing_twice()
        assert len(sink.reader.lines()) == 2 * BATCH

        # An id is unknown until its schema is registered again: the driver must not see the registry before that.
        driver.pause()
        registry.start()
        assert records.register() == records.ids
        driver.resume()
        sink.settle(driver)
        assert sink.state()["epoch"] == 1
        driver.terminate()
        assert driver.wait() == 0, driver.tail()
        sink.prove()
