"""Asking drivers how they are, and telling only when that changes something.

A thousand drivers are asked all the time, so that a report like the last one must cost next to nothing: the driver
answers that it is the same, and nobody decides anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp

from s3sink_operator.decide.reports import is_fresh, read_report
from s3sink_operator.decide.status import current_pod, urgent
from s3sink_operator.logs import log
from s3sink_operator.model import Document, Key, Pod, Report
from s3sink_operator.settings import Settings
from s3sink_operator.store import Store

LARGEST_REPORT = 1 << 20
AT_ONCE = 64
MOST_A_SECOND = 50
"""Reports asked for in a second: with many sinks each is asked less often."""
KEPT = 120.0
"""Seconds that a connection to a driver is kept without use."""
_LONGEST_PROBLEM = 300

Ask = Callable[[Key], Awaitable[None]]


class NoReport(Exception):
    """What came instead of a report."""


@dataclass(frozen=True)
class Heard:
    """What is known of a sink's driver by asking it."""

    report: Report | None = None
    problem: str = ""
    """Why the last question had no answer."""
    tag: str = ""
    """The driver's name for the content of its report."""


@dataclass(frozen=True)
class _Told:
    """What was told of a sink last, so that the same is not told again."""

    gist: Any = None
    report: Document | None = None
    at: datetime | None = None


