"""One look at a time for each sink, and no change is forgotten."""

from __future__ import annotations

import asyncio

from s3sink_operator.model import Key
from s3sink_operator.queue import WorkQueue

A, B = Key("ns", "a"), Key("ns", "b")


async def soon(queue: WorkQueue) -> tuple[Key, bool] | None:
    try:
        return await asyncio.wait_for(queue.get(), 0.05)
    except TimeoutError:
        return None


def test_many_changes_are_one_look_and_the_strongest_wish_wins() -> None:
    async def check() -> None:
        queue = WorkQueue()
        queue.add(A, afresh=False)
        queue.add(A, afresh=True)
        queue.add(A, afresh=False)
        assert await soon(queue) == (A, True)
        assert await soon(queue) is None

    asyncio.run(check())


def test_a_change_during_a_look_is_looked_at_afterwards_and_others_are_not_held_up() -> None:
    async def check() -> None:
        queue = WorkQueue()
        queue.add(A, afresh=True)
        await queue.get()
        queue.add(A, afresh=True)
        queue.add(B, afresh=False)
        assert await soon(queue) == (B, False)
        assert await soon(queue) is None
        queue.done(A)
        assert await soon(queue) == (A, True)

    asyncio.run(check())


def test_the_earliest_of_two_later_looks_counts() -> None:
    async def check() -> None:
        queue = WorkQueue()
        queue.add_later(A, 10.0)
        queue.add_later(A, 0.01)
        queue.add_later(A, 5.0)
        assert await asyncio.wait_for(queue.get(), 1.0) == (A, True)

    asyncio.run(check())


def test_a_waiting_worker_wakes_up() -> None:
    async def check() -> None:
        queue = WorkQueue()
        waiting = asyncio.create_task(queue.get())
        await asyncio.sleep(0.01)
        queue.add(B, afresh=True)
        assert await asyncio.wait_for(waiting, 1.0) == (B, True)

    asyncio.run(check())
