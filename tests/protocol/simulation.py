"""One run: drivers, faults and changes in Kafka as the choices have it, then the proof that nothing is lost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from s3sink_job.engine.gc import orphans
from s3sink_job.errors import S3SinkError
from s3sink_job.flush.manifest import Gap
from tests.protocol.drivers import IDLE_AT, INTERVAL, TOPIC, ModelDriver, model_parts, run_driver
from tests.protocol.log import BAD, Log
from tests.protocol.store import TWICE
from tests.protocol.world import READ_FATES, WRITE_FATES, Choices, Direct, Fate, Process, Reset, Violation, World

DRIVERS_AT_ONCE = 3
DRIVERS_AT_ALL = 7
STORES = ((True, False),)
"""Those that keep conditions, and do not forget metadata."""
WORSE_STORES = ((False, False), (False, True), (True, True))
"""Those that do not, or do."""
FAULTS = (2, 8, 25)
"""In how many of 100 requests something goes wrong: calm, rough, storm."""
POSITIONS = ("Earliest", "Latest", "Timestamp")
SWITCH, EVENT, IDLE = 80, 88, 30
"""Of 100 turns: below SWITCH the driver at hand goes on, below EVENT another one, else something happens.
While a driver is idle, things happen from IDLE on."""


@dataclass(frozen=True)
class Setting:
    steps: int = 200
    conditional: bool = True
    faults: int | None = None
    """In how many of 100 requests something goes wrong; None leaves it to the choices."""
    often: tuple[str, ...] = ()
    """Events that come more often than others."""


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
        )
        drawn = FAULTS[self.pick(len(FAULTS))]
        self.faults = drawn if setting.faults is None else setting.faults
        self.request_retries = self.pick(2)
        self.processes: list[Process] = []
        self.current: Process | None = None
        self.resets: list[Reset] = []
        self.events = (
            *(self.append, self.append, self.append, self.append, self.wait, self.wait, self.start, self.late),
            *(self.late, self.kill, self.retain, self.life_cycle, self.transaction, self.grow, self.remake),
            *(self.reset, self.reset, self.gc),
            *(getattr(self, name) for name in setting.often for _ in range(8)),
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
        fates = WRITE_FATES if process.writes else READ_FATES
        return fates[self.pick(len(fates))]

    def append(self) -> None:
        if logs := self.world.kafka.logs:
            log = logs[self.pick(len(logs))]
            log.append(self.pick(5), hole=max(0, self.pick(4) - 1), bad=self.pick(10) == 9)
            self.world.note(f"-- {log.incarnation} reaches {log.end}")

    def wait(self) -> None:
        self.world.now += INTERVAL / 2
        self.world.note("-- time passes")

    def start(self) -> None:
        if len(self.alive) < DRIVERS_AT_ONCE and len(self.processes) < DRIVERS_AT_ALL:
            world, retries = self.world, self.request_retries
            name = f"d{len(self.processes) + 1}"
            world.note(f"-- {name} starts")
            self.current = Process(world, name, lambda process: run_driver(world, process, retries))
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
        """`s3sink gc` for uploads of any age. Its requests may fail, and what it then sees must not look complete."""
        world = self.world
        line = Direct("gc", lambda name, writes: Fate.LOST if self.pick(100) >= 100 - self.faults else Fate.DONE)
        driver = ModelDriver(world, line, self.request_retries)
        try:
            found = list(orphans(driver._bucket(), driver.routing, [TOPIC], timedelta(0)))
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

    def remake(self) -> None:
        kafka = self.world.kafka
        if kafka.logs:
            kafka.delete()
            self.world.note("-- the topic is deleted")
        if not kafka.logs and self.pick(2) == 0:
            kafka.make(1 + self.pick(2))
            self.world.note(f"-- the topic is made anew, as {kafka.id}")

    def reset(self) -> None:
        """Somebody asks for one; or the manifest is put back to an earlier one, as Argo CD does it."""
        world = self.world
        if self.pick(3) or not self.resets:
            self.resets.append(Reset(f"n{len(self.resets) + 1}", POSITIONS[self.pick(len(POSITIONS))]))
            world.reset = self.resets[-1]
        else:
            world.reset = (None, *self.resets)[self.pick(len(self.resets) + 1)]
        world.note(f"-- the manifest has {world.reset}")

    def level(self, name: str) -> None:
        """A fresh driver alone, without faults, until all that is in Kafka is in the bucket; then the proof."""
        world = self.world
        if not world.kafka.logs:
            world.kafka.make(1)
        for log in world.kafka.logs.values():
            log.held = None
        world.note(f"-- {name} runs alone")
        prove_level(world, ModelDriver(world, Direct(name)))
        if world.reset and world.reset.nonce not in {done.nonce for done in world.watchdog.history[-1].resets}:
            world.blame(f"{world.reset} was never carried out")
        world.check()
        prove_everything_once(world)

    def wake_the_stale(self) -> None:
        """Those who were stopped go on, and requests of long ago arrive."""
        while self.world.late:
            self.world.arrive(0)
        for process in self.alive:
            for _ in range(60):
                if process.alive:
                    process.turn(Fate.DONE)
        self.world.check()


def prove_level(world: World, driver: ModelDriver, steps: int = 40) -> None:
    error: S3SinkError | None = None
    for _ in range(steps):
        world.now += INTERVAL + 1
        try:
            driver.step()
        except S3SinkError as failure:
            error = failure
            world.note(f"{driver.line.name}: {type(failure).__name__}: {failure}")
            if not failure.retryable:
                break
        world.check()
        if is_level(world, driver):
            return
    world.blame(f"the sink never gets level; the last error: {error}", error)
    world.check()


def is_level(world: World, driver: ModelDriver) -> bool:
    books = driver.books
    if books is None or books.in_doubt or books.unnoted or world.watchdog.history[-1].publishing:
        return False
    known = world.watchdog.history[-1].topics.get(TOPIC)
    ends = {partition: log.end for partition, log in world.kafka.logs.items()}
    return (
        known is not None
        and known.id == world.kafka.id
        and {partition: at.offset for partition, at in known.partitions.items()} == ends
    )


def prove_everything_once(world: World) -> None:
    """Each record of each log, up to where the sink committed, is in one object, or noted as lost or skipped."""
    manifests = world.watchdog.committed_manifests()
    skipped = {(s.generation, s.partition, o) for m in manifests for s in m.slices for o in s.skipped}
    problems: list[str] = []
    for (generation, partition), (topic_id, start, end) in committed_ranges(world).items():
        log = world.kafka.past[topic_id, partition]
        gaps = [g for g in world.watchdog.gaps() if (g.generation, g.partition) == (generation, partition)]
        for offset, value in log.written.items():
            if start <= offset < end:
                left_out = (generation, partition, offset) in skipped
                holders = world.watchdog.holders.get((generation, value), [])
                problems += _judge(world, log, offset, value, gaps, holders, left_out=left_out)
    if problems:
        raise Violation("\n".join([*problems, "what happened:", *world.trace]))


def committed_ranges(world: World) -> dict[tuple[int, int], tuple[str, int, int]]:
    """For each generation and partition: the topic's id, where the sink began and how far it got."""
    states = world.watchdog.history if world.conditional else world.watchdog.history[-1:]
    return {
        (topic.generation, partition): (topic.id, at.start, at.offset)
        for state in states
        for topic in state.topics.values()
        for partition, at in topic.partitions.items()
    }


def _judge(
    world: World, log: Log, offset: int, value: bytes, gaps: list[Gap], holders: list[str], *, left_out: bool
) -> list[str]:
    record = f"record {log.incarnation}/{offset}"
    lost = any(gap.start <= offset < gap.end for gap in gaps)
    if value == BAD:
        return [] if left_out or lost else [f"{record} is bad, and nobody counted it"]
    if holders and lost and world.conditional:
        return [f"{record} is noted as lost, yet it is in {sorted(set(holders))}"]
    return [] if holders or lost else [f"{record} is committed, and in no object"]
