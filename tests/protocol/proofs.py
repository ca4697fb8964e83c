"""The proofs of the simulation: the sink catches up, and every committed record is in one object, or accounted for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from s3sink_job.base.errors import S3SinkError
from s3sink_job.commit.current_pointer import NAME
from s3sink_job.flush.manifest import Gap, GapReason, number_of
from s3sink_job.flush.refresh import last_replaced
from s3sink_job.flush.state import RefreshPhase, SinkState
from s3sink_job.flush.statefile import state_to_json
from tests.protocol.drivers import INTERVAL, TOPIC, ModelDriver, model_parts
from tests.protocol.log import BAD, Log, Records
from tests.protocol.watchdog import STATE_FOLDER
from tests.protocol.world import Direct, Violation, World


def prove_level(world: World, driver: ModelDriver, steps: int = 40) -> None:
    error = _run(world, driver, steps, lambda: is_level(world, driver))
    if not is_level(world, driver):
        world.blame(f"the sink never gets level; the last error: {error}", error)
        world.check()


def _run(world: World, driver: ModelDriver, steps: int, over: Callable[[], bool]) -> S3SinkError | None:
    """Until it is over, or an error that lasts. Returns the last error."""
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
        if over():
            break
    return error


def try_older_state(world: World, older: SinkState) -> None:
    """Resuming from it must not write a record twice: it has to be refused if anything shows that it is older."""
    state_key = f"{STATE_FOLDER}default/model/state.json"
    trial = world.copy()
    # Objects that readers removed no longer prove anything; that is documented.
    trial.store.objects |= world.removed
    trial.store.restore(state_key, state_to_json(older))
    trial.watchdog.history.append(older)
    # A run that the older state does not know begins again.
    trial.watchdog.runs.clear()
    trial.note(f"-- the state of flush {older.flush}, epoch {older.epoch}, is put back")
    with model_parts(trial):
        driver = ModelDriver(trial, Direct(f"trial-{len(world.trace)}"))
        for _ in range(4):
            trial.now += INTERVAL + 1
            try:
                driver.step()
            except S3SinkError as error:
                trial.note(f"trial: {error.reason}: {error}")
                if error.reason == "KeyTaken":
                    trial.blame("a rolled back state went unnoticed until its names were taken", error)
                break
    trial.check()


def prove_refreshed(world: World, driver: ModelDriver, steps: int = 60) -> None:
    """The run ends, its objects are there, and those that it replaced are not."""
    error = _run(world, driver, steps, lambda: driver.finished)
    state = world.watchdog.history[-1]
    if state.refresh is None or state.refresh.phase is not RefreshPhase.DONE or not state.refresh.run:
        world.blame(f"the full refresh never ends; the last error: {error}; problems: {driver.problems}", error)
        world.check()
    world.watchdog.check_whole(state, "the run ended")
    replaced = number_of(last_replaced(state))
    for key, flush in world.watchdog.present.items():
        if number_of(flush) <= replaced and key in world.store.objects:
            world.blame(f"{key} of the flush {flush} is still there, and was replaced")
    if world.watchdog.pointer != state.refresh.number:
        world.blame(f"{NAME} names run {world.watchdog.pointer}, the current one is {state.refresh.number}")
    world.check()


def is_level(world: World, driver: ModelDriver) -> bool:
    committer = driver.committer
    if committer is None or committer.in_doubt or committer.state.publishing or committer.state.lost:
        return False
    known = world.watchdog.history[-1].topics.get(TOPIC)
    ends = {partition: log.end for partition, log in world.kafka.logs.items()}
    return (
        known is not None
        and known.id == world.kafka.told_id
        and {partition: at.offset for partition, at in known.partitions.items()} == ends
    )


def prove_everything_once(world: World) -> None:
    """Each committed record of each log is in one object, or recorded as a gap or as skipped."""
    problems: list[str] = []
    for move in committed_moves(world):
        log = world.kafka.past[move.topic_id, move.partition]
        # What was committed came from one branch of the log.
        judged = [_unaccounted(world, log, branch, move, (move.generation,)) for branch in log.branches]
        problems += min(judged, key=len)
    problems += [*_stepped_over(world), *_given_up(world)]
    if problems:
        raise Violation("\n".join([*problems, "what happened:", *world.trace]))


@dataclass(frozen=True)
class Move:
    """Offsets `[start, end)` that one swap committed."""

    topic_id: str
    generation: int
    partition: int
    start: int
    end: int


def committed_moves(world: World) -> list[Move]:
    """Without conditions only the last state counts: two drivers may both have committed."""
    if not world.conditional:
        return [Move(world.kafka.name(i), g, p, s, e) for (g, p), (i, s, e) in committed_ranges(world).items()]
    reached: dict[tuple[int, int], int] = {}
    moves = []
    for state in world.watchdog.history:
        for topic in state.topics.values():
            for partition, at in topic.partitions.items():
                place = (topic.generation, partition)
                if topic.generation in world.watchdog.abandoned:
                    continue
                if (before := reached.get(place, at.start)) < at.offset:
                    moves.append(Move(world.kafka.name(topic.id), *place, before, at.offset))
                reached[place] = at.offset
    return moves


def _given_up(world: World) -> list[str]:
    """Records in gaps of lost uploads that Kafka still has. Truncated logs are left out."""
    problems = []
    for gap in world.watchdog.gaps():
        ids = {
            topic.id
            for state in world.watchdog.history
            for topic in state.topics.values()
            if topic.generation == gap.generation
        }
        log = world.kafka.logs.get(gap.partition)
        same = {world.kafka.name(told) for told in ids} == {world.kafka.id}
        if gap.reason == GapReason.UPLOAD_LOST and log is not None and same and not log.dead:
            kept = [offset for offset in range(gap.start, gap.end) if offset in log.records]
            problems += [f"record {log.incarnation}/{offset} was given up, and Kafka has it" for offset in kept]
    return problems


def _stepped_over(world: World) -> list[str]:
    """Records of the present logs below the committed offset that no generation has."""
    problems: list[str] = []
    last = world.watchdog.history[-1]
    for topic in last.topics.values():
        since = [s for s in world.watchdog.history if (s.resets, _number(s)) == (last.resets, _number(last))]
        for partition, at in topic.partitions.items():
            log = world.kafka.logs.get(partition)
            if log is None or world.kafka.id != world.kafka.name(topic.id) or not log.dead:
                continue
            starts = {
                (t.generation, s.start)
                for state in since
                for t in state.topics.values()
                for p, s in t.partitions.items()
                if p == partition and world.kafka.name(t.id) == world.kafka.id
                if t.generation not in world.watchdog.abandoned
            }
            generations = tuple(sorted({generation for generation, _ in starts}))
            move = Move(world.kafka.id, topic.generation, partition, min(start for _, start in starts), at.offset)
            problems += _unaccounted(world, log, log.written, move, generations)
    return problems


def _number(state: SinkState) -> int:
    """A full refresh begins again, as a reset does."""
    return state.refresh.number if state.refresh else 0


def _unaccounted(world: World, log: Log, branch: Records, move: Move, generations: tuple[int, ...]) -> list[str]:
    """Records of a branch within the move that are in no object of these generations, and not accounted for."""
    places = {(generation, move.partition) for generation in generations}
    gaps = [g for g in world.watchdog.gaps() if (g.generation, g.partition) in places]
    skipped = world.watchdog.skipped()
    problems: list[str] = []
    for offset, value in branch.items():
        if move.start <= offset < move.end:
            left_out = any((*place, offset) in skipped for place in places)
            holders = [key for g in generations for key in world.watchdog.holders.get((g, value), [])]
            problems += _judge(world, log, offset, value, gaps, holders, left_out=left_out)
    return problems


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
    if holders and lost and world.conditional and not log.dead:
        return [f"{record} is noted as lost, yet it is in {sorted(set(holders))}"]
    return [] if holders or lost else [f"{record} is committed, and in no object"]
