"""Records that Spark leaves out, because a transform certainly does so: Python never sees them.

Handing a record to Python takes longer than reading it. Those that are left out are counted all the same: each record
that is handed over has its number among all records of its slice. The last offsets of a slice are handed over whatever
the condition says, so that the records behind the last one are counted, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from s3sink_job.flush.manifest import Slice

NUMBER = "number"
"""The column with the number of a record in its slice, from 0. Null where nothing of the topic is left out."""
COUNTED_END = 100
"""So many offsets before its end a slice is handed over whole. At an end there may be offsets without a record, such as
those of transactions."""
MOST_TOPICS = 8
"""Each topic is a read of its own: Spark plans every one of them."""
_IN_TASK = 2**33 - 1
"""The bits of Spark's number that count within a task. A task has one slice."""


def by_topic(slices: Sequence[Slice]) -> list[list[Slice]]:
    found: dict[str, list[Slice]] = {}
    for part in slices:
        found.setdefault(part.topic, []).append(part)
    return list(found.values())


def numbered(frame: DataFrame, slices: Sequence[Slice], conditions: Mapping[str, str]) -> DataFrame:
    """The records of one topic for which its condition is true, if it has one, tombstones, and those at the ends.

    What becomes of tombstones depends on more than the condition.
    """
    condition = conditions.get(slices[0].topic)
    if condition is None:
        return frame.select("*", f.lit(None).cast("long").alias(NUMBER))
    found = frame.select("*", f.expr(f"monotonically_increasing_id() & {_IN_TASK}L").alias(NUMBER))
    ends = {part.partition: part.end for part in slices}
    by_partition = ", ".join(f"{ends.get(partition, 0)}L" for partition in range(max(ends) + 1))
    at_end = f"offset >= get(array({by_partition}), partition) - {COUNTED_END}L"
    return found.where(f"({condition}) OR value IS NULL OR {at_end}")
