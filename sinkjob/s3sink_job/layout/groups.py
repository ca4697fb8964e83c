"""Which records may share an object: those of one group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.types import Column
from s3sink_job.layout.settings import Grouping
from s3sink_job.shape.origin import millis


@dataclass(frozen=True)
class Groups:
    """The groups of a batch in order of appearance. `codes` has for each row the place of its group in `keys`."""

    keys: list[tuple[str, ...]]
    codes: pa.Array


def groups_of(batch: pa.RecordBatch, grouping: Grouping, folders: Column | None) -> Groups | None:
    """The groups by folder and by window of record time; None if all records are one group."""
    parts = [] if folders is None else [folders]
    if grouping.window is not None:
        parts.append(_windows(batch, grouping.window))
    if not parts:
        return None
    encoded = [part.dictionary_encode() for part in parts]
    if len(encoded) == 1:
        return Groups([(name,) for name in encoded[0].dictionary.to_pylist()], encoded[0].indices)
    first, second = encoded
    count = len(second.dictionary)
    pairs = pc.add(pc.multiply(first.indices.cast(pa.int64()), count), second.indices.cast(pa.int64()))
    both = pairs.dictionary_encode()
    folder, window = first.dictionary.to_pylist(), second.dictionary.to_pylist()
    keys: list[tuple[str, ...]] = [
        (folder[pair // count], window[pair % count]) for pair in both.dictionary.to_pylist()
    ]
    return Groups(keys, both.indices)


def _windows(batch: pa.RecordBatch, window: float) -> Column:
    """The start of each record's window, as text."""
    length = int(window * 1000)
    time = millis(batch.column("timestamp"))
    # Arrow rounds towards zero, but a time before 1970 belongs to the earlier window.
    rest = pc.subtract(time, pc.multiply(pc.divide(time, length), length))
    start = pc.subtract(time, pc.if_else(pc.less(rest, 0), pc.add(rest, length), rest))
    return start.cast(pa.string())


def rows_in(groups: Groups | None, count: int, why: Callable[[tuple[str, ...]], str]) -> dict[int, str]:
    """The rows of the groups for which `why` gives a text, with that text. Without groups all rows are in one."""
    if groups is None:
        text = why(())
        return dict.fromkeys(range(count), text) if text else {}
    found = {code: text for code, group in enumerate(groups.keys) if (text := why(group))}
    return {row: found[code] for row, code in enumerate(groups.codes.to_pylist()) if code in found} if found else {}
