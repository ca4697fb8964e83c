"""Positions of a restore: one that is missing for a moment is not lost, and one that stays missing is."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from s3sink_job.base.errors import S3SinkError
from s3sink_job.kafka.admin import Admin
from s3sink_job.proof.flush_history import PartitionGeneration
from s3sink_job.restore.plan import RestoreSlice
from s3sink_job.restore.positions import BETWEEN_LOOKS, Positions
from tests.harness import World

pytestmark = pytest.mark.spark


@pytest.fixture
def admin(world: World) -> Iterator[Admin]:
    world.kafka.create_topic(world.topic, 2)
    with closing(Admin(world.spark._jvm, {"bootstrap.servers": world.kafka.bootstrap})) as opened:
        yield opened


def positions(world: World, admin: Admin, *partitions: int) -> Positions:
    slices = [RestoreSlice(PartitionGeneration(world.topic, 1, n), world.topic, n, ()) for n in partitions]
    return Positions(admin, f"restore.{world.topic}", slices, {world.topic: 2})


def test_a_position_that_the_brokers_leave_out_for_a_moment_is_read(world: World, admin: Admin) -> None:
    positions(world, admin, 0).begin()
    whole = positions(world, admin, 0, 1)

    def later() -> None:
        time.sleep(2 * BETWEEN_LOOKS)
        whole.begin()

    thread = threading.Thread(target=later)
    thread.start()
    try:
        assert [found.row for found in whole.read()] == [0, 0]
    finally:
        thread.join()


def test_a_position_that_stays_away_is_refused_by_its_partition(world: World, admin: Admin) -> None:
    positions(world, admin, 0).begin()
    with pytest.raises(S3SinkError, match=f"no position of {world.topic}-1 any more") as raised:
        positions(world, admin, 0, 1).read()
    assert raised.value.reason == "ProgressLost"
