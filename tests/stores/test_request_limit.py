"""A throttling store gets fewer parallel requests, and more again later."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.errors import Throttled
from s3sink_job.stores.request_limit import PARALLEL, RequestLimit
from tools.parts.proxy import Call, FaultProxy, Request, Status, request_is


class Counting:
    """Counts parallel requests."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()

    def enter(self, _: Request) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.02)

    def leave(self, _: Request) -> None:
        with self._lock:
            self.now -= 1


def put_many(bucket: Bucket, count: int) -> None:
    with ThreadPoolExecutor(2 * PARALLEL) as pool:
        list(pool.map(lambda number: bucket.put(f"k/{number}", b"x"), range(count)))


def throttled(limit: RequestLimit, before_the_answer: Callable[[], object] = lambda: None) -> None:
    """A request that the store answers with: slow down."""
    with suppress(Throttled), limit.slot():
        before_the_answer()
        raise Throttled("slow down")


def test_no_more_requests_are_in_flight_than_the_limit_allows(through: Bucket, proxy: FaultProxy) -> None:
    seen = Counting()
    proxy.on(request_is("PUT"), Call(before=seen.enter, after=seen.leave))
    through.limit = RequestLimit(3)

    put_many(through, 40)

    assert seen.most == 3


def test_throttling_halves_the_limit_and_every_request_still_succeeds(through: Bucket, proxy: FaultProxy) -> None:
    proxy.on(request_is("PUT"), Status(503, "SlowDown"), times=1, skip=20)

    put_many(through, 60)

    assert (through.limit.now, through.limit.throttled) == (PARALLEL // 2, 1)
    assert len(list(through.list("k/"))) == 60


def test_a_burst_of_throttled_answers_halves_once_and_the_limit_stays_above_zero() -> None:
    share = RequestLimit()
    with ThreadPoolExecutor(PARALLEL) as pool:
        together = threading.Barrier(PARALLEL)
        list(pool.map(lambda _: throttled(share, together.wait), range(PARALLEL)))
    assert (share.now, share.throttled) == (PARALLEL // 2, PARALLEL)
    for _ in range(5):
        throttled(share)
    assert share.now == 1


def test_the_limit_follows_the_lowest_of_the_tasks_and_grows_by_one() -> None:
    share = RequestLimit()
    share.adjust(2)
    assert share.now == 2
    share.adjust(None)
    assert share.now == 3
    for _ in range(20):
        share.adjust(None)
    assert share.now == PARALLEL
