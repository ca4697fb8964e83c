"""Batches of Kafka records as a Spark task gets them, and their lines."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from s3sink_job.task.encoding import Encoding

Headers = list[tuple[str, bytes | None]] | None
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
TOPIC = "orders"


@dataclass(frozen=True)
class Record:
    value: bytes | None
    key: bytes | None = b"k"
    headers: Headers = ()  # type: ignore[assignment]
    millis: int = 1_700_000_000_123


def batch_of(*records: Record | bytes | None) -> pa.RecordBatch:
    whole = [r if isinstance(r, Record) else Record(r) for r in records]
    headers = [None if r.headers is None else [{"key": k, "value": v} for k, v in r.headers] for r in whole]
    return pa.RecordBatch.from_pydict(
        {
            "partition": pa.array([3] * len(whole), pa.int32()),
            "offset": pa.array(range(70, 70 + len(whole)), pa.int64()),
            "key": pa.array([r.key for r in whole], pa.binary()),
            "value": pa.array([r.value for r in whole], pa.binary()),
            "timestamp": pa.array([r.millis * 1000 for r in whole], pa.timestamp("us", "UTC")),
            "headers": pa.array(headers, HEADERS),
        }
    )


def decoded(batch: pa.RecordBatch, wanted: Encoding) -> tuple[list[bytes], dict[int, str]]:
    """The lines, and the bad rows with their reasons."""
    found = wanted.row_builder(TOPIC).build(batch.select(["partition", "offset", *wanted.columns]))
    lines = found.rows.column("line")
    assert len(lines) == batch.num_rows
    assert lines.type == pa.binary()
    assert lines.null_count == 0
    return lines.to_pylist(), found.bad.messages


def parsed(batch: pa.RecordBatch, wanted: Encoding) -> list[Any]:
    """What a reader of JSON lines gets; no record may be bad."""
    lines, bad = decoded(batch, wanted)
    assert bad == {}
    for line in lines:
        assert b"\n" not in line
        assert b"\r" not in line
    return [json.loads(line) for line in lines]


texts = st.text(st.characters(codec="utf-8"), max_size=12)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
    | st.sampled_from(["nan", "Infinity", ",]", ", }", "\u2028", "\x00\x1f\x7f", "\\u0041", "a\r\nb", "𝄞"])
)
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=12
)
json_texts = st.builds(
    lambda value, indent, ascii_only, around: (
        around[0] + json.dumps(value, indent=indent, ensure_ascii=ascii_only) + around[1]
    ),
    json_values,
    st.sampled_from([None, 0, 2, "\t"]),
    st.booleans(),
    st.tuples(*[st.sampled_from(["", " ", "\n", "\r\n\t"])] * 2),
)
