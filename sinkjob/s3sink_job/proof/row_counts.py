"""Objects whose records Kafka no longer has: they must exist, with as many rows as were written."""

from __future__ import annotations

from s3sink_job.proof.flush_history import WrittenObject
from s3sink_job.proof.object_contents import UnreadableObject, read_rows
from s3sink_job.proof.verify_report import VerifyReport
from s3sink_job.stores.bucket import Bucket


def count_rows(bucket: Bucket, written: WrittenObject, report: VerifyReport) -> None:
    entry, counts = written.entry, report.counts
    report.unchecked += 1
    try:
        found = read_rows(bucket.named(entry.bucket), entry, written.encoding)
    except UnreadableObject as error:
        counts.missing += entry.rows
        counts.add_finding(str(error))
        return
    if found is None:
        counts.missing += entry.rows
        counts.add_finding(f"{entry.key}: not in the bucket, {entry.rows} records missing")
        return
    rows = found.num_rows
    counts.add_rows(rows, letters=bool(entry.letters))
    counts.missing += max(0, entry.rows - rows)
    counts.duplicates += max(0, rows - entry.rows)
    if rows != entry.rows:
        counts.add_finding(f"{entry.key}: {rows} rows, {entry.rows} were written")
