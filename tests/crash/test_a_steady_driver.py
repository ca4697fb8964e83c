"""A driver that is not killed: it survives faults of the store, costs nothing when idle, and ends on a signal.

The tests share one sink, and one driver while it lives: a start takes longer than all the rest.
"""

from __future__ import annotations

import json
import re
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.crash.harness import (
    BATCH_OBJECTS,
    COMPLETE,
    CREATE,
    MANIFEST,
    PART,
    PARTITIONS,
    PER_OBJECT,
    PREFIX,
    READ_BACK,
    SWAP,
    Sink,
    in_formats,
)
from tests.crash.processes import SinkProcess
from tools.parts.cli_process import CliProcess
from tools.parts.kafka import KafkaBroker
from tools.parts.proxy import Call, DropResponse, FaultProxy, Late, Logged, Predicate, Refuse, Request, Status
from tools.parts.s3 import S3Server

pytestmark = [pytest.mark.crash, pytest.mark.slow]


@dataclass
class Steady:
    sink: Sink
    _driver: SinkProcess | None = None

    def driver(self, *arguments: str) -> SinkProcess:
        """The running driver, or a new one, with nothing left to do."""
        self.sink.proxy.clear()
        if self._driver is None or not self._driver.alive:
            self._driver = self.sink.start(*arguments)
        self.sink.settle(self._driver)
        return self._driver


@pytest.fixture(scope="module", params=in_formats("Json"))
def steady(
    request: pytest.FixtureRequest,
    kafka: KafkaBroker,
    s3: S3Server,
    s3sink: CliProcess,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Steady]:
    folder = tmp_path_factory.mktemp("steady")
    with FaultProxy("127.0.0.1", s3.port) as proxy:
        name = f"steady-{proxy.port}"
        sink = Sink(kafka, s3, proxy, s3sink, s3.create_bucket(name), name, folder, format=request.param)
        sink.produce()
        yield Steady(sink)
        sink.close()


STEPS = {"create": CREATE, "part": PART, "manifest": MANIFEST, "swap": SWAP, "complete": COMPLETE}


def steps(requests: list[Logged]) -> Counter[str]:
    """Requests by their step of the protocol; others by method and path."""
    named = []
    for r in requests:
        request = Request(r.method, r.path, r.query, {})
        named.append(next((n for n, matches in STEPS.items() if matches(request)), f"{r.method} {r.path}?{r.query}"))
    return Counter(named)


def flush_count(driver: SinkProcess) -> int:
    (listening,) = driver.logged("listening")
    with urllib.request.urlopen(listening["status"].replace("/status", "/metrics"), timeout=10) as answer:
        found = re.findall(r"^s3sink_flush_duration_seconds_count\S* (\S+)$", answer.read().decode(), re.M)
    return int(float(found[0]))


def test_an_idle_driver_sends_no_request_and_runs_no_job(steady: Steady) -> None:
    driver = steady.driver()
    before, flushes = {w.pid: w.ticks for w in driver.workers}, flush_count(driver)
    assert before
    steady.sink.proxy.clear()
    time.sleep(5)
    assert steady.sink.proxy.requests == []
    assert flush_count(driver) == flushes
    # Every job runs in a Python worker: idle workers used no CPU time.
    assert all(w.ticks - before[w.pid] <= 1 for w in driver.workers)


def test_a_flush_sends_three_requests_per_object_and_three_more(steady: Steady) -> None:
    driver = steady.driver()
    steady.sink.produce_at_once(driver)
    steady.sink.settle(driver)
    time.sleep(1)
    objects = BATCH_OBJECTS
    wanted = {"create": objects, "part": objects, "complete": objects, "manifest": 1, "swap": 1 + 1}
    assert steps(steady.sink.proxy.requests) == wanted


def test_under_load_each_flush_is_marked_as_published_at_once(steady: Steady) -> None:
    """Readers may delete what they have loaded, so the next flush's swap would be too late."""
    driver = steady.driver()
    # The second batch comes during the first flush.
    steady.sink.proxy.on(MANIFEST, Call(before=lambda _: steady.sink.produce()), times=1)
    steady.sink.produce_at_once(driver)
    steady.sink.settle(driver)
    time.sleep(1)
    done = steps(steady.sink.proxy.requests)
    assert (done["manifest"], done["swap"], done["complete"]) == (2, 2 * 2, 2 * BATCH_OBJECTS)


def status(driver: SinkProcess) -> dict[str, Any]:
    (listening,) = driver.logged("listening")
    with urllib.request.urlopen(listening["status"], timeout=10) as answer:
        report: dict[str, Any] = json.load(answer)
    return report


