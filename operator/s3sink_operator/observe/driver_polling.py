"""Polls all drivers, and requeues a sink only when its status would change.

With a thousand drivers an unchanged report must cost next to nothing: the driver answers 304, and nothing is decided.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp

from s3sink_operator.decide.status.new_status import current_pod, urgent_part
from s3sink_operator.logs import log
from s3sink_operator.observe.driver_status import PollResult, poll_driver
from s3sink_operator.observe.object_cache import ObjectCache
from s3sink_operator.settings import Settings
from s3sink_operator.values.objects import Document, Pod, SinkKey

CONCURRENT_POLLS = 64
POLLS_PER_SECOND = 50
"""With many sinks each is polled less often."""
KEEPALIVE = 120.0
"""Seconds that an idle connection to a driver stays open."""

Poll = Callable[[SinkKey], Awaitable[None]]


@dataclass(frozen=True)
class _Notified:
    """What the last notification about a sink was based on."""

    gist: Any = None
    report: Document | None = None
    at: datetime | None = None


@dataclass
class DriverPoller:
    cache: ObjectCache
    settings: Settings
    notify: Callable[[SinkKey], None]
    """Called for a sink whose status may have to change."""
    count_failure: Callable[[], None]
    _results: dict[SinkKey, PollResult] = field(default_factory=dict)
    _notified: dict[SinkKey, _Notified] = field(default_factory=dict)
    _sinks: int = 0
    _new_pods: asyncio.Queue[SinkKey] = field(default_factory=asyncio.Queue)
    all_polled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set after the first round. Before that a healthy driver looks like one that does not report."""

    def last_result(self, key: SinkKey) -> PollResult:
        return self._results.get(key, PollResult())

    def pods_changed(self, key: SinkKey) -> None:
        """Polls a new pod at once."""
        pod, report = _pollable(self.cache.pods(key)), self.last_result(key).report
        if pod is not None and (report is None or report.pod != pod.name):
            self._new_pods.put_nowait(key)

    def stale_after(self) -> float:
        """Longer if there are so many sinks that each is polled seldom."""
        return max(self.settings.stale_after, 3 * self._interval(self._sinks))

    async def run(self) -> None:
        """Polls every driver once in each interval, spread over it."""
        async with self._session() as session, asyncio.TaskGroup() as polls:
            slots = asyncio.Semaphore(CONCURRENT_POLLS)

            async def poll(key: SinkKey) -> None:
                if (pod := _pollable(self.cache.pods(key))) is not None:
                    await slots.acquire()
                    task = polls.create_task(self._poll(session, key, pod))
                    task.add_done_callback(lambda _: slots.release())

            await self._poll_all(poll, pause=False)
            for _ in range(CONCURRENT_POLLS):
                await slots.acquire()
            self.all_polled.set()
            for _ in range(CONCURRENT_POLLS):
                slots.release()
            polls.create_task(self._poll_new_pods(poll))
            while True:
                await self._poll_all(poll)

    def _session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            # Connections stay open: a new one for each poll takes four times as long.
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE),
            timeout=aiohttp.ClientTimeout(total=self.settings.report_timeout),
            # Pods are reached directly, never through a proxy from the environment.
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )

    async def _poll_new_pods(self, poll: Poll) -> None:
        while True:
            await poll(await self._new_pods.get())

    async def _poll_all(self, poll: Poll, *, pause: bool = True) -> None:
        keys = self.cache.sinks()
        self._sinks = len(keys)
        self._forget_others(set(keys))
        interval = self._interval(len(keys))
        batches = _batches(keys, interval)
        for batch in batches:
            for key in batch:
                await poll(key)
            await asyncio.sleep(interval / len(batches) if pause else 0)

    def _interval(self, sinks: int) -> float:
        return max(self.settings.poll_every, sinks / POLLS_PER_SECOND)

    def _forget_others(self, keys: set[SinkKey]) -> None:
        for known in (self._results, self._notified):
            for key in known.keys() - keys:
                del known[key]

    async def _poll(self, session: aiohttp.ClientSession, key: SinkKey, pod: Pod) -> None:
        before = self.last_result(key)
        if before.report is None or before.report.pod != pod.name:
            before = PollResult()
        try:
            result = await poll_driver(session, pod, self.settings.driver_port, before)
        except Exception as error:
            # An answer of one driver must not end the polling of all others.
            log.exception("operator error while polling a driver", extra={"fields": {"sink": str(key)}})
            result = replace(before, problem=f"polling failed with {type(error).__name__}, see the operator's log")
        if result.problem:
            self.count_failure()
        self._results[key] = result
        self._notify_if_needed(key, result)

    def _notify_if_needed(self, key: SinkKey, result: PollResult) -> None:
        """A change of conditions at once, a change of figures only from time to time."""
        last, report, now = self._notified.get(key, _Notified()), result.report, datetime.now(UTC)
        if report is not None and last.report is report.document and not result.problem:
            return
        fresh = report is not None and report.is_fresh(now, self.stale_after())
        gist = (report.pod, urgent_part(report.document)) if report is not None and fresh else result.problem
        due = last.at is None or now - last.at >= timedelta(seconds=self.settings.figures_every)
        if gist != last.gist or (due and report is not None and not _same(report.document, last.report)):
            self._notified[key] = _Notified(gist, report.document if report is not None and fresh else None, now)
            self.notify(key)


def _batches(keys: list[SinkKey], interval: float) -> list[list[SinkKey]]:
    """One batch for each second: a timer for every single driver costs more than the poll."""
    size = max(1, round(len(keys) / interval))
    return [keys[start : start + size] for start in range(0, len(keys), size)] or [[]]


def _pollable(pods: tuple[Pod, ...]) -> Pod | None:
    pod = current_pod(pods)
    return pod if pod is not None and pod.ip and pod.ready and pod.ended is None else None


def _same(one: Document, other: Document | None) -> bool:
    """Apart from the time of the report."""
    return other is not None and {**one, "reportedAt": ""} == {**other, "reportedAt": ""}
