"""What happens to bad records: skipped and counted, or the slice stops there. Dead letters will be a third way."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from s3sink_job.decode.bad_records import BadRecords
from s3sink_job.flush.manifest import Slice
from s3sink_job.task.slice_result import Failure

NO_LIMIT = 2**63


@dataclass(frozen=True)
class BadRecordPolicy:
    """`spec.errors.records` and `spec.errors.maxPerFlush`."""

    skip: bool
    limit: int = NO_LIMIT


SKIP_ALL = BadRecordPolicy(skip=True)


@dataclass
class BadRecordHandler:
    """Applies the policy to the bad records of one slice."""

    policy: BadRecordPolicy
    slice: Slice
    skipped: list[int] = field(default_factory=list)
    """Their offsets."""
    failure: Failure | None = None
    """Set once the slice has to stop."""

    def rows_to_write(self, offsets: pa.Array, bad: BadRecords) -> pa.Array:
        """Which rows of the batch to write: not the bad ones, and none from the one on that stops the slice."""
        stop = None
        for record in bad:
            offset = offsets[record.row].as_py()
            if self.policy.skip and len(self.skipped) < self.policy.limit:
                self.skipped.append(offset)
                continue
            self.failure = self._stopped(offset, record.message)
            stop = record.row
            break
        return bad.good_rows(before=stop)

    def _stopped(self, offset: int, why: str) -> Failure:
        where = f"topic {self.slice.topic}, partition {self.slice.partition}, offset {offset}"
        if not self.policy.skip:
            return Failure("BadRecord", f"{where}: {why}", retryable=False, offset=offset)
        # The limit is there to stop a flood, so the records before this one are not committed either: no offset.
        text = f"more than errors.maxPerFlush = {self.policy.limit} bad records; this one: {why}"
        return Failure("TooManyBadRecords", f"{where}: {text}", retryable=False)
