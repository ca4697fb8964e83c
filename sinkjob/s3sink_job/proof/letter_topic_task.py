"""The Spark task of `s3sink verify` that reads a topic of dead letters: where each came from, and a digest of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.kafka.letter_topic import CONTEXT
from s3sink_job.proof.letter_contents import digests, millis
from s3sink_job.shape.dead_letters import HEADERS

COLUMNS = ("key", "value", "headers", "timestamp", "timestampType")
LOG_APPEND_TIME = 1
"""The broker sets the timestamps of the topic, so they are not those of the records."""
RESULT = pa.schema(
    [
        ("letter_topic", pa.string()),
        ("letter_partition", pa.int32()),
        ("topic", pa.string()),
        ("generation", pa.int32()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("flush", pa.string()),
        ("timestamp", pa.int64()),
        ("digest", pa.string()),
    ]
)
"""All but the first two are null for a record without context headers."""
RESULT_SCHEMA = (
    "letter_topic string, letter_partition int, topic string, generation int, partition int, offset bigint, "
    "flush string, timestamp bigint, digest string"
)


@dataclass(frozen=True)
class LetterTopicTask:
    sink: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A row for each dead letter of the sink, and for each record without context headers."""
        for batch in batches:
            if batch.num_rows:
                letters, others = with_context(batch)
                yield _result({}, others)
                yield self._own(letters)

    def _own(self, letters: pa.RecordBatch) -> pa.RecordBatch:
        own = letters.filter(pc.fill_null(pc.equal(letters.column("context.sink"), self.sink.encode()), False))
        for name in ("partition", "offset", "generation"):
            number = pc.match_substring_regex(own.column(f"context.{name}"), "^[0-9]{1,18}$")
            own = own.filter(pc.fill_null(number, False))
        named = {name: own.column(f"context.{name}").cast(pa.string()) for name in ("topic", "flush")}
        for name in ("generation", "partition", "offset"):
            named[name] = own.column(f"context.{name}").cast(pa.string()).cast(RESULT.field(name).type)
        by_broker = pc.equal(own.column("timestampType"), LOG_APPEND_TIME)
        named["timestamp"] = pc.if_else(by_broker, pa.scalar(None, pa.int64()), millis(own))
        return _result({**named, "digest": digests(own)}, own)


def _result(named: dict[str, pa.Array], letters: pa.RecordBatch) -> pa.RecordBatch:
    named = {"letter_topic": letters.column("topic"), "letter_partition": letters.column("partition"), **named}
    nothing = {field.name: pa.nulls(letters.num_rows, field.type) for field in RESULT}
    return pa.RecordBatch.from_pydict({**nothing, **named}, RESULT)


def with_context(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The records that end with context headers, and the others.

    The first have only their own headers left. The values of the context are columns, as `context.<name>`.
    """
    headers = pa.concat_arrays([pc.coalesce(batch.column("headers").cast(HEADERS), pa.scalar([], HEADERS))])
    long_enough = pc.greater_equal(pc.list_value_length(headers), len(CONTEXT))
    rows, headers = batch.filter(long_enough), headers.filter(long_enough)
    starts = headers.offsets.to_numpy()[1:] - len(CONTEXT)
    names, values = pc.struct_field(headers.values, "key"), pc.struct_field(headers.values, "value")
    found = np.ones(len(headers), np.bool_)
    for number, name in enumerate(CONTEXT):
        found &= pc.equal(names.take(pa.array(starts + number)), name).to_numpy(zero_copy_only=False)
        rows = rows.append_column(f"context.{CONTEXT[name]}", values.take(pa.array(starts + number)))
    at = rows.schema.get_field_index("headers")
    letters = rows.set_column(at, "headers", _without_last(headers, len(CONTEXT))).filter(pa.array(found))
    plain = np.ones(batch.num_rows, np.bool_)
    plain[np.flatnonzero(long_enough.to_numpy(zero_copy_only=False))[found]] = False
    return letters, batch.filter(pa.array(plain))


def _without_last(lists: pa.ListArray, count: int) -> pa.ListArray:
    """Lists that have at least so many items, without their last ones."""
    offsets = lists.offsets.to_numpy()
    kept = np.ones(len(lists.values), np.bool_)
    for number in range(1, count + 1):
        kept[offsets[1:] - number] = False
    shorter = offsets - count * np.arange(len(offsets))
    return pa.ListArray.from_arrays(pa.array(shorter, pa.int32()), lists.values.filter(pa.array(kept)))
