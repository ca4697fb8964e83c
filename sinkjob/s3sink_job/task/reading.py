"""How much of its records a job reads: first as little as may be enough, and more of a slice whose task needs more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from s3sink_job.flush.manifest import Slice
from s3sink_job.task.slice_result import DEAD_LETTER, ID_IN_HEADER, LARGE_RECORD, UNCOUNTED, SliceResult

READ_AGAIN = {LARGE_RECORD: "large", DEAD_LETTER: "whole", ID_IN_HEADER: "ids", UNCOUNTED: "all_records"}
"""By the reason of a slice that has to be read again: what is different then."""
REMEMBERED_AFTER = {LARGE_RECORD: 1, ID_IN_HEADER: 1, UNCOUNTED: 3}
"""How often it has to come in a partition until it is expected there. An end without records may be one aborted
transaction; in a compacted topic it comes all the time."""


@dataclass(frozen=True)
class Reading:
    large: bool = False
    """Whether there may be large records: see `batch_size.py`."""
    whole: bool = False
    """Whether all columns are read, as dead letters need."""
    ids: bool = False
    """Whether ids of schemas are read from headers also where a value shows that it has its id in front."""
    all_records: bool = False
    """Whether Spark hands over records that the transform leaves out: see `left_out.py`."""

    def with_more(self, reasons: Iterable[str]) -> Reading:
        more = {READ_AGAIN[reason] for reason in reasons}
        return Reading(**{one.name: getattr(self, one.name) or one.name in more for one in fields(self)})


FIRST_READING = Reading()


class KnownNeeds:
    """What earlier jobs found, by partition: so that most slices are read once."""

    def __init__(self) -> None:
        self._came: Counter[tuple[str, tuple[str, int]]] = Counter()
        self._with_letters: set[tuple[str, int]] = set()
        """In their last flush."""

    def reading(self, slices: Sequence[Slice]) -> Reading:
        partitions = {part.at for part in slices}
        found = [
            reason
            for reason, times in REMEMBERED_AFTER.items()
            if any(self._came[reason, partition] >= times for partition in partitions)
        ]
        # Dead letters come and go, and whole records cost most: so only if most of the partitions had some.
        if 2 * len(partitions & self._with_letters) > len(partitions):
            found.append(DEAD_LETTER)
        return FIRST_READING.with_more(found)

    def learn(self, again: Iterable[SliceResult]) -> None:
        """Of one job: several slices of a partition count once."""
        reasons = {(result.failure.reason, result.slice.at) for result in again if result.failure is not None}
        self._came.update(found for found in reasons if found[0] in REMEMBERED_AFTER)

    def learn_letters(self, results: Iterable[SliceResult]) -> None:
        for result in results:
            (self._with_letters.add if result.letters else self._with_letters.discard)(result.slice.at)
