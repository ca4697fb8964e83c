"""Where records come from, as columns, and an id for each record that is the same whenever it is written."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.duckdb_functions import query
from s3sink_job.columns.text import concat
from s3sink_job.columns.types import Column

KAFKA_FIELDS = ("_key", "_topic", "_partition", "_offset", "_timestamp", "_headers")
AIRBYTE_ID, AIRBYTE_TIME, AIRBYTE_DATA = AIRBYTE_FIELDS = (
    "_airbyte_ab_id",
    "_airbyte_emitted_at",
    "_airbyte_data",
)
QUIX_TIME, QUIX_KEY, QUIX_VALUE = QUIX_FIELDS = ("_timestamp", "_key", "_value")
OWN_FIELDS: Mapping[str, tuple[str, ...]] = {
    "Kafka": KAFKA_FIELDS,
    "Quix": QUIX_FIELDS,
    "Airbyte": AIRBYTE_FIELDS,
}
"""The names that a value may not have where its fields are beside these columns."""

NAMESPACE = uuid.uuid3(uuid.NAMESPACE_DNS, "s3sink.dev")
DIGITS = (slice(0, 8), slice(8, 12), slice(12, 16), slice(16, 20), slice(20, 32))
VARIANT = np.frombuffer(bytes.maketrans(b"0123456789abcdef", b"89ab" * 4), np.uint8)


@dataclass(frozen=True)
class Origin:
    topic: str
    generation: int = 1

    def ids(self, batch: pa.RecordBatch) -> Column:
        """The UUID of each record, version 3 of RFC 9562, of the text `<topic>/<generation>/<partition>/<offset>`."""
        names = concat(
            *(f"{self.topic}/{self.generation}/", batch.column("partition").cast(pa.string()), "/"),
            batch.column("offset").cast(pa.string()),
        )
        named = pc.binary_join_element_wise(pa.scalar(NAMESPACE.bytes), names.cast(pa.binary()), pa.scalar(b""))
        return _uuids(query("SELECT md5(v) AS r FROM batch", named))

    def topics(self, count: int) -> Column:
        return pa.repeat(pa.scalar(self.topic, pa.string()), count)


def millis(column: Column) -> Column:
    return pc.divide(column.cast(pa.timestamp("us", "UTC")).cast(pa.int64()), 1000)


def _uuids(hashes: Column) -> Column:
    """Texts of 32 hexadecimal digits as UUIDs: with hyphens, version and variant."""
    count = len(hashes)
    # A copy: the column of a query may start anywhere in its buffer.
    digits = np.frombuffer(pa.concat_arrays([hashes]).buffers()[2], np.uint8, 32 * count).reshape(count, 32)
    texts = np.full((count, 36), ord("-"), np.uint8)
    at = 0
    for part in DIGITS:
        end = at + part.stop - part.start
        texts[:, at:end] = digits[:, part]
        at = end + 1
    texts[:, 14] = ord("3")
    texts[:, 19] = VARIANT[texts[:, 19]]
    ends = pa.array(np.arange(0, 36 * (count + 1), 36, dtype=np.int32))
    return pa.StringArray.from_buffers(count, ends.buffers()[1], pa.py_buffer(texts.tobytes()))
