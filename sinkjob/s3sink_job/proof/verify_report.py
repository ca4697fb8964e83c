"""What `s3sink verify` found: counts of records, and findings as text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from s3sink_job.flush.manifest import Gap

MAX_FINDINGS = 20


@dataclass
class RecordCounts:
    records: int = 0
    dead_lettered: int = 0
    """Rows in objects of dead letters."""
    missing: int = 0
    duplicates: int = 0
    findings: list[str] = field(default_factory=list)

    def add_finding(self, text: str) -> None:
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(text)

    def add_rows(self, count: int, *, letters: bool) -> None:
        """Rows that were found in an object."""
        if letters:
            self.dead_lettered += count
        else:
            self.records += count

    def add(self, other: RecordCounts) -> None:
        self.records += other.records
        self.dead_lettered += other.dead_lettered
        self.missing += other.missing
        self.duplicates += other.duplicates
        for text in other.findings:
            self.add_finding(text)


@dataclass
class VerifyReport:
    """`unchecked` objects were not compared: Kafka no longer has their records, or their generation is over.

    `pending` objects hold a single record each and are visible before their flush is committed.
    """

    sink: str
    objects: int = 0
    skipped: int = 0
    filtered: int = 0
    """Records that the transform left out."""
    sent: int = 0
    """Dead letters that are in topics."""
    only_counted: int = 0
    """Those of them without context headers: they cannot be matched with their records."""
    gone: int = 0
    """Dead letters that are no longer in the topic: it was recreated or deleted, or its retention removed them."""
    other_letters: int = 0
    """Dead letters under the name of this sink, of flushes that its state does not list."""
    replayed: int = 0
    """Dead letters that are in data objects by now; they also count as records."""
    unchecked: int = 0
    unlisted: int = 0
    pending: int = 0
    partitions: int = 0
    counts: RecordCounts = field(default_factory=RecordCounts)
    gaps: list[Gap] = field(default_factory=list)
    left: int | None = None
    """Offsets below endingOffsets that are not committed yet; None in a run without it."""
    refresh: str | None = None
    """A full refresh that is not finished."""
    former: int = 0
    """Objects that a full refresh replaced, and that are still there."""

    @property
    def ok(self) -> bool:
        return not (self.counts.missing or self.counts.duplicates or self.unlisted or self.counts.findings)

    def to_doc(self) -> dict[str, Any]:
        return {
            "sink": self.sink,
            "ok": self.ok,
            "records": self.counts.records,
            "missing": self.counts.missing,
            "duplicates": self.counts.duplicates,
            "gaps": sum(g.end - g.start for g in self.gaps),
            "skipped": self.skipped,
            "filtered": self.filtered,
            "deadLettered": self.counts.dead_lettered,
            "sent": self.sent,
            "onlyCounted": self.only_counted,
            "noLongerInTopic": self.gone,
            "otherLetters": self.other_letters,
            "replayed": self.replayed,
            "objects": self.objects,
            "unlisted": self.unlisted,
            "pending": self.pending,
            "unchecked": self.unchecked,
            "partitions": self.partitions,
            "gapRanges": [
                {"topic": g.topic, "partition": g.partition, "from": g.start, "to": g.end, "reason": g.reason}
                for g in self.gaps
            ],
            "findings": self.counts.findings,
            **({} if self.left is None else {"leftToEnd": self.left}),
            **({} if self.refresh is None else {"refresh": self.refresh}),
            **({"replacedObjects": self.former} if self.former else {}),
        }
