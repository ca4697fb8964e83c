"""One request for a driver's /status."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

import aiohttp

from s3sink_api import ports
from s3sink_operator.values.driver_report import DriverReport, InvalidReport, parse_report
from s3sink_operator.values.objects import Document, Pod

LARGEST_REPORT = 1 << 20
_LONGEST_PROBLEM = 300
_LONGEST_ETAG = 128
_NO_ANSWER = (aiohttp.ClientError, TimeoutError, OSError)


@dataclass(frozen=True)
class PollResult:
    """What the last polls of a driver brought."""

    report: DriverReport | None = None
    problem: str = ""
    """Why the last poll failed."""
    etag: str = ""
    """Of the last report: a driver whose report has not changed answers 304."""


async def poll_driver(session: aiohttp.ClientSession, pod: Pod, port: int, before: PollResult) -> PollResult:
    """The new report; or the former one, with the problem. `before` is of the same pod."""
    try:
        return await _request(session, pod, port, before)
    except InvalidReport as error:
        return replace(before, problem=str(error)[:_LONGEST_PROBLEM])
    except _NO_ANSWER as error:
        cause = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return replace(before, problem=f"no answer from {pod.ip}:{port} ({cause})"[:_LONGEST_PROBLEM])


async def _request(session: aiohttp.ClientSession, pod: Pod, port: int, before: PollResult) -> PollResult:
    headers = {"Accept": "application/json"} | ({"If-None-Match": before.etag} if before.etag else {})
    url = f"http://{_host(pod.ip)}:{port}{ports.STATUS}"
    # No redirects: a driver must not send the operator to another host.
    async with session.get(url, headers=headers, allow_redirects=False) as answer:
        now = datetime.now(UTC)
        if answer.status == 304 and before.report is not None:
            return replace(before, problem="", report=replace(before.report, received=now, changed=now))
        if answer.status != 200:
            raise InvalidReport(f"{pod.ip}:{port} answered HTTP {answer.status}")
        document = parse_report(await _body(answer))
    report = DriverReport(document, now, pod.name, _last_change(before.report, document, now))
    return PollResult(report, "", _etag(answer))


def _host(ip: str) -> str:
    return f"[{ip}]" if ":" in ip else ip


async def _body(answer: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in answer.content.iter_any():
        body += chunk
        if len(body) > LARGEST_REPORT:
            raise InvalidReport("the report is larger than 1 MiB")
    return bytes(body)


def _etag(answer: aiohttp.ClientResponse) -> str:
    etag = answer.headers.get("ETag", "")
    return etag if len(etag) <= _LONGEST_ETAG else ""


def _last_change(before: DriverReport | None, document: Document, now: datetime) -> datetime:
    """When `reportedAt` last changed, by our clock."""
    if before is None or before.document.get("reportedAt") != document.get("reportedAt"):
        return now
    return before.changed or before.received
