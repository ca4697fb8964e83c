"""The report of `s3sink verify` as lines of text."""

from __future__ import annotations

import os

from s3sink_job.proof.verify_report import VerifyReport


def verify_text(report: VerifyReport) -> str:
    counts = report.counts
    gap_offsets = sum(gap.end - gap.start for gap in report.gaps)
    lines = [
        f"sink        {report.sink}",
        f"records     {counts.records:,} in {report.objects:,} objects of {report.partitions} partitions",
        f"missing     {counts.missing:,}",
        f"duplicates  {counts.duplicates:,}",
        f"gaps        {gap_offsets:,} offsets in {len(report.gaps)} recorded gaps",
        f"skipped     {report.skipped:,} bad records",
    ]
    if report.filtered:
        lines.append(f"filtered    {report.filtered:,} records that the transform left out")
    if report.left is not None:
        left = f"{report.left:,} offsets below it are not written yet" if report.left else "reached"
        lines.append(f"end         endingOffsets: {left}")
    if report.refresh:
        lines.append(f"refresh     {report.refresh}")
    if report.former:
        lines.append(f"replaced    {report.former:,} objects that a full refresh replaced are still there")
    if counts.dead_lettered:
        lines.append(f"letters     {counts.dead_lettered:,} bad records as dead letters")
    if report.sent or report.gone:
        lines.append(f"sent        {report.sent:,} bad records in a topic of dead letters")
    if report.only_counted:
        lines.append(f"            without context headers, so that they are only counted: {report.only_counted:,}")
    if report.gone:
        lines.append(f"            no longer in the topic: {report.gone:,}")
    if report.other_letters:
        lines.append(f"            of flushes that the state of the sink does not list: {report.other_letters:,} more")
    if report.replayed:
        lines.append(f"replayed    {report.replayed:,} of the dead letters are in objects by now")
    if report.unlisted:
        lines.append(f"unlisted    {report.unlisted:,} objects of this sink that no committed flush lists")
    if report.pending:
        lines.append(f"pending     {report.pending:,} objects of a flush that is not committed yet")
    if report.unchecked:
        lines.append(
            f"unchecked   {report.unchecked:,} objects whose records Kafka no longer has, or of earlier generations; "
            "only their rows were counted"
        )
    lines += [f"  - {finding}" for finding in counts.findings]
    where = "in the bucket or in a topic of dead letters" if report.sent or report.gone else "in the bucket"
    proved = f"proved: every committed offset is {where} exactly once"
    proved += ", except for dead letters that are no longer in the topic" if report.gone else ""
    lines.append(proved if report.ok else "NOT proved: see the findings above")
    return os.linesep.join(lines)
