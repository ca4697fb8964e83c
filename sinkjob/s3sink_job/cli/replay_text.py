"""The report of `s3sink replay` as lines of text."""

from __future__ import annotations

import os

from s3sink_job.proof.flush_history import PartitionGeneration
from s3sink_job.replay.report import ReplayReport

OBJECTS_SHOWN = 10
STAYING_SHOWN = 20


def replay_text(report: ReplayReport) -> str:
    lines = []
    if report.finished:
        lines.append(f"a replay that was broken off had committed {report.finished:,} more: they are published now")
    lines += [f"{_name(one.place, one.offset)}: would be written to {one.url}" for one in report.writable]
    staying = report.staying if report.dry_run else report.staying[:STAYING_SHOWN]
    stays = "would stay a dead letter" if report.dry_run else "stays a dead letter"
    lines += [f"{_name(one.place, one.offset)}: {stays}: {one.fault.reason}: {one.fault.message}" for one in staying]
    if more := len(report.staying) - len(staying):
        lines.append(f"… and {more:,} more; --dry-run lists all of them")
    lines += [f"  {url}" for url in report.objects[:OBJECTS_SHOWN]]
    if (more := len(report.objects) - OBJECTS_SHOWN) > 0:
        lines.append(f"  … and {more:,} more objects")
    lines += [f"not in the bucket: {url}" for url in report.missing]
    if report.others:
        lines.append(f"{report.others:,} records of others were passed over")
    if report.gone:
        lines.append(f"{report.gone:,} are gone: their objects were deleted, or the topic does not have them any more")
    if report.without_headers:
        lines.append(f"{report.without_headers:,} were sent to a topic with headers: false, and cannot be replayed")
    if report.lost:
        lines.append(f"{report.lost:,} were not published, because somebody aborted their uploads: run it again")
    return os.linesep.join([*lines, _summary(report)])


def _summary(report: ReplayReport) -> str:
    if not report.outstanding:
        return f"{report.sink} has no dead letters to replay"
    if report.dry_run:
        done = f"{len(report.writable):,} would be replayed"
    else:
        done = f"{report.replayed:,} replayed into {len(report.objects):,} objects"
    parts = [f"{report.outstanding:,} dead letters", done, f"{len(report.staying):,} stay dead letters"]
    if report.filtered:
        parts.append(f"{report.filtered:,} not selected")
    return f"{report.sink}: " + ", ".join(parts)


def _name(place: PartitionGeneration, offset: int) -> str:
    again = f" of generation {place.generation}" if place.generation > 1 else ""
    return f"{place} offset {offset}{again}"
