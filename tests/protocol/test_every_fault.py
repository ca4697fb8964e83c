"""Every fault at every request of a flush, one at a time."""

from __future__ import annotations

import pytest

from s3sink_job.base.errors import FencedError, S3SinkError
from tests.protocol.drivers import INTERVAL, RECORDS, ModelDriver, model_parts
from tests.protocol.proofs import prove_everything_once, prove_level
from tests.protocol.simulation import POSITIONS
from tests.protocol.store import TWICE
from tests.protocol.stories import First
from tests.protocol.world import Crash, Direct, Fate, Reset, World

REQUESTS = 45
"""More than a run of two flushes makes: those beyond the last one change nothing."""


class Counting:
    """A fate for the request with this number; all others succeed."""

    def __init__(self, number: int, fate: Fate) -> None:
        self.left = number
        self.fate = fate

    def __call__(self, name: str, writes: bool) -> Fate:
        self.left -= 1
        if self.left != -1:
            return Fate.DONE
        return self.fate if writes or self.fate in {Fate.LOST, Fate.CRASH_BEFORE} else Fate.DONE


def fill(world: World, count: int = 2 * RECORDS + 1) -> None:
    world.kafka.logs[0].append(count, hole=1, bad=world.bad_records != "Skip")


def live(driver: ModelDriver, steps: int = 5) -> None:
    """As the loop does: continues after errors, until fenced or crashed."""
    try:
        for _ in range(steps):
            driver.world.now += INTERVAL / 2
            try:
                driver.step()
            except FencedError:
                return
            except S3SinkError as error:
                driver.world.note(f"{driver.line.name}: {type(error).__name__}: {error}")
    except Crash:
        return


def prove(world: World) -> None:
    prove_level(world, ModelDriver(world, Direct("last")))
    prove_everything_once(world)


@pytest.mark.parametrize("fate", [f for f in Fate if f is not Fate.DONE], ids=lambda fate: fate.name)
@pytest.mark.parametrize(("retries", "letters"), [(0, "Topic"), (1, "DeadLetter")])
def test_one_fault_at_any_request_loses_and_repeats_nothing(fate: Fate, retries: int, letters: str) -> None:
    for number in range(REQUESTS):
        world = World(twice=TWICE[number % len(TWICE)], bad_records=letters)
        with model_parts(world):
            fill(world)
            live(ModelDriver(world, Direct("first", Counting(number, fate)), retries))
            while world.late:
                world.arrive(0)
            fill(world)
            prove(world)


@pytest.mark.parametrize("fate", [f for f in Fate if f is not Fate.DONE], ids=lambda fate: fate.name)
@pytest.mark.parametrize("position", POSITIONS)
def test_one_fault_at_any_request_of_a_reset_carries_it_out_once(fate: Fate, position: str) -> None:
    """A flush is committed but not published when the reset is requested."""
    for number in range(REQUESTS):
        world = World(twice=TWICE[number % len(TWICE)])
        with model_parts(world):
            fill(world)
            live(ModelDriver(world, Direct("first", First("complete", Fate.CRASH_BEFORE))))
            world.reset = Reset("again", position)
            live(ModelDriver(world, Direct("second", Counting(number, fate))))
            while world.late:
                world.arrive(0)
            fill(world)
            prove(world)
        state = world.watchdog.history[-1]
        assert [done.nonce for done in state.resets] == ["again"]
        assert state.topics["t"].generation == 2


@pytest.mark.parametrize("when", ["before the next driver", "while it runs", "long after"])
def test_a_late_request_changes_nothing_whenever_it_arrives(when: str) -> None:
    for number in range(REQUESTS):
        world = World()

        def arrive(name: str = "", writes: bool = False, world: World = world) -> Fate:
            while world.late:
                world.arrive(0)
            return Fate.DONE

        with model_parts(world):
            fill(world)
            for kept in Counting(number, Fate.LATE), Counting(number + 1, Fate.CRASH_BEFORE):
                live(ModelDriver(world, Direct("first", kept)), steps=1)
            if when == "before the next driver":
                arrive()
            live(ModelDriver(world, Direct("second", arrive if when == "while it runs" else Counting(-1, Fate.DONE))))
            prove(world)
            arrive()
            prove(world)


@pytest.mark.parametrize("more", [0, 1], ids=["nothing new", "new records meanwhile"])
def test_a_driver_paused_at_any_request_does_no_harm_when_it_resumes(more: int) -> None:
    """SIGSTOP, another driver takes over and catches up, SIGCONT."""
    for number in range(REQUESTS):
        world = World(bad_records="Topic")

        class Stopped(Counting):
            def __call__(self, name: str, writes: bool, world: World = world) -> Fate:
                self.left -= 1
                if self.left == -1:
                    fill(world, more)
                    world.note("-- stopped")
                    prove(world)
                    fill(world, more)
                    world.note("-- goes on")
                return Fate.DONE

        with model_parts(world):
            fill(world)
            live(ModelDriver(world, Direct("sleeper", Stopped(number, Fate.DONE))))
            prove(world)


@pytest.mark.parametrize("fate", [Fate.UNANSWERED, Fate.LATE, Fate.LOST], ids=lambda fate: fate.name)
def test_a_fault_at_any_two_writes_in_a_row_loses_and_repeats_nothing(fate: Fate) -> None:
    """One retry is not enough for two faults."""
    for number in range(REQUESTS):

        class Two(Counting):
            def __call__(self, name: str, writes: bool) -> Fate:
                self.left -= 1
                return self.fate if self.left in {-1, -2} and writes else Fate.DONE

        world = World()
        with model_parts(world):
            fill(world)
            live(ModelDriver(world, Direct("first", Two(number, fate)), request_retries=1))
            prove(world)
            while world.late:
                world.arrive(0)
            prove(world)
