"""What happens to bad records: the slice stops there, or they are skipped, or they become dead letters."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_api.spec import RecordErrors
from s3sink_job.decode.bad_records import BadRecord, BadRecords, Stage, faults_at
from s3sink_job.flush.manifest import InputTypes, Slice
from s3sink_job.task.slice_result import Failure, ShownRecord

NO_LIMIT = 2**63
MOST_SHOWN = 5
"""Bad records of a slice that are logged, beside the last one."""
LONGEST_SHOWN = 1_000
"""Characters."""
REFUSED_BEFORE = "was refused when its flush was written; why was lost with the object"


@dataclass(frozen=True)
class BadRecordPolicy:
    """`spec.errors.records`, `maxPerFlush` and `logRecords`."""

    records: RecordErrors = "Fail"
    limit: int = NO_LIMIT
    show_content: bool = False

    def of(self, record: BadRecord, missing: str) -> RecordErrors:
        """`missing` is `layout.onMissingValue`."""
        if missing == "DeadLetter" and (record.stage, record.reason) == (Stage.LAYOUT, "FieldMissing"):
            return "DeadLetter"
        return self.records


@dataclass(frozen=True)
class LeftOut:
    """Offsets of bad records in a range that is committed: what became of them does not change any more."""

    skipped: Collection[int] = ()
    letters: Collection[int] = ()
    inputs: InputTypes = ()
    """The types that the transform was evaluated with."""

    def refuse(self, offsets: pa.Array, bad: BadRecords) -> None:
        """They stay bad, even if they could be written by now."""
        known = pa.array([*self.skipped, *self.letters], pa.int64())
        rows = pc.indices_nonzero(pc.is_in(offsets, value_set=known)).to_pylist()
        bad.add(Stage.UNKNOWN, faults_at(rows, "RefusedBefore", REFUSED_BEFORE))


@dataclass
class BadRecordHandler:
    """Applies the policy to the bad records of one slice."""

    policy: BadRecordPolicy
    slice: Slice
    missing: str = "Default"
    committed: LeftOut | None = None
    """If lost objects are written again."""
    skipped: list[int] = field(default_factory=list)
    letters: list[int] = field(default_factory=list)
    """Their offsets."""
    shown: list[ShownRecord] = field(default_factory=list)
    """The first ones, and the last one."""
    failure: Failure | None = None
    """Set once the slice has to stop."""

    def handle(self, offsets: pa.Array, bad: BadRecords) -> tuple[pa.Array, list[BadRecord]]:
        """Which rows of the batch to write, and which are dead letters.

        Not the bad ones are written, and nothing from the record on that stops the slice.
        """
        letters, stop = [], None
        for record in bad:
            offset = offsets[record.row].as_py()
            action = self._action(record, offset)
            if action == "Fail" or len(self.skipped) + len(self.letters) >= self.policy.limit:
                self.failure = self._stopped(offset, record.shown(content=self.policy.show_content), action)
                stop = record.row
                break
            if action == "Skip":
                self.skipped.append(offset)
            else:
                self.letters.append(offset)
                letters.append(record)
            self.shown[MOST_SHOWN:] = [self._shown(record, offset, action, bad.batch)]
        return bad.good_rows(before=stop), letters

    def _shown(self, record: BadRecord, offset: int, action: str, batch: pa.RecordBatch) -> ShownRecord:
        content = {}
        if self.policy.show_content:
            names = [name for name in ("key", "value") if name in batch.schema.names]
            content = {name: _text(batch.column(name)[record.row].as_py()) for name in names}
        message = record.shown(content=self.policy.show_content)[:LONGEST_SHOWN]
        return ShownRecord(offset, action, record.stage, record.reason, message, **content)

    def _action(self, record: BadRecord, offset: int) -> RecordErrors:
        if self.committed is not None:
            return "DeadLetter" if offset in self.committed.letters else "Skip"
        return self.policy.of(record, self.missing)

    def _stopped(self, offset: int, why: str, action: RecordErrors) -> Failure:
        where = f"topic {self.slice.topic}, partition {self.slice.partition}, offset {offset}"
        if action == "Fail":
            return Failure("BadRecord", f"{where}: {why}", retryable=False, offset=offset)
        # The limit is there to stop a flood, so the records before this one are not committed either: no offset.
        text = f"more than errors.maxPerFlush = {self.policy.limit} bad records; this one: {why}"
        return Failure("TooManyBadRecords", f"{where}: {text}", retryable=False)


def _text(content: bytes | None) -> str | None:
    return None if content is None else content[:LONGEST_SHOWN].decode("utf-8", "backslashreplace")