@pytest.mark.parametrize("step", [PART, COMPLETE], ids=["write", "publish"])
def test_a_flush_that_keeps_failing_on_one_object_names_it_in_status(steady: Steady, step: Predicate) -> None:
    driver = steady.driver()
    key = f"{PREFIX}/{steady.sink.topic}/1/{steady.sink.end:019}."
    rule = steady.sink.proxy.on(lambda request: step(request) and key in request.path, Refuse())
    steady.sink.produce_at_once(driver)
    driver.until(lambda: status(driver)["retry"]["attempts"] >= 2, "the flush to fail again")
    report = status(driver)
    said = {one["type"]: one["message"] for one in report["conditions"]}
    assert key in report["retry"]["lastError"]
    assert key in said["LastFlushSucceeded"]
    steady.sink.proxy.remove(rule)
    steady.sink.settle(driver)
    driver.until(lambda: status(driver)["retry"]["attempts"] == 0, "the failures to be over")
    steady.sink.check_exactly_once()


def lost_answers(sink: Sink) -> None:
    sink.proxy.on(SWAP, DropResponse(), times=2)


def swaps_that_never_arrive(sink: Sink) -> None:
    sink.proxy.on(SWAP, Refuse(), times=3)


def everything_fails_now_and_then(sink: Sink) -> None:
    for step in STEPS.values():
        sink.proxy.on(step, Status(503, "SlowDown"), times=2)
        sink.proxy.on(step, DropResponse(), times=1, skip=2)
        sink.proxy.on(step, Refuse(), times=1, skip=4)


def everything_arrives_late(sink: Sink) -> None:
    """By then the retry has been answered."""
    for step in STEPS.values():
        sink.proxy.on(step, Late(1), times=2)


FAULTS = [lost_answers, swaps_that_never_arrive, everything_fails_now_and_then, everything_arrives_late]


@pytest.mark.parametrize("faults", FAULTS)
def test_one_flush_survives_every_kind_of_store_fault(steady: Steady, faults: Callable[[Sink], None]) -> None:
    sink, driver = steady.sink, steady.driver()
    before = sink.state()
    faults(sink)
    sink.produce_at_once(driver)
    sink.settle(driver)
    after = sink.state()
    assert after["epoch"] == before["epoch"]
    assert after["flush"] == before["flush"] + 1
    assert after["revision"] == before["revision"] + 2, "one swap and one note"
    assert any(r.status is None for r in sink.proxy.requests)
    sink.check_exactly_once()


@pytest.mark.parametrize("took_effect", [True, False])
def test_a_driver_with_an_unknown_commit_outcome_takes_over_again(steady: Steady, took_effect: bool) -> None:
    sink, driver = steady.sink, steady.driver()
    before = sink.state()
    sink.proxy.on(SWAP, DropResponse() if took_effect else Refuse(), times=4)
    sink.proxy.on(READ_BACK, Refuse(), times=16)
    sink.produce_at_once(driver)
    sink.settle(driver)
    after = sink.state()
    assert after["epoch"] > before["epoch"]
    assert after["totals"]["objects"] == before["totals"]["objects"] + BATCH_OBJECTS
    sink.check_exactly_once()


def test_on_sigterm_a_flush_finishes_within_the_grace_period(steady: Steady) -> None:
    sink, driver = steady.sink, steady.driver()
    flush = sink.state()["flush"]

    def stop_here(_: Request) -> None:
        driver.terminate()
        time.sleep(2)

    sink.proxy.on(PART, Call(before=stop_here), times=1)
    sink.produce_at_once(driver)
    assert driver.wait() == 0, driver.tail()
    after = sink.state()
    assert after["flush"] == flush + 1
    sink.check_exactly_once()


def test_a_second_signal_ends_a_driver_at_once_even_if_the_store_hangs(steady: Steady) -> None:
    sink, driver = steady.sink, steady.driver()
    asked: list[float] = []

    def stop_here(_: Request) -> None:
        driver.terminate()
        time.sleep(1)
        assert driver.alive
        driver.terminate()
        asked.append(time.monotonic())
        time.sleep(20)

    sink.proxy.on(COMPLETE, Call(before=stop_here, then=Refuse()), times=1)
    sink.produce_at_once(driver)
    assert driver.wait() == 0, driver.tail()
    assert time.monotonic() - asked[0] < 10, driver.tail()
    assert sink.state()["publishing"]
    sink.check_nothing_twice()


@pytest.mark.timeout(400)
def test_ctrl_c_abandons_a_slow_flush_and_the_next_driver_writes_it(steady: Steady) -> None:
    grace = 8.0
    sink, driver = steady.sink, steady.driver("--grace", str(grace))
    before = sink.state()
    asked: list[float] = []

    def stop_here(_: Request) -> None:
        asked.append(time.monotonic())
        driver.interrupt()
        time.sleep(3 * grace)

    sink.proxy.on(PART, Call(before=stop_here), times=1)
    sink.produce_at_once(driver)
    assert driver.wait() == 0, driver.tail()
    assert time.monotonic() - asked[0] < grace, driver.tail()
    assert sink.state() == before
    sink.check_nothing_twice()

    sink.produce(PARTITIONS * PER_OBJECT)
    sink.drain()
    sink.prove()
