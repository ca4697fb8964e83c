"""Faults of processes: the driver and its children, the broker and the S3 server."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from typing import TypeVar

from tests.chaos.faults import Fault, NoVictim, Scene
from tests.chaos.supervisor import FENCED, DriverFailed, has_flushed, has_taken_over
from tests.crash.processes import SinkProcess, kill

T = TypeVar("T")
VICTIM_WITHIN = 45.0
TAKES_OVER_WITHIN = 120.0
FENCED_WITHIN = 60.0
STOPS_WITHIN = 60.0


def kill_driver(scene: Scene, chance: Random) -> str:
    """Its JVM and workers go on for a moment, while the next driver starts."""
    process = _driver(scene, chance)
    process.kill_driver()
    return f"{process.log.stem}; its JVM was not killed"


def kill_all(scene: Scene, chance: Random) -> str:
    """As when a node dies; sometimes at any moment, so that it also hits a starting driver."""
    process = scene.drivers.current() if chance.random() < 0.3 else _driver(scene, chance)
    if not process.alive:
        raise NoVictim
    process.kill()
    return f"{process.log.stem} and all its children"


def kill_jvm(scene: Scene, chance: Random) -> str:
    process = _driver(scene, chance)
    kill(_wait(lambda: process.java, process))
    return f"of {process.log.stem}"


def kill_worker(scene: Scene, chance: Random) -> str:
    process = _driver(scene, chance)
    victims = _wait(lambda: process.workers, process)
    kill(victims)
    return f"{len(victims)} of {process.log.stem}"


def stop_driver(scene: Scene, chance: Random) -> str:
    """At any moment the driver finishes its flush or abandons it, and ends with code 0."""
    process = _driver(scene, chance)
    process.terminate()
    code = process.wait(STOPS_WITHIN)
    if code != 0:
        raise DriverFailed(f"after SIGTERM {process.log.stem} ended with {code}:\n{process.tail()}")
    return f"{process.log.stem} ended with 0"


def freeze_driver(scene: Scene, chance: Random) -> str:
    """A second driver takes over. The first one, resumed, must find that it is fenced, and end by itself."""
    first = _driver(scene, chance)
    with scene.store:
        if not first.alive:
            raise NoVictim
        first.pause()
        try:
            second = scene.drivers.replace(first)
            _wait(lambda: has_taken_over(second), second, TAKES_OVER_WITHIN)
            time.sleep(chance.uniform(1, 5))
        finally:
            first.resume()
        try:
            code = first.wait(FENCED_WITHIN)
        except AssertionError as goes_on:
            raise DriverFailed(
                f"{first.log.stem} was replaced while it was frozen, and still goes on: {goes_on}"
            ) from goes_on
        scene.drivers.ended(first, code)
        if code != FENCED:
            raise DriverFailed(
                f"{first.log.stem} was replaced while it was frozen; it ended with {code}:\n{first.tail()}"
            )
    return f"{second.log.stem} took over from {first.log.stem}, which ended with {code} when it was resumed"


def kill_broker(scene: Scene, chance: Random) -> str:
    down = chance.uniform(0.5, 6)
    scene.world.kafka.kill()
    time.sleep(down)
    scene.world.kafka.start()
    return f"started again after {down:.1f} s"


def freeze_broker(scene: Scene, chance: Random) -> str:
    """Connections stay open without answers."""
    frozen = chance.uniform(2, 8)
    scene.world.kafka.pause()
    time.sleep(frozen)
    scene.world.kafka.resume()
    return f"SIGCONT after {frozen:.1f} s"


def kill_store(scene: Scene, chance: Random) -> str:
    down = chance.uniform(0.2, 5)
    scene.world.s3.kill()
    time.sleep(down)
    scene.world.s3.start()
    return f"started again after {down:.1f} s"


PROCESS_FAULTS = (
    Fault("kill -9 driver", kill_driver),
    Fault("kill -9 driver, JVM and workers", kill_all),
    Fault("kill -9 JVM", kill_jvm),
    Fault("kill -9 workers", kill_worker),
    Fault("SIGTERM driver", stop_driver),
    Fault("SIGSTOP driver, second driver", freeze_driver),
    Fault("kill -9 broker", kill_broker),
    Fault("SIGSTOP broker", freeze_broker),
    Fault("kill -9 S3 server", kill_store),
)


def _driver(scene: Scene, chance: Random) -> SinkProcess:
    """A working driver, at any point of its first flush or a later one, so that the sink makes progress."""
    process = scene.drivers.working(VICTIM_WITHIN, chance.choice([has_taken_over, has_flushed, has_flushed]))
    time.sleep(chance.uniform(0, 3))
    if process is None or not process.alive:
        raise NoVictim
    return process


def _wait(look: Callable[[], T], process: SinkProcess, timeout: float = VICTIM_WITHIN) -> T:
    """Waits until a driver has such a process."""
    deadline = time.monotonic() + timeout
    while process.alive and time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.05)
    raise NoVictim
