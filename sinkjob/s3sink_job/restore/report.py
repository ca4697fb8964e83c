"""What a restore did, and what it found."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class RestoreReport:
    sink: str
    run: str
    rows: int
    """In the objects. Filters may choose fewer records."""
    objects: int
    topics: list[str]
    losses: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    """Records that are in no object."""
    created: list[str] = field(default_factory=list)
    """Topics."""
    sent_before: int = 0
    """Rows that a former try sent."""
    records: int = 0
    """Sent, by all tries."""
    found: int = 0
    """In the topics."""
    compacted: list[str] = field(default_factory=list)
    """Topics that may have fewer records than were sent."""
    findings: list[str] = field(default_factory=list)
    finished_before: float | None = None
    """When this restore was finished, if there was nothing left to do."""
    dry_run: bool = False

    @property
    def ok(self) -> bool:
        return not self.findings

    def to_doc(self) -> dict[str, Any]:
        return {**asdict(self), "ok": self.ok}
