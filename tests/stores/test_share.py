"""A store that throttles gets fewer requests at a time, and more again once it takes them."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from e2e.parts.proxy import Call, FaultProxy, Request, Status, request_is
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.share import PARALLEL, Share


class Counting:
    """How many requests are at the store at a time."""

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


def test_no_more_requests_are_under_way_than_the_share_allows(through: Bucket, proxy: FaultProxy) -> None:
    seen = Counting()
    proxy.on(request_is("PUT"), Call(before=seen.enter, after=seen.leave))
    through.share = Share(3)

    put_many(through, 40)

    assert seen.most == 3


def test_throttling_halves_the_share_and_every_request_still_gets_through(through: Bucket, proxy: FaultProxy) -> None:
    proxy.on(request_is("PUT"), Status(503, "SlowDown"), times=1, skip=20)

    put_many(through, 60)

    assert (through.share.now, through.share.throttled) == (PARALLEL // 2, 1)
    assert len(list(through.list("k/"))) == 60


def test_a_burst_of_throttled_answers_halves_once_and_the_least_is_one() -> None:
    share = Share()
    together = [share.begin() for _ in range(PARALLEL)]
    for began in together:
        share.halve(began)
        share.end()
    assert (share.now, share.throttled) == (PARALLEL // 2, PARALLEL)
    for _ in range(5):
        share.halve(share.begin())
        share.end()
    assert share.now == 1


def test_the_share_follows_the_lowest_of_the_tasks_and_grows_by_one() -> None:
    share = Share()
    share.follow(2)
    assert share.now == 2
    share.follow(None)
    assert share.now == 3
    for _ in range(20):
        share.follow(None)
    assert share.now == PARALLEL
