"""One run: parts, producers, a supervised driver, faults by the schedule, and the proof at the end."""

from __future__ import annotations

import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import yaml

from tests.chaos.choices import Choices, choose
from tests.chaos.faults import Fault, NoVictim, Scene
from tests.chaos.process_faults import PROCESS_FAULTS
from tests.chaos.producers import Producers
from tests.chaos.proof import Comparison, compare, verify
from tests.chaos.readers import in_bucket, in_kafka
from tests.chaos.schedule import Planned, Track, plan, too_little
from tests.chaos.store_faults import STORE_FAULTS
from tests.chaos.supervisor import DriverFailed, Supervisor
from tests.chaos.world import BUCKET, TOPIC, World, world

PROCESSES = Track(tuple(f.name for f in PROCESS_FAULTS), first=18.0, pace=18.0, calm_end=10.0)
ANSWERS = Track(tuple(f.name for f in STORE_FAULTS), first=14.0, pace=7.0, calm_end=3.0)
KINDS = (*PROCESSES.kinds, *ANSWERS.kinds)
FAULTS = {fault.name: fault for fault in (*PROCESS_FAULTS, *STORE_FAULTS)}
LONGER = 2.0
"""How many times its length a run may last, if too few faults have happened."""
CATCHES_UP_WITHIN = 240.0
STOPS_WITHIN = 60.0


@dataclass(frozen=True)
class Happened:
    at: float
    kind: str
    what: str


@dataclass
class Outcome:
    choices: Choices
    seconds: float
    happened: list[Happened] = field(default_factory=list)
    missed: Counter[str] = field(default_factory=Counter)
    """Faults without a target."""
    drivers: int = 0
    """The number of drivers that were started."""
    exits: Counter[str] = field(default_factory=Counter)
    """Drivers that ended, by exit code."""
    produced: Counter[str] = field(default_factory=Counter)
    figures: dict[str, int] = field(default_factory=dict)
    comparison: Comparison | None = None
    wrong: list[str] = field(default_factory=list)
    """Why the run failed; empty if it passed."""


class Run:
    def __init__(self, seed: int, seconds: float, folder: Path, say: Callable[[str], None]) -> None:
        self.outcome = Outcome(choose(seed), seconds)
        self._seed, self._seconds, self._folder, self._say = seed, seconds, folder, say
        self._began = time.monotonic()

    def go(self) -> Outcome:
        """Runs everything. Problems are in the outcome, and the evidence in the folder."""
        choices = self.outcome.choices
        with ExitStack() as stack:
            here = stack.enter_context(world(choices, self._folder))
            self._say(f"seed {self._seed}: {choices}, {choices.isolation}, {self._seconds:.0f} s\n")
            self._say(yaml.safe_dump(here.sink(), sort_keys=False))
            try:
                self._disturb(here)
                self._prove(here)
            except Exception as error:
                self.outcome.wrong.append(f"{type(error).__name__}: {error}")
                (self._folder / "failure.txt").write_text(traceback.format_exc())
            if self.outcome.wrong:
                here.keep_evidence()
        return self.outcome

    def _disturb(self, here: World) -> None:
        producers = Producers(here.kafka.bootstrap, TOPIC, self.outcome.choices)
        with ExitStack() as stack:
            stack.callback(producers.stop)
            drivers = stack.enter_context(Supervisor(here.manifest, self._folder, self._told))
            stack.callback(lambda: self._count(drivers))
            self._began = time.monotonic()
            self._play_both(Scene(here, drivers))
            self._told("no more faults: producers end, the driver catches up")
            producers.finish()
            self.outcome.produced = producers.did
            self._catch_up(here, drivers)
            drivers.stop_driver(STOPS_WITHIN)

    def _play_both(self, scene: Scene) -> None:
        failures: list[BaseException] = []

        def answers() -> None:
            try:
                self._play(scene, ANSWERS)
            except BaseException as failure:
                failures.append(failure)

        beside = threading.Thread(target=answers, name="faults of the store", daemon=True)
        beside.start()
        try:
            # In this thread, which lasts: a broker dies with the thread that started it.
            self._play(scene, PROCESSES)
            while self._elapsed() < self._seconds and not failures:
                time.sleep(0.2)
        finally:
            scene.over.set()
            beside.join()
        if failures:
            raise failures[0]
        self.outcome.seconds = max(self._seconds, self._elapsed())
        self.outcome.wrong += self._lacks()

    def _lacks(self) -> list[str]:
        return too_little([h.kind for h in self.outcome.happened], KINDS, max(self._seconds, self._elapsed()))

    def _goes_on(self, track: Track) -> bool:
        """A run takes longer than planned only if faults are missing, as on a busy machine."""
        if self._elapsed() < self._seconds - track.calm_end:
            return True
        return self._elapsed() < self._seconds * LONGER and bool(self._lacks())

    def _play(self, scene: Scene, track: Track) -> None:
        """One fault after another, each at its time, or when the one before is over."""
        chance = Random(f"faults of {self._seed}: {track.kinds[0]}")
        left = deque(plan(self._seed, track, self._seconds * LONGER))
        while left:
            planned = left.popleft()
            scene.over.wait(max(0.0, planned.at - self._elapsed()))
            if scene.over.is_set() or not self._goes_on(track):
                return
            if not self._happens(scene, FAULTS[planned.kind], chance):
                # After the next one, in addition to the plan.
                left.insert(1, Planned(self._elapsed() + track.pace / 2, planned.kind))

    def _happens(self, scene: Scene, fault: Fault, chance: Random) -> bool:
        at = self._elapsed()
        try:
            what = fault.do(scene, chance)
        except NoVictim:
            self.outcome.missed[fault.name] += 1
            return False
        self.outcome.happened.append(Happened(at, fault.name, what))
        self._told(f"{fault.name}: {what}", at)
        return True

    def _catch_up(self, here: World, drivers: Supervisor) -> None:
        """The driver must catch up by itself, without a restart."""
        deadline = time.monotonic() + CATCHES_UP_WITHIN
        while behind := here.behind():
            if time.monotonic() > deadline:
                tail = drivers.current().tail()
                raise DriverFailed(f"the driver did not catch up in {CATCHES_UP_WITHIN:.0f} s: {behind}\n{tail}")
            time.sleep(0.3)

    def _prove(self, here: World) -> None:
        self._told("proof: every record of the topic against every record of the bucket")
        choices, outcome = self.outcome.choices, self.outcome
        kafka = in_kafka(here.kafka.bootstrap, TOPIC, choices.isolation)
        bucket = in_bucket(here.client, BUCKET, choices)
        outcome.comparison = compared = compare(kafka, bucket)
        state = here.state()
        outcome.figures = {
            "records": compared.records,
            "objects": bucket["key"].n_unique(),
            "flushes": state["flush"],
            "requests": len(here.proxy.requests),
        }
        outcome.wrong += compared.in_words()
        self._told("s3sink verify")
        outcome.wrong += verify(here.manifest, self._folder, compared.records)
        if outcome.wrong:
            kafka.write_parquet(self._folder / "kafka.parquet")
            bucket.write_parquet(self._folder / "bucket.parquet")
        self._told("done")

    def _count(self, drivers: Supervisor) -> None:
        self.outcome.drivers, self.outcome.exits = len(drivers.logs), drivers.exits

    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _told(self, text: str, at: float | None = None) -> None:
        self._say(f"{self._elapsed() if at is None else at:6.1f} s  {text}")
