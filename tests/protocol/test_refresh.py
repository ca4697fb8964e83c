"""Full refreshes in the simulation: broken off anywhere, one whole generation is there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace

import pytest

from s3sink_job.base.errors import FencedError, S3SinkError
from s3sink_job.commit.committer import Committer
from s3sink_job.commit.current_pointer import NAME, CurrentPointer
from s3sink_job.commit.former_objects import FormerObjects, _stored
from s3sink_job.driver import full_refresh
from s3sink_job.driver.full_refresh import FullRefresh
from s3sink_job.flush import transitions
from s3sink_job.flush.refresh import abandon_run, make_current
from s3sink_job.flush.state import RefreshPhase, SinkState
from s3sink_job.proof import orphaned_uploads
from tests.protocol.choosing import Seeded
from tests.protocol.drivers import INTERVAL, RECORDS, ModelDriver, model_parts
from tests.protocol.mutations import Patch, assert_needed
from tests.protocol.proofs import prove_everything_once, prove_level, prove_refreshed
from tests.protocol.simulation import Setting, simulate
from tests.protocol.store import TWICE, Stored
from tests.protocol.stories import First
from tests.protocol.test_every_fault import Counting
from tests.protocol.world import Crash, Direct, Fate, Violation, World

REQUESTS = 75
"""More than a run of two flushes that replaces a flush makes."""
FAULTS = [fate for fate in Fate if fate is not Fate.DONE]
FOREIGN = Stored(b"precious", '"foreign"', {})


def fill(world: World, count: int = RECORDS) -> None:
    world.kafka.logs[0].append(count, hole=1, bad=world.bad_records != "Skip")


def live(driver: ModelDriver, steps: int = 25) -> None:
    """As the loop does: continues after errors, until the run ends, or it is fenced or crashed."""
    with suppress(Crash, FencedError):
        for _ in range(steps):
            driver.world.now += INTERVAL / 2
            try:
                driver.step()
            except FencedError:
                raise
            except S3SinkError as error:
                driver.world.note(f"{driver.line.name}: {type(error).__name__}: {error}")
            if driver.finished:
                return


def refresh(world: World, run: str, name: str = "", fates: Callable[[str, bool], Fate] | None = None) -> ModelDriver:
    world.apply(None, run=run)
    return ModelDriver(world, Direct(name or run, *([fates] if fates else [])))


def prove_run(world: World, run: str) -> None:
    """Another pod of the same Job finishes the run; then the sink appends."""
    prove_refreshed(world, ModelDriver(world, Direct(f"{run}-again")))
    assert world.watchdog.history[-1].refresh.run == run
    fill(world)
    world.apply(None)
    prove_level(world, ModelDriver(world, Direct("appends")))
    prove_everything_once(world)


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    with model_parts(world):
        fill(world)
        prove_level(world, ModelDriver(world, Direct("before")))
        yield world


def test_no_seed_with_full_refreshes_loses_or_repeats_a_record() -> None:
    for seed in range(50):
        simulate(Seeded(seed), Setting(refresh=True))


@pytest.mark.long
@pytest.mark.parametrize("block", range(20))
@pytest.mark.parametrize("often", ["life_cycle", "kill", "read_and_remove", "gc"])
def test_no_seed_with_full_refreshes_loses_or_repeats_a_record_whatever_happens_often(often: str, block: int) -> None:
    for seed in range(block * 50, block * 50 + 50):
        simulate(Seeded(seed), Setting(refresh=True, often=(often,)))


def test_the_simulation_has_enough_runs_to_be_worth_something() -> None:
    worlds = [simulate(Seeded(seed), Setting(refresh=True, often=("life_cycle",))) for seed in range(1000, 1020)]
    states = [state for world in worlds for state in world.watchdog.history]

    assert sum(len(world.watchdog.runs) for world in worlds) > 2.5 * len(worlds)
    assert sum(len(world.watchdog.abandoned) for world in worlds) > len(worlds) / 3
    publishing = [s for s in states if s.refresh and s.refresh.phase is RefreshPhase.PUBLISHING]
    assert any(state.lost for state in publishing)
    assert sum("delete t/" in line for world in worlds for line in world.trace) > 2 * len(worlds)


@pytest.mark.parametrize("fate", FAULTS, ids=lambda fate: fate.name)
def test_a_fault_at_some_requests_of_a_run_leaves_one_whole_generation(fate: Fate) -> None:
    break_off_once(fate, "Topic", range(FAULTS.index(fate), REQUESTS, len(FAULTS)))


@pytest.mark.long
@pytest.mark.parametrize("fate", FAULTS, ids=lambda fate: fate.name)
@pytest.mark.parametrize("letters", ["Topic", "DeadLetter", "Skip"])
def test_one_fault_at_any_request_of_a_run_leaves_one_whole_generation(fate: Fate, letters: str) -> None:
    break_off_once(fate, letters, range(REQUESTS))


def break_off_once(fate: Fate, letters: str, requests: range) -> None:
    """A run of several flushes that replaces one. The next pod of its Job goes on with it."""
    for number in requests:
        world = World(twice=TWICE[number % len(TWICE)], bad_records=letters)
        with model_parts(world):
            fill(world)
            prove_level(world, ModelDriver(world, Direct("before")))
            counting = Counting(number, fate)
            driver = refresh(world, "run", fates=counting)
            driver.planner.limits = replace(driver.planner.limits, objects=1)
            fill(world)
            live(driver)
            while world.late:
                world.arrive(0)
            fill(world)
            prove_run(world, "run")
            assert world.watchdog.runs == ["run"]


@pytest.mark.parametrize("phase", list(RefreshPhase)[:3])
def test_a_driver_of_another_run_abandons_one_that_writes_and_finishes_any_other(
    world: World, phase: RefreshPhase
) -> None:
    stops = {"Writing": "get .s3sink/default/model/replay", "Publishing": "complete", "Removing": "put _current.json"}
    broken_off = refresh(world, "first", fates=First(stops[phase], Fate.CRASH_BEFORE))
    if phase is RefreshPhase.WRITING:
        broken_off = refresh(world, "first", fates=First("put .s3sink/default/model/flushes", Fate.CRASH_AFTER))
    live(broken_off)
    assert world.watchdog.history[-1].refresh.phase is phase
    fill(world)

    live(refresh(world, "second"))

    assert world.watchdog.runs == ["first", "second"]
    state = world.watchdog.history[-1]
    assert (state.refresh.run, state.refresh.phase) == ("second", RefreshPhase.DONE)
    assert bool(world.watchdog.abandoned) == (phase is RefreshPhase.WRITING)
    prove_run(world, "second")


def test_mode_append_goes_back_to_the_former_offsets_if_a_run_was_broken_off_while_it_wrote(world: World) -> None:
    before = world.watchdog.history[-1]
    driver = refresh(world, "run", fates=First("put .s3sink/default/model/flushes", Fate.CRASH_AFTER))
    live(driver)
    world.apply(None)
    fill(world)

    prove_level(world, ModelDriver(world, Direct("appends")))

    state = world.watchdog.history[-1]
    assert state.topics["t"].partitions[0].start == before.topics["t"].partitions[0].offset
    assert state.topics["t"].generation == 3
    assert next(iter(world.watchdog.committed)) in world.watchdog.present.values()
    prove_everything_once(world)


def test_uploads_lost_in_the_middle_of_a_run_are_written_again_before_anything_is_removed(world: World) -> None:
    def abort() -> None:
        for upload_id in list(world.store.uploads):
            world.store.abort(upload_id)

    live(refresh(world, "run", fates=First("complete", then=abort)))

    assert any(manifest.mends for manifest in world.watchdog.committed_manifests())
    prove_run(world, "run")


def test_a_run_whose_lost_uploads_cannot_be_written_again_does_not_replace_anything(world: World) -> None:
    before = set(world.store.keys("t/"))

    def abort() -> None:
        for upload_id in list(world.store.uploads):
            world.store.abort(upload_id)
        world.kafka.hidden = True

    driver = refresh(world, "run", fates=First("complete", then=abort))
    live(driver)

    assert world.watchdog.history[-1].refresh.phase is RefreshPhase.PUBLISHING
    assert before <= set(world.store.keys("t/"))
    world.kafka.hidden = False
    prove_run(world, "run")


def test_only_listed_objects_are_removed_and_foreign_ones_under_their_names_stay(world: World) -> None:
    mine = world.store.keys("t/")[0]
    world.store.objects[mine] = world.store.objects["t/0/by-hand.txt"] = FOREIGN

    live(refresh(world, "run"))

    assert world.watchdog.history[-1].refresh.phase is RefreshPhase.DONE
    assert world.store.objects[mine] == world.store.objects["t/0/by-hand.txt"] == FOREIGN


@pytest.mark.parametrize("checks", [True, False])
def test_a_stale_driver_cannot_put_an_earlier_run_back_into_the_pointer(
    world: World, checks: bool, monkeypatch: Patch
) -> None:
    """Without the check it can, and the simulation finds that."""
    if not checks:
        monkeypatch.setattr(CurrentPointer, "write", write_whatever_is_there)

    def finish_two_runs() -> None:
        live(ModelDriver(world, Direct("another pod")))
        live(refresh(world, "second"))

    live(refresh(world, "first", fates=First(f"put {NAME}", then=finish_two_runs)))

    with nullcontext() if checks else pytest.raises(Violation, match="went back from run 2 to 1"):
        world.check()


def removes_before_the_swap(patch: Patch) -> None:
    whole = FullRefresh._publish_next

    def publish_next(self: FullRefresh, committer: Committer) -> None:
        former = FormerObjects(committer, self._sink.id)
        state = committer.state
        for manifest in committer.ledger.chain(state.refresh.since, state.refresh.replaced):
            former._remove(_stored(manifest))
        whole(self, committer)

    patch.setattr(FullRefresh, "_publish_next", publish_next)


def becomes_current_without_lost_objects(patch: Patch) -> None:
    def current(state: SinkState, now: float, replays: str | None) -> SinkState:
        return make_current(replace(state, lost={}, publishing=None), now, replays)

    patch.setattr(full_refresh, "must_repair", lambda state: False)
    patch.setattr(full_refresh, "make_current", current)


def begins_anew_after_each_restart(patch: Patch) -> None:
    taken_over = FullRefresh.taken_over

    def start_over(self: FullRefresh, committer: Committer) -> None:
        taken_over(self, committer)
        if transitions.is_writing_run(committer.state):
            committer.swap(abandon_run(committer.state))

    patch.setattr(FullRefresh, "taken_over", start_over)


def publishes_while_it_writes(patch: Patch) -> None:
    patch.setattr(transitions, "is_writing_run", lambda state: False)


def lets_gc_abort_what_is_not_published(patch: Patch) -> None:
    patch.setattr(orphaned_uploads, "unpublished_since", lambda state: (None, None))


def write_whatever_is_there(self: CurrentPointer, state: SinkState) -> None:
    self.ledger.bucket.put(self.key, json.dumps(self.document(state)).encode())


RUNS = Setting(refresh=True)


@pytest.mark.parametrize(
    ("leave_out", "setting", "promise"),
    [
        (removes_before_the_swap, RUNS, "was removed, which is not replaced"),
        (becomes_current_without_lost_objects, Setting(refresh=True, often=("life_cycle",)), "is not there"),
        (begins_anew_after_each_restart, RUNS, "began twice"),
        (publishes_while_it_writes, RUNS, "became visible while run .* is writing"),
        (lets_gc_abort_what_is_not_published, Setting(refresh=True, often=("gc",)), "gc would abort"),
    ],
)
def test_every_rule_of_a_full_refresh_is_needed(
    leave_out: Callable[[Patch], None], setting: Setting, promise: str, monkeypatch: Patch
) -> None:
    assert_needed(leave_out, setting, promise, monkeypatch)