@dataclass
class Poller:
    store: Store
    settings: Settings
    tell: Callable[[Key], None]
    failed: Callable[[], None]
    _heard: dict[Key, Heard] = field(default_factory=dict)
    _told: dict[Key, _Told] = field(default_factory=dict)
    _count: int = 0
    _new: asyncio.Queue[Key] = field(default_factory=asyncio.Queue)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when everyone was asked once: before that a driver that is well looks like one that is silent."""

    def heard(self, key: Key) -> Heard:
        return self._heard.get(key, Heard())

    def saw_pods(self, key: Key) -> None:
        """Something changed about its pods: a driver that was never asked is asked at once."""
        pod, report = _reporting(self.store.pods(key)), self.heard(key).report
        if pod is not None and (report is None or report.pod != pod.name):
            self._new.put_nowait(key)

    def stale_after(self) -> float:
        """Longer where there are so many sinks that each is asked seldom."""
        return max(self.settings.stale_after, 3 * self._interval(self._count))

    async def run(self) -> None:
        """Every sink once in each interval, spread over it."""
        timeout = aiohttp.ClientTimeout(total=self.settings.report_timeout)
        # Straight to the pods, whatever proxy the environment names. Connections are kept: a new one for each question
        # takes four times as long.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT)
        session = aiohttp.ClientSession(
            connector=connector,
            timeout=timeout,
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )
        async with session:
            slots = asyncio.Semaphore(AT_ONCE)
            async with asyncio.TaskGroup() as questions:

                async def ask(key: Key) -> None:
                    if (pod := _reporting(self.store.pods(key))) is not None:
                        await slots.acquire()
                        question = questions.create_task(self._ask(session, key, pod))
                        question.add_done_callback(lambda _: slots.release())

                await self._ask_all(ask, pause=False)
                for _ in range(AT_ONCE):
                    await slots.acquire()
                self.asked.set()
                for _ in range(AT_ONCE):
                    slots.release()
                questions.create_task(self._ask_new(ask))
                while True:
                    await self._ask_all(ask)

    async def _ask_new(self, ask: Ask) -> None:
        while True:
            await ask(await self._new.get())

    async def _ask_all(self, ask: Ask, *, pause: bool = True) -> None:
        keys = self.store.sinks()
        self._count = len(keys)
        self._forget(set(keys))
        interval = self._interval(len(keys))
        batches = _batches(keys, interval)
        for batch in batches:
            for key in batch:
                await ask(key)
            await asyncio.sleep(interval / len(batches) if pause else 0)

    def _interval(self, sinks: int) -> float:
        return max(self.settings.poll_every, sinks / MOST_A_SECOND)

    def _forget(self, keys: set[Key]) -> None:
        for known in (self._heard, self._told):
            for key in known.keys() - keys:
                del known[key]

    async def _ask(self, session: aiohttp.ClientSession, key: Key, pod: Pod) -> None:
        before = self.heard(key)
        if before.report is None or before.report.pod != pod.name:
            before = Heard()
        try:
            heard = await self._question(session, pod, before)
        except (aiohttp.ClientError, TimeoutError, OSError, NoReport) as error:
            self.failed()
            words = str(error) if isinstance(error, NoReport) else _no_answer(pod, self.settings.driver_port, error)
            heard = replace(before, problem=words[:_LONGEST_PROBLEM])
        except Exception as error:
            # Of one driver among many: what it said must not end the asking of all others.
            self.failed()
            log.exception("asking failed", extra={"fields": {"sink": str(key)}})
            heard = replace(before, problem=f"asking it failed with {type(error).__name__}, see the operator's log")
        self._heard[key] = heard
        self._tell(key, heard)

    async def _question(self, session: aiohttp.ClientSession, pod: Pod, before: Heard) -> Heard:
        headers = {"Accept": "application/json"} | ({"If-None-Match": before.tag} if before.tag else {})
        url = f"http://{_host(pod.ip)}:{self.settings.driver_port}/status"
        # A driver must not send the operator elsewhere.
        async with session.get(url, headers=headers, allow_redirects=False) as answer:
            now = datetime.now(UTC)
            if answer.status == 304 and before.report is not None:
                return replace(before, problem="", report=replace(before.report, heard=now, changed=now))
            if answer.status != 200:
                raise NoReport(f"{pod.ip}:{self.settings.driver_port} answers with HTTP {answer.status}")
            document = read_report(await _body(answer))
        if isinstance(document, str):
            raise NoReport(document)
        return Heard(Report(document, now, pod.name, _changed(before.report, document, now)), "", _tag(answer))

    def _tell(self, key: Key, heard: Heard) -> None:
        """Only what the status would show: another state at once, other figures now and then."""
        told, report, now = self._told.get(key, _Told()), heard.report, datetime.now(UTC)
        if report is not None and told.report is report.document and not heard.problem:
            return
        fresh = report is not None and is_fresh(report, now, self.stale_after())
        gist = (report.pod, urgent(report.document)) if report is not None and fresh else heard.problem
        due = told.at is None or now - told.at >= timedelta(seconds=self.settings.figures_every)
        if gist != told.gist or (due and report is not None and not _same(report.document, told.report)):
            self._told[key] = _Told(gist, report.document if report is not None and fresh else None, now)
            self.tell(key)


def _batches(keys: list[Key], interval: float) -> list[list[Key]]:
    """One for each second, if there are so many: to wake up for every single one costs more than the question."""
    size = max(1, round(len(keys) / interval))
    return [keys[start : start + size] for start in range(0, len(keys), size)] or [[]]


def _reporting(pods: tuple[Pod, ...]) -> Pod | None:
    pod = current_pod(pods)
    return pod if pod is not None and pod.ip and pod.ready and pod.ended is None else None


def _host(ip: str) -> str:
    return f"[{ip}]" if ":" in ip else ip


async def _body(answer: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in answer.content.iter_any():
        body += chunk
        if len(body) > LARGEST_REPORT:
            raise NoReport("its report is larger than 1 MiB")
    return bytes(body)


def _tag(answer: aiohttp.ClientResponse) -> str:
    tag = answer.headers.get("ETag", "")
    return tag if len(tag) <= 128 else ""


def _changed(before: Report | None, document: Document, now: datetime) -> datetime:
    """When it was made by the driver's clock, told by ours."""
    if before is None or before.document.get("reportedAt") != document.get("reportedAt"):
        return now
    return before.changed or before.heard


def _same(one: Document, other: Document | None) -> bool:
    """But for the time they were made at."""
    return other is not None and {**one, "reportedAt": ""} == {**other, "reportedAt": ""}


def _no_answer(pod: Pod, port: int, error: BaseException) -> str:
    return f"{pod.ip}:{port} does not answer ({type(error).__name__}{f': {error}' if str(error) else ''})"
