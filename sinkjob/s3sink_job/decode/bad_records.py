"""Bad records as values: which row of a batch, at which stage, why, and the record itself.

They exist for bad rows only. A batch without any costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from s3sink_job.columns.types import Column


class Stage(StrEnum):
    """Where in the pipeline a record was refused."""

    DECODE = "Decode"
    TRANSFORM = "Transform"
    SHAPE = "Shape"
    LAYOUT = "Layout"
    FORMAT = "Format"
    STORE = "Store"
    UNKNOWN = "Unknown"
    """Of records of lost objects that are written again."""


class Fault(NamedTuple):
    """Why a record is bad: a CamelCase word, and a message with the field and what to do."""

    reason: str
    message: str
    """Without content of the record: it goes to the log, the status and conditions."""

    @property
    def whole(self) -> str:
        """With such content: it goes to dead letters, which have the record anyway."""
        return self.message

    def prefixed(self, what: str) -> Fault:
        """The fault with its subject, such as `value is`."""
        return Fault(self.reason, f"{what} {self.message}")


class ValueFault(Fault):
    """A fault whose whole message shows the value."""

    _whole: str

    def __new__(cls, reason: str, message: str, whole: str) -> ValueFault:
        fault = super().__new__(cls, reason, message)
        fault._whole = whole
        return fault

    @property
    def whole(self) -> str:
        return self._whole

    def prefixed(self, what: str) -> ValueFault:
        return ValueFault(self.reason, f"{what} {self.message}", f"{what} {self._whole}")


Faults: TypeAlias = Mapping[int, Fault]
"""By row."""
NO_FAULTS: Faults = {}


def faults_at(rows: Iterable[int], reason: str, message: str) -> dict[int, Fault]:
    """The same fault in several rows."""
    return dict.fromkeys(rows, Fault(reason, message))


def prefixed(faults: Faults, what: str) -> dict[int, Fault]:
    return {row: fault.prefixed(what) for row, fault in faults.items()}


@dataclass(frozen=True, slots=True)
class BadRecord:
    row: int
    stage: Stage
    reason: str
    message: str
    whole: str
    """With content of the record, where the message leaves it out."""

    def shown(self, *, content: bool) -> str:
        """The message for people. `content` is `errors.logRecords`."""
        if content or self.whole == self.message:
            return self.whole
        return f"{self.message} (errors.logRecords: true shows the value)"


class BadRecords:
    """The bad records of one batch. A row has one fault, the first that was found."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        """The records as they were read from Kafka."""
        self._found: dict[int, tuple[Stage, Fault]] = {}

    def add(self, stage: Stage, faults: Faults) -> None:
        for row, fault in faults.items():
            self._found.setdefault(row, (stage, fault))

    def kept(self, batch: pa.RecordBatch, keep: Column) -> BadRecords:
        """Those among the rows that are kept, which are `batch`."""
        kept = BadRecords(batch)
        if self._found:
            mask = keep.to_numpy(zero_copy_only=False)
            places = np.cumsum(mask) - 1
            kept._found = {int(places[row]): found for row, found in self._found.items() if mask[row]}
        return kept

    def mask(self) -> Column:
        """A mask of the bad rows."""
        bad = np.zeros(self.batch.num_rows, np.bool_)
        bad[list(self._found)] = True
        return pa.array(bad)

    def __len__(self) -> int:
        return len(self._found)

    def __contains__(self, row: int) -> bool:
        return row in self._found

    def __iter__(self) -> Iterator[BadRecord]:
        """By row."""
        for row, (stage, fault) in sorted(self._found.items()):
            yield BadRecord(row, stage, fault.reason, fault.message, fault.whole)

    @property
    def messages(self) -> dict[int, str]:
        """With content of the records."""
        return {record.row: record.whole for record in self}

    def records(self) -> pa.RecordBatch:
        """The bad records alone, with key, value and headers where the batch has them."""
        return self.batch.take(pa.array(sorted(self._found), pa.int64()))

    def good_rows(self, before: int | None = None) -> Column:
        """A mask of the rows that are not bad; with `before`, none from that row on."""
        good = np.ones(self.batch.num_rows, np.bool_)
        good[list(self._found)] = False
        good[before if before is not None else len(good) :] = False
        return pa.array(good)
