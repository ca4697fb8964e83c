"""One run: drivers, faults and changes in Kafka by choice, then the proof that nothing is lost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from s3sink_job.base.errors import S3SinkError
from s3sink_job.flush.manifest import number_of
from s3sink_job.flush.refresh import unpublished_since
from s3sink_job.proof.orphaned_uploads import orphaned_uploads
from s3sink_job.stores.object_tags import FLUSH_TAG
from tests.protocol.drivers import IDLE_AT, INTERVAL, TOPIC, ModelDriver, model_parts, run_driver
from tests.protocol.proofs import prove_everything_once, prove_level, prove_refreshed, try_older_state
from tests.protocol.store import TWICE
from tests.protocol.watchdog import STATE_FOLDER
from tests.protocol.world import (
    READ_FATES,
    WRITE_FATES,
    Applied,
    Choices,
    Direct,
    Fate,
    Process,
    Reset,
    World,
)

DRIVERS_AT_ONCE = 3
DRIVERS_AT_ALL = 9
STORES = ((True, False),)
"""Those that keep conditions, and do not forget metadata."""
WORSE_STORES = ((False, False), (False, True), (True, True))
"""Those that do not, or do."""
FAULTS = (2, 8, 25)
"""In how many of 100 requests something goes wrong: calm, rough, storm."""
BAD_RECORDS = ("DeadLetter", "Topic", "Skip")
POSITIONS = ("Earliest", "Latest", "Timestamp")
SWITCH, EVENT, IDLE = 80, 88, 30
"""Of 100 turns: below SWITCH the driver at hand goes on, below EVENT another one, else something happens.
While a driver is idle, things happen from IDLE on."""


@dataclass(frozen=True)
class Setting:
    steps: int = 280
    conditional: bool = True
    faults: int | None = None
    """In how many of 100 requests something goes wrong; None leaves it to the choices."""
    often: tuple[str, ...] = ()
    """Events that come more often than others."""
    writes: Fate | None = None
    """What goes wrong with a write; None leaves it to the choices."""
    refresh: bool = False
    """Whether there are full refreshes."""


def simulate(choices: Choices, setting: Setting = Setting()) -> World:  # noqa: B008 - frozen
    """Raises Violation when a promise is broken. Returns the world as it was in the end."""
    return _Run(choices, setting).run()


class _Run:
    def __init__(self, choices: Choices, setting: Setting) -> None:
        self.pick = choices.pick
        self.setting = setting
        stores = STORES if setting.conditional else WORSE_STORES
        conditional, forgets = stores[self.pick(len(stores))]
        self.world = World(
            conditional=conditional,
            forgets=forgets,
            opaque=bool(self.pick(2)),
            twice=TWICE[self.pick(len(TWICE))],
            partitions=1 + self.pick(2),
            bad_records=BAD_RECORDS[self.pick(len(BAD_RECORDS))],
        )
        # Without topic ids a recreated topic cannot be noticed, so topics are not recreated then.
        self.world.kafka.tells_ids = self.pick(4) > 0
        drawn = FAULTS[self.pick(len(FAULTS))]
        self.faults = drawn if setting.faults is None else setting.faults
        self.request_retries = self.pick(2)
        self.processes: list[Process] = []
        self.current: Process | None = None
        self.resets: list[Reset] = []
        self.events = (
            *([self.append] * 8 + [self.wait] * 5 + [self.start] * 2),
            *(self.late, self.late, self.kill, self.retain, self.life_cycle, self.transaction, self.grow, self.remake),
            *(self.reset, self.reset, self.elect, self.cut, self.read_and_remove, self.zombie, self.roll_back),
            *(self.hide, self.lead, self.gc),
            *(getattr(self, name) for name in setting.often for _ in range(16)),
            *([self.refresh] * 4 + [self.append_only] if setting.refresh else ()),
        )

    def run(self) -> World:
        with model_parts(self.world):
            try:
                self.append()
                for _ in range(self.setting.steps):
                    self.step()
                    self.world.check()
                self.level("last-1")
                self.wake_the_stale()
                self.level("last-2")
            finally:
                for process in self.processes:
                    process.end()
        return self.world

    @property
    def alive(self) -> list[Process]:
        return [p for p in self.processes if p.alive]

    def step(self) -> None:
        alive = self.alive
        turn = self.pick(100)
        idle = self.current is not None and self.current.waits == IDLE_AT
        if turn >= (IDLE if idle else EVENT):
            self.events[self.pick(len(self.events))]()
        elif not alive:
            self.start()
        else:
            if self.current not in alive or turn >= SWITCH:
                self.current = alive[self.pick(len(alive))]
            self.current.turn(self.fate(self.current))

    def fate(self, process: Process) -> Fate:
        if self.pick(100) < 100 - self.faults:
            return Fate.DONE
        if process.writes and self.setting.writes is not None:
            return self.setting.writes
        fates = WRITE_FATES if process.writes else READ_FATES
        return fates[self.pick(len(fates))]

    def append(self) -> None:
        if logs := self.world.kafka.logs:
            log = logs[self.pick(len(logs))]
            log.append(self.pick(5), hole=max(0, self.pick(4) - 1), bad=self.pick(4) == 3)
            self.world.note(f"-- {log.incarnation} reaches {log.end}")

    def wait(self) -> None:
        """Permissions are restored and leaders elected meanwhile."""
        self.world.now += INTERVAL / 2
        self.world.kafka.hidden, self.world.kafka.leaderless = False, set()
        self.world.note("-- time passes")

    def start(self, manifest: Applied | None = None) -> None:
        if len(self.alive) < DRIVERS_AT_ONCE and len(self.processes) < DRIVERS_AT_ALL:
            world, retries, given = self.world, self.request_retries, manifest or self.world.applied
            name = f"d{len(self.processes) + 1}"
            world.note(f"-- {name} starts for generation {given.generation}")
            self.current = Process(world, name, lambda process: run_driver(world, process, retries, given))
            self.processes.append(self.current)
            self.current.start()

    def kill(self) -> None:
        if alive := self.alive:
            alive[self.pick(len(alive))].turn(Fate.CRASH_BEFORE)

    def late(self) -> None:
        if count := len(self.world.late):
            self.world.arrive(self.pick(count))

    def retain(self) -> None:
        if logs := self.world.kafka.logs:
            log = logs[self.pick(len(logs))]
            log.retain_from(log.earliest + self.pick(5))
            self.world.note(f"-- {log.incarnation} begins at {log.earliest}")

    def life_cycle(self) -> None:
        """A lifecycle rule aborts an upload, the oldest or any other."""
        if uploads := list(self.world.store.uploads):
            upload_id = uploads[self.pick(len(uploads))]
            self.world.store.abort(upload_id)
            self.world.note(f"-- {upload_id} is aborted by a lifecycle rule")

    def gc(self) -> None:
        """`s3sink gc` for uploads of any age. Its requests may fail; then a list must not look complete."""
        world = self.world
        line = Direct("gc", lambda name, writes: Fate.LOST if self.pick(100) >= 100 - self.faults else Fate.DONE)
        driver = ModelDriver(world, line, self.request_retries)
        try:
            found = list(orphaned_uploads(driver.bucket(), driver.routing, [TOPIC], timedelta(0)))
        except S3SinkError as error:
            world.note(f"gc: {type(error).__name__}")
            return
        needed = world.watchdog.being_published()
        for _, upload in found:
            if upload.upload_id in needed:
                world.blame(f"gc would abort {upload.upload_id}, which a committed flush needs")
            world.store.abort(upload.upload_id)
            world.note(f"-- {upload.upload_id} is aborted by gc")

    def transaction(self) -> None:
        if logs := self.world.kafka.logs:
            log = logs[self.pick(len(logs))]
            log.held = log.end if log.held is None else None
            self.world.note(f"-- {log.incarnation}: readable up to {log.stable}")

    def grow(self) -> None:
        if 0 < len(self.world.kafka.logs) < 3:
            self.world.kafka.add_partition()
            self.world.note("-- the topic has one partition more")

    def elect(self) -> None:
        if logs := self.world.kafka.logs:
            log = logs[self.pick(len(logs))]
            log.elect()
            self.world.note(f"-- {log.incarnation} has a new leader, of epoch {log.epoch}")

    def cut(self) -> None:
        """An unclean election. Often the log has grown again before the next observation."""
        if logs := self.world.kafka.logs:
            log = logs[self.pick(len(logs))]
            log.cut(log.end - self.pick(6))
            grown = self.pick(8)
            log.append(grown, hole=0, bad=False)
            self.world.note(f"-- {log.incarnation} was cut to {log.end - grown}, and reaches {log.end} again")

    def hide(self) -> None:
        """A permission is removed, or restored."""
        kafka = self.world.kafka
        kafka.hidden = not kafka.hidden
        self.world.note(f"-- the topic may {'not ' if kafka.hidden else ''}be seen")

    def lead(self) -> None:
        """A partition loses its leader, or gets one."""
        kafka = self.world.kafka
        if kafka.logs:
            partition = self.pick(len(kafka.logs))
            kafka.leaderless ^= {partition}
            self.world.note(f"-- without a leader: {sorted(kafka.leaderless)}")

    def read_and_remove(self) -> None:
        """COPY … PURGE: a reader loads an object and deletes it.

        Between completing uploads and storing that, a deleted object may look like a lost upload. This window is
        documented, and left out here.
        """
        world = self.world
        stored = world.watchdog.history[-1].publishing if world.watchdog.history else None
        settled = {p.writer for p in self.alive if p.waits == IDLE_AT and p.well}
        objects = [
            key
            for key, found in world.store.objects.items()
            if FLUSH_TAG in found.metadata
            and not key.startswith(STATE_FOLDER)
            and (stored is None or _noted(found.metadata[FLUSH_TAG], stored, settled))
            and not self._may_be_published(found.metadata[FLUSH_TAG])
        ]
        if objects:
            key = objects[self.pick(len(objects))]
            world.removed[key] = world.store.objects.pop(key)
            world.note(f"-- {key} was loaded and removed by its reader")

    def _may_be_published(self, flush: str) -> bool:
        """Whether a full refresh has not stored yet that the flush is published."""
        state = self.world.watchdog.history[-1]
        last, since = unpublished_since(state)
        return last != since and number_of(flush) > number_of(since)

    def zombie(self) -> None:
        """A pod on a partitioned node restarts with an old manifest."""
        if earlier := self.world.earlier:
            self.start(earlier[self.pick(len(earlier))])

    def roll_back(self) -> None:
        """An older state is restored, in a copy of the world without other drivers."""
        history = self.world.watchdog.history
        if len(history) > 1 and self.world.conditional:
            try_older_state(self.world, history[self.pick(len(history) - 1)])

    def remake(self) -> None:
        kafka = self.world.kafka
        if not kafka.tells_ids and self.pick(2) == 0:
            kafka.tells_ids = True
            self.world.note("-- the brokers have topic ids from now on")
        history = self.world.watchdog.history
        if not kafka.tells_ids or not all(topic.id for topic in (history[-1].topics.values() if history else ())):
            return  # while ids are unknown, re-creation cannot be noticed
        if kafka.logs:
            kafka.delete()
            self.world.note("-- the topic is deleted")
        if not kafka.logs and self.pick(2) == 0:
            kafka.make(1 + self.pick(2))
            self.world.note(f"-- the topic is made anew, as {kafka.id}")

    def reset(self) -> None:
        """A new reset; or an earlier manifest is applied again, as Argo CD does."""
        world = self.world
        if self.pick(3) or not self.resets:
            self.resets.append(Reset(f"n{len(self.resets) + 1}", POSITIONS[self.pick(len(POSITIONS))]))
            world.apply(self.resets[-1])
        else:
            world.reset = (None, *self.resets)[self.pick(len(self.resets) + 1)]
        world.note(f"-- the manifest has {world.reset}")

    def refresh(self) -> None:
        """A new run; its Job may start several pods."""
        self.world.apply(self.world.reset, run=f"run-{self.world.applied.generation}")
        self.world.note(f"-- the full refresh {self.world.applied.run} is wanted")
        self.start()

    def append_only(self) -> None:
        if self.world.applied.run:
            self.world.apply(self.world.reset)
            self.world.note("-- the mode is Append")

    def level(self, name: str) -> None:
        """A new driver alone, without faults, until everything is in the bucket; then the proof."""
        world = self.world
        if not world.kafka.logs:
            world.kafka.make(1)
        world.kafka.hidden, world.kafka.leaderless = False, set()
        for log in world.kafka.logs.values():
            log.held = None
        world.note(f"-- {name} runs alone")
        if self.setting.refresh:
            world.apply(world.reset, run=name)
            prove_refreshed(world, ModelDriver(world, Direct(f"{name}-refresh")))
            world.apply(world.reset)
        prove_level(world, ModelDriver(world, Direct(name)))
        if world.reset and world.reset.nonce not in {done.nonce for done in world.watchdog.history[-1].resets}:
            world.blame(f"{world.reset} was never carried out")
        world.check()
        prove_everything_once(world)

    def wake_the_stale(self) -> None:
        """Paused drivers resume, and late requests arrive."""
        while self.world.late:
            self.world.arrive(0)
        for process in self.alive:
            for _ in range(60):
                if process.alive:
                    process.turn(Fate.DONE)
        self.world.check()


def _noted(flush: str, publishing: str, settled: set[str]) -> bool:
    """Whether its driver has stored that the flush is published."""
    return flush != publishing or flush.rpartition("-")[2] in settled
