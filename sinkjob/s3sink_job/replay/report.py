"""What a replay did, or would do, with each dead letter."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from s3sink_job.decode.bad_records import Fault
from s3sink_job.proof.flush_history import PartitionGeneration


@dataclass(frozen=True)
class StayingLetter:
    """A record that fails again."""

    place: PartitionGeneration
    offset: int
    fault: Fault


@dataclass(frozen=True)
class WritableLetter:
    """Of a dry run: the object is named by its first record, so other dead letters in it can change the name."""

    place: PartitionGeneration
    offset: int
    url: str


@dataclass
class ReplayReport:
    sink: str
    dry_run: bool
    outstanding: int = 0
    """Dead letters that were not replayed before."""
    finished: int = 0
    """Dead letters that an earlier replay committed, and that are published only now."""
    replayed: int = 0
    objects: list[str] = field(default_factory=list)
    writable: list[WritableLetter] = field(default_factory=list)
    staying: list[StayingLetter] = field(default_factory=list)
    filtered: int = 0
    missing: list[str] = field(default_factory=list)
    """Objects of dead letters that are not in the bucket."""
    others: int = 0
    """Records in topics that are no dead letters of this sink."""
    lost: int = 0
    """Dead letters whose upload somebody aborted before it was published. The next replay writes them."""

    read: int = 0
    """Dead letters that were found where they should be."""
    gone: int = 0
    """Dead letters that are not where they should be: somebody removed them, or retention did."""
    without_headers: int = 0
    """Dead letters that were sent with `headers: false`."""

    @property
    def complete(self) -> bool:
        """Whether every dead letter that was selected is, or could be, in an object."""
        return not (self.staying or self.gone or self.lost or self.without_headers)

    def to_doc(self) -> dict[str, Any]:
        return {
            "sink": self.sink,
            "dryRun": self.dry_run,
            "outstanding": self.outstanding,
            "finished": self.finished,
            "replayed": self.replayed,
            "objects": self.objects,
            "wouldReplay": [{**_place(one.place, one.offset), "object": one.url} for one in self.writable],
            "staying": [
                {**_place(one.place, one.offset), "reason": one.fault.reason, "message": one.fault.message}
                for one in self.staying
            ],
            "filtered": self.filtered,
            "missingObjects": self.missing,
            "gone": self.gone,
            "others": self.others,
            "lost": self.lost,
            "withoutHeaders": self.without_headers,
        }


def _place(place: PartitionGeneration, offset: int) -> dict[str, Any]:
    return {"topic": place.topic, "partition": place.partition, "generation": place.generation, "offset": offset}
