"""Scenarios that once broke the protocol, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

from s3sink_job.base.errors import FencedError, FinalError, S3SinkError
from s3sink_job.flush.manifest import GapReason
from tests.protocol.drivers import INTERVAL, RECORDS, ModelDriver, model_parts
from tests.protocol.proofs import try_older_state
from tests.protocol.store import Stored
from tests.protocol.stories import (
    First,
    commit_and_die,
    manifest_without_an_answer,
    prove,
    remade_while_read,
    remake,
    replaced_before_it_sends,
)
from tests.protocol.world import Crash, Direct, Fate, Reset, World

FOREIGN = Stored(b"precious", '"foreign"', {})


def drain(world: World, driver: ModelDriver) -> None:
    """A run that ends does so within a few steps."""
    for _ in range(10):
        world.now += INTERVAL
        driver.step()
        if driver.finished:
            return
    pytest.fail("it never ends")


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    with model_parts(world):
        yield world


def test_a_lost_upload_is_written_again_from_kafka(world: World) -> None:
    commit_and_die(world)

    prove(world)

    assert len(world.watchdog.holders) == RECORDS


def test_lost_dead_letters_are_written_again_from_kafka_twice_if_need_be(world: World) -> None:
    world.bad_records = "DeadLetter"
    commit_and_die(world)
    with suppress(Crash):
        repairing = ModelDriver(world, Direct("repairs", First("complete", Fate.CRASH_BEFORE)))
        for _ in range(3):
            repairing.step()
    for upload_id in list(world.store.uploads):
        world.store.abort(upload_id)

    prove(world)

    assert list(world.watchdog.letters) == [(1, 0, 0)]
    assert len(world.watchdog.holders) == RECORDS - 1


def test_a_driver_that_was_replaced_before_it_sends_dead_letters_sends_none(world: World) -> None:
    world.bad_records = "Topic"

    replaced_before_it_sends(world)

    assert list(world.watchdog.letters) == [(1, 0, 0), (1, 0, RECORDS)]


def test_an_older_state_is_refused_if_dead_letters_of_a_later_flush_were_sent(world: World) -> None:
    """That flush has no object by which it could be noticed."""
    world.bad_records, log = "Topic", world.kafka.logs[0]
    driver = ModelDriver(world, Direct("only"))
    log.append(1, hole=0, bad=False)
    prove(world, driver)
    older = world.watchdog.history[-1]
    log.append(1, hole=0, bad=True)
    prove(world, driver)

    try_older_state(world, older)


def test_staged_dead_letters_that_somebody_deleted_are_staged_again(world: World) -> None:
    world.bad_records = "Topic"
    commit_and_die(world)
    for key in world.store.keys(".s3sink/default/model/letters/"):
        del world.store.objects[key]

    prove(world)

    assert list(world.watchdog.letters) == [(1, 0, 0)]
    assert world.store.keys(".s3sink/default/model/letters/") == [], "nothing stays staged"


def test_a_lost_upload_without_its_records_is_recorded_as_a_gap(world: World) -> None:
    commit_and_die(world)
    world.kafka.logs[0].retain_from(RECORDS - 1)

    prove(world)

    (gap,) = world.watchdog.gaps()
    assert (gap.start, gap.end, gap.reason) == (0, RECORDS - 1, GapReason.UPLOAD_LOST)


@pytest.mark.parametrize("request_name", ["describe", "offsets", "read", "create", "part", "put"])
def test_a_lost_upload_is_not_forgotten_when_writing_it_again_fails_once(world: World, request_name: str) -> None:
    commit_and_die(world)
    swap = First("put", Fate.DONE) if request_name == "put" else None
    fault = First(request_name, Fate.LOST)

    def fates(name: str, writes: bool) -> Fate:
        # The first put of a driver is its takeover; the next one is the manifest of the repair.
        if swap is not None and not swap.over:
            return swap(name, writes)
        return fault(name, writes)

    driver = ModelDriver(world, Direct("second", fates))
    with suppress(S3SinkError):
        driver.step()
    assert fault.over
    stored = world.watchdog.history[-1]
    assert stored.lost or stored.publishing, "the state goes on naming it"

    prove(world, driver)


def test_a_topic_recreated_during_a_repair_adds_none_of_its_records_to_the_object(world: World) -> None:
    commit_and_die(world)

    driver = ModelDriver(world, Direct("second", First("read", then=lambda: remake(world, RECORDS))))

    prove(world, driver)


@pytest.mark.parametrize("new_records", [0, 1, RECORDS * 2])
def test_the_gap_of_a_deleted_topic_is_recorded_though_that_failed_once(world: World, new_records: int) -> None:
    log = world.kafka.logs[0]
    log.append(RECORDS, hole=0, bad=False)
    faults = First("nothing yet")
    driver = ModelDriver(world, Direct("only", faults))
    driver.step()
    log.append(2, hole=0, bad=False)
    driver.step()
    assert world.watchdog.history[-1].offset("t", 0) == RECORDS
    remake(world, new_records)

    faults.start, faults.fate = "put", Fate.LOST
    with pytest.raises(S3SinkError):
        driver.step()
    prove(world, driver)

    (gap,) = world.watchdog.gaps()
    assert (gap.start, gap.end, gap.reason) == (RECORDS, RECORDS + 2, GapReason.TOPIC_REMADE)


def test_a_topic_recreated_while_it_is_read_adds_nothing_to_the_flush(world: World) -> None:
    remade_while_read(world)


def test_a_manifest_without_an_answer_is_never_mistaken_for_the_next_one(world: World) -> None:
    manifest_without_an_answer(world)


@pytest.mark.parametrize("new_partitions", [1, 2])
def test_a_run_once_ends_though_its_topic_was_recreated_with_fewer_records(world: World, new_partitions: int) -> None:
    """Otherwise it would wait for records of the old topic, and the Job would never end."""
    world.kafka.add_partition()
    for log in world.kafka.logs.values():
        log.append(2 * RECORDS, hole=0, bad=False)

    def made_anew() -> None:
        world.kafka.delete()
        world.kafka.make(new_partitions)
        world.kafka.logs[0].append(2, hole=0, bad=False)

    driver = ModelDriver(world, Direct("once", First("read", then=made_anew)), run="Once")

    drain(world, driver)
    prove(world)


@pytest.mark.parametrize(
    ("position", "start"),
    [("Earliest", 0), ("Latest", 2 * RECORDS), ("Timestamp", RECORDS)],
    ids=str,
)
def test_a_reset_begins_at_its_position_under_new_names_and_loses_no_record(
    world: World, position: str, start: int
) -> None:
    world.kafka.logs[0].append(2 * RECORDS, hole=0, bad=False)
    with suppress(Crash):
        ModelDriver(world, Direct("dies", First("complete", Fate.CRASH_BEFORE))).step()
    world.reset = Reset("again", position)

    prove(world)

    topic = world.watchdog.history[-1].topics["t"]
    assert (topic.generation, topic.partitions[0].start) == (2, start)
    assert len([at for at in world.watchdog.holders if at[0] == 1]) == 2 * RECORDS
    assert len([at for at in world.watchdog.holders if at[0] == 2]) == 2 * RECORDS - start


def test_a_manifest_that_goes_back_to_an_older_reset_or_to_none_resets_nothing(world: World) -> None:
    """As Argo CD does after its reset action was used."""
    world.kafka.logs[0].append(RECORDS, hole=0, bad=False)
    for reset in (Reset("git"), Reset("action"), Reset("git"), None, Reset("action")):
        world.reset = reset
        prove(world)

    state = world.watchdog.history[-1]
    assert [done.nonce for done in state.resets] == ["git", "action"]
    assert state.topics["t"].generation == 2


def test_a_sink_that_never_ran_begins_where_its_reset_says(world: World) -> None:
    world.kafka.logs[0].append(RECORDS, hole=0, bad=False)
    world.reset = Reset("first", "Latest")

    prove(world)

    state = world.watchdog.history[-1]
    assert (state.topics["t"].generation, state.topics["t"].partitions[0].start) == (1, RECORDS)
    assert [done.nonce for done in state.resets] == ["first"]


def test_a_topic_missing_during_a_reset_is_later_read_from_its_earliest_offset(world: World) -> None:
    log = world.kafka.logs[0]
    log.append(RECORDS, hole=0, bad=False)
    prove(world)
    logs, world.kafka.logs = world.kafka.logs, {}
    world.reset = Reset("again")
    driver = ModelDriver(world, Direct("second"))
    driver.step()
    assert driver.problems["t", 0].reason == "TopicMissing"
    assert world.watchdog.history[-1].topics["t"].partitions == {}
    world.kafka.logs = logs

    prove(world, driver)

    topic = world.watchdog.history[-1].topics["t"]
    assert (topic.generation, topic.partitions[0].start) == (2, 0)


def test_a_reset_to_latest_waits_for_a_missing_topic(world: World) -> None:
    """Otherwise it would later start at its earliest offset, which was not requested."""
    world.kafka.logs[0].append(RECORDS, hole=0, bad=False)
    prove(world)
    logs, world.kafka.logs = world.kafka.logs, {}
    world.reset = Reset("again", "Latest")
    driver = ModelDriver(world, Direct("second"))
    with pytest.raises(FinalError, match=r"t\. The reset to Latest waits for it") as caught:
        driver.step()
    assert caught.value.reason == "TopicMissing"
    assert world.watchdog.history[-1].resets == ()
    world.kafka.logs = logs

    prove(world, driver)

    topic = world.watchdog.history[-1].topics["t"]
    assert (topic.generation, topic.partitions[0].start) == (2, RECORDS)


def test_a_run_once_with_a_reset_drains_what_the_reset_asks_for(world: World) -> None:
    world.kafka.logs[0].append(2 * RECORDS, hole=0, bad=False)
    prove(world)
    world.reset = Reset("again")
    driver = ModelDriver(world, Direct("once"), run="Once")
    drain(world, driver)
    assert len([at for at in world.watchdog.holders if at[0] == 2]) == 2 * RECORDS


def test_a_driver_that_was_paused_during_a_repair_is_fenced(world: World) -> None:
    """It must not ask to move the repaired object away: that would lose its records."""
    world.kafka.logs[0].append(RECORDS, hole=0, bad=False)

    def others_go_on() -> None:
        for upload_id in list(world.store.uploads):
            world.store.abort(upload_id)
        prove(world)

    sleeper = ModelDriver(world, Direct("sleeper", First("complete", then=others_go_on)))

    with pytest.raises(FencedError):
        sleeper.step()


def test_a_foreign_object_under_our_key_is_never_overwritten_and_named(world: World) -> None:
    world.kafka.logs[0].append(RECORDS, hole=0, bad=False)
    key = f"t/0/{0:019d}.txt"
    world.store.objects[key] = FOREIGN
    driver = ModelDriver(world, Direct("only"))

    for _ in range(3):
        with pytest.raises(S3SinkError, match=key) as refused:
            driver.step()
        assert refused.value.reason == "KeyTaken"
    assert world.store.objects.pop(key) == FOREIGN

    prove(world, driver)


def test_a_run_once_waits_for_a_partition_that_had_no_leader_when_it_began(world: World) -> None:
    """Otherwise it would end as if everything were written."""
    world.kafka.add_partition()
    for log in world.kafka.logs.values():
        log.append(RECORDS, hole=0, bad=False)
    prove(world)
    for log in world.kafka.logs.values():
        log.append(RECORDS, hole=0, bad=False)
    world.kafka.leaderless = {1}
    driver = ModelDriver(world, Direct("once"), run="Once")

    driver.step()
    driver.step()
    assert not driver.finished
    world.kafka.leaderless = set()
    drain(world, driver)

    assert world.watchdog.history[-1].offset("t", 1) == 2 * RECORDS
    assert driver.problems == {}


def test_a_run_once_gives_up_a_partition_without_a_leader_as_retryable(world: World) -> None:
    world.kafka.add_partition()
    prove(world)
    world.kafka.leaderless = {1}
    driver = ModelDriver(world, Direct("once"), run="Once")

    for _ in range(40):
        world.now += INTERVAL
        driver.step()

    assert driver.finished
    assert driver.gave_up


def test_a_run_once_drains_a_truncated_log_and_all_other_partitions(world: World) -> None:
    world.kafka.add_partition()
    for log in world.kafka.logs.values():
        log.append(4 * RECORDS, hole=0, bad=False)

    def cut() -> None:
        world.kafka.logs[0].cut(1)
        world.kafka.logs[0].append(RECORDS, hole=0, bad=False)

    # While it reads: what it read of the first partition cannot be committed any more.
    driver = ModelDriver(world, Direct("once", First("read", then=cut)), run="Once")
    drain(world, driver)
    world.kafka.logs[0].cut(1)
    world.kafka.logs[0].append(2 * RECORDS, hole=0, bad=False)
    world.kafka.logs[1].append(RECORDS, hole=0, bad=False)
    again = ModelDriver(world, Direct("again"), run="Once")
    again.step()
    world.kafka.logs[0].cut(2)
    world.kafka.logs[0].append(3 * RECORDS, hole=0, bad=False)
    drain(world, again)

    stored = world.watchdog.history[-1]
    assert {p: stored.offset("t", p) for p in (0, 1)} == {p: log.end for p, log in world.kafka.logs.items()}
    prove(world)
