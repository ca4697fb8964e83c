"""A line of progress for a person at a terminal, redrawn in place."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.status import Status

from s3sink_job.report.reporter import Reporter

EVERY = 0.5


@contextmanager
def watching(reporter: Reporter, *, enabled: bool) -> Iterator[None]:
    if not enabled:
        yield
        return
    done = threading.Event()
    with Status("starting", console=Console(stderr=True)) as status:

        def redraw() -> None:
            while not done.wait(EVERY):
                status.update(line(reporter))

        thread = threading.Thread(target=redraw, name="terminal", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


def line(reporter: Reporter) -> str:
    status = reporter.status()
    flush, lag, retry = status["flush"], status.get("lag", {}), status["retry"]
    parts = [
        status["phase"],
        f"{flush.get('totalRecords', 0):,} records in {flush.get('totalObjects', 0):,} objects",
        f"{lag.get('records', 0):,} behind",
    ]
    if "nextDue" in flush and lag.get("records"):
        parts.append(f"next flush {flush['nextDue'][11:19]} UTC")
    if retry["attempts"]:
        parts.append(f"attempt {retry['attempts']}: {retry.get('lastError', '')[:80]}")
    return " · ".join(parts)
