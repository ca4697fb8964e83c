"""The progress of `s3sink restore` on stderr, and its report as lines of text."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from s3sink_job.base.times import iso
from s3sink_job.report.progress import Estimate
from s3sink_job.report.terminal import BAR_WIDTH, REDRAWS_PER_SECOND
from s3sink_job.restore.report import RestoreReport

LINE_EVERY = 10.0


@contextmanager
def progress_of() -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal. Otherwise a line every ten seconds."""
    shown = _Progress()
    if not sys.stderr.isatty():
        yield shown.print_line
        return
    console = Console(stderr=True)
    with Live(console=console, refresh_per_second=REDRAWS_PER_SECOND, transient=True) as live:
        yield lambda sent, rows: live.update(shown.bar(sent, rows))


class _Progress:
    def __init__(self) -> None:
        self._began: tuple[float, int] | None = None
        self._printed = 0.0

    def estimate(self, sent: int, rows: int, now: float) -> Estimate:
        began, before = self._began = self._began or (now, sent)
        if now <= began or sent <= before:
            return Estimate(sent, rows - sent)
        rate = (sent - before) / (now - began)
        return Estimate(sent, rows - sent, rate, (rows - sent) / rate)

    def bar(self, sent: int, rows: int) -> Table:
        estimate = self.estimate(sent, rows, time.monotonic())
        row = Table.grid(padding=(0, 1))
        row.add_row(ProgressBar(completed=estimate.share * 100, width=BAR_WIDTH), str(estimate))
        return row

    def print_line(self, sent: int, rows: int) -> None:
        now = time.monotonic()
        estimate = self.estimate(sent, rows, now)
        if sent >= rows or now - self._printed >= LINE_EVERY:
            self._printed = now
            print(estimate, file=sys.stderr, flush=True)


def restore_text(report: RestoreReport) -> str:
    lines = [f"not in the objects: {text}" for text in report.absent]
    if not report.rows:
        return os.linesep.join([*lines, f"{report.sink} has no objects to restore"])
    if report.dry_run or report.finished_before is not None:
        return os.linesep.join([*lines, _without_sending(report)])
    lines += [f"created topic {name}, without retention" for name in report.created]
    if report.sent_before:
        lines.append(f"resumed restore {report.run}: {report.sent_before:,} of {report.rows:,} rows were sent before")
    lines.append(
        f"{report.sink}: {report.records:,} records of {report.objects:,} objects sent to {', '.join(report.topics)}"
    )
    if report.compacted:
        lines.append(
            f"not compared: {', '.join(report.compacted)} is compacted, and may have dropped records already "
            f"({report.found:,} are there)"
        )
    lines += [f"  - {finding}" for finding in report.findings]
    proved = f"proved: {report.found:,} records are in the topic, with the checksums of those that were sent"
    lines.append(proved if report.ok else "NOT proved: see the findings above")
    return os.linesep.join(lines)


def _without_sending(report: RestoreReport) -> str:
    where = ", ".join(report.topics)
    if report.finished_before is not None:
        return (
            f"restore {report.run} was finished at {iso(report.finished_before)}, with {report.records:,} records in "
            f"{where}. To send them once more, use another --run-id"
        )
    left = f", of which {report.sent_before:,} were sent before" if report.sent_before else ""
    made = f"; would create {', '.join(report.created)}" if report.created else ""
    return f"{report.sink}: would send {report.rows:,} rows of {report.objects:,} objects{left} to {where}{made}"
