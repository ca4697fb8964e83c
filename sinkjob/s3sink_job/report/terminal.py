"""A line of progress on a terminal, redrawn in place, with a bar while there is a backlog."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table

from s3sink_job.report.status import Reporter

REDRAWS_PER_SECOND = 4
BAR_WIDTH = 24


@contextmanager
def progress_line(reporter: Reporter, *, enabled: bool) -> Iterator[None]:
    if not enabled:
        yield
        return
    spinner = Spinner("dots")
    with Live(
        get_renderable=lambda: render(reporter, spinner, time.time()),
        console=Console(stderr=True),
        refresh_per_second=REDRAWS_PER_SECOND,
        transient=True,
    ):
        yield


def render(reporter: Reporter, spinner: Spinner, now: float) -> RenderableType:
    estimate = reporter.estimate(now)
    spinner.update(text=status_line(reporter, now))
    if estimate is None:
        return spinner
    row = Table.grid(padding=(0, 1))
    row.add_row(ProgressBar(completed=estimate.share * 100, width=BAR_WIDTH), spinner)
    return row


def status_line(reporter: Reporter, now: float) -> str:
    status = reporter.status()
    flush, lag, retry = status["flush"], status.get("lag", {}), status["retry"]
    parts = [status["phase"]]
    if (estimate := reporter.estimate(now)) is not None:
        parts.append(str(estimate))
    else:
        parts.append(f"{flush.get('totalRecords', 0):,} records in {flush.get('totalObjects', 0):,} objects")
        parts.append(f"{lag.get('records', 0):,} behind")
        if "nextDue" in flush and lag.get("records"):
            parts.append(f"next flush {flush['nextDue'][11:19]} UTC")
    if retry["attempts"]:
        parts.append(f"attempt {retry['attempts']}: {retry.get('lastError', '')[:80]}")
    return " · ".join(parts)
