"""Steps that several scenarios share, and scenarios that also run with a broken driver."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from s3sink_job.base.errors import S3SinkError
from tests.protocol.drivers import RECORDS, ModelDriver
from tests.protocol.proofs import prove_everything_once, prove_level
from tests.protocol.world import Crash, Direct, Fate, World


class First:
    """A fate for the first request whose name begins with `start`; `then` runs just before it."""

    def __init__(self, start: str, fate: Fate = Fate.DONE, then: Callable[[], None] = lambda: None) -> None:
        self.start, self.fate, self.then, self.over = start, fate, then, False

    def __call__(self, name: str, writes: bool) -> Fate:
        if self.over or not name.startswith(self.start):
            return Fate.DONE
        self.over = True
        self.then()
        return self.fate


def commit_and_die(world: World) -> None:
    """A flush is committed, its driver crashes, and its uploads are aborted before the next one starts."""
    world.kafka.logs[0].append(RECORDS, hole=0, bad=world.bad_records != "Skip")
    with suppress(Crash):
        ModelDriver(world, Direct("dies", First("complete", Fate.CRASH_BEFORE))).step()
    assert world.watchdog.history[-1].publishing
    for upload_id in list(world.store.uploads):
        world.store.abort(upload_id)


def prove(world: World, driver: ModelDriver | None = None) -> None:
    prove_level(world, driver or ModelDriver(world, Direct("last")))
    prove_everything_once(world)


def remake(world: World, records: int) -> None:
    world.kafka.delete()
    world.kafka.make(1)
    world.kafka.logs[0].append(records, hole=0, bad=False)


def remade_while_read(world: World) -> None:
    """The plan is for the old log, and the task reads the new one."""
    world.kafka.logs[0].append(RECORDS, hole=0, bad=False)
    driver = ModelDriver(world, Direct("only", First("read", then=lambda: remake(world, RECORDS + 1))))

    prove(world, driver)


def manifest_without_an_answer(world: World) -> None:
    """It is stored, but its driver does not know; the next attempt covers more records."""
    log = world.kafka.logs[0]
    log.append(RECORDS, hole=0, bad=False)
    driver = ModelDriver(world, Direct("only", First("put .s3sink/default/model/flushes", Fate.UNANSWERED)))
    with suppress(S3SinkError):
        driver.step()
    log.append(RECORDS, hole=0, bad=False)

    prove(world, driver)


def replaced_before_it_sends(world: World) -> None:
    """A driver is paused before it sends dead letters, and others publish two flushes meanwhile.

    They cannot delete what was staged for the first one.
    """
    log = world.kafka.logs[0]

    def without_deletes(name: str, writes: bool) -> Fate:
        return Fate.LOST if name.startswith("delete") else Fate.DONE

    def takes_over() -> None:
        prove(world, ModelDriver(world, Direct("second", without_deletes)))
        log.append(RECORDS, hole=0, bad=True)
        prove(world, ModelDriver(world, Direct("third")))

    log.append(RECORDS, hole=0, bad=True)
    # The first session only checks.
    first = ModelDriver(world, Direct("first", Second("begin letters", takes_over)))
    with suppress(S3SinkError):
        first.step()
    prove(world)


class Second:
    """`then` runs just before the second request whose name begins with `start`."""

    def __init__(self, start: str, then: Callable[[], None]) -> None:
        self.start, self.then, self.seen = start, then, 0

    def __call__(self, name: str, writes: bool) -> Fate:
        self.seen += name.startswith(self.start)
        if name.startswith(self.start) and self.seen == 2:
            self.then()
        return Fate.DONE
