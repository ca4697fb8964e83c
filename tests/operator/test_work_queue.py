"""One reconciliation at a time for each sink, and no change is lost."""

from __future__ import annotations

import asyncio

from s3sink_operator.process.work_queue import WorkQueue
from s3sink_operator.values.objects import SinkKey

A, B = SinkKey("ns", "a"), SinkKey("ns", "b")


async def soon(queue: WorkQueue) -> SinkKey | None:
    try:
        return await asyncio.wait_for(queue.get(), 0.05)
    except TimeoutError:
        return None


def test_many_changes_are_one_reconciliation_and_its_wait_is_measured() -> None:
    async def check() -> None:
        waits: list[float] = []
        queue = WorkQueue(waits.append)
        queue.add(A)
        await asyncio.sleep(0.05)
        queue.add(A)
        assert await soon(queue) == A
        assert await soon(queue) is None
        assert len(waits) == 1
        assert waits[0] >= 0.04

    asyncio.run(check())


def test_a_change_during_a_reconciliation_is_queued_again() -> None:
    async def check() -> None:
        queue = WorkQueue()
        queue.add(A)
        await queue.get()
        queue.add(A)
        queue.add(B)
        assert await soon(queue) == B
        assert await soon(queue) is None
        queue.done(A)
        assert await soon(queue) == A

    asyncio.run(check())


def test_the_earliest_timer_counts() -> None:
    async def check() -> None:
        queue = WorkQueue()
        queue.add_later(A, 10.0)
        queue.add_later(A, 0.01)
        queue.add_later(A, 5.0)
        assert await asyncio.wait_for(queue.get(), 1.0) == A

    asyncio.run(check())


def test_a_waiting_worker_wakes_up() -> None:
    async def check() -> None:
        queue = WorkQueue()
        waiting = asyncio.create_task(queue.get())
        await asyncio.sleep(0.01)
        queue.add(B)
        assert await asyncio.wait_for(waiting, 1.0) == B

    asyncio.run(check())
