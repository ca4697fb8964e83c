"""What is in an object, as rows, beside what Kafka says should be."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq

from s3sink_job.encoding import Encoding
from s3sink_job.errors import S3SinkError
from s3sink_job.flush.manifest import ObjectEntry
from s3sink_job.formats.compression import decompress
from s3sink_job.records.decode import open_decoder
from s3sink_job.records.tables import META_FIELDS
from s3sink_job.schema.cast import Inexact, cast_rows
from s3sink_job.schema.types import NAMES, to_text
from s3sink_job.stores.bucket import Bucket


class Unreadable(S3SinkError):
    """An object whose bytes are not what its name says."""


def read_rows(bucket: Bucket, entry: ObjectEntry, encoding: Encoding) -> pa.Table | None:
    """The rows of an object, None if it is not there. Lines are rows of one column."""
    found = bucket.get(entry.key)
    if found is None:
        return None
    try:
        if encoding.format == "Parquet":
            return pq.ParquetFile(pa.BufferReader(found[0])).read(use_threads=False)
        content = decompress(found[0], encoding.codec)
    except Exception as error:
        raise Unreadable(f"{entry.key}: cannot be read as {encoding.format}, {encoding.codec}: {error}") from error
    lines = content.split(b"\n")[:-1] if content.endswith(b"\n") else content.split(b"\n")
    return pa.table({"line": pa.array(lines, pa.binary())})


def rows_as(found: pa.Table, batches: list[pa.RecordBatch], encoding: Encoding, topic: str) -> pa.Table:
    """Kafka's records as rows of the schema that the object has; as they are, where they do not fit it."""
    record = pa.struct(list(found.schema))
    decoder = open_decoder(encoding, topic, _known(found.schema))
    rows = [decoder.decode(batch).rows for batch in batches]
    try:
        return pa.Table.from_batches([cast_rows(r, record) for r in rows], pa.schema(list(record)))
    except (Inexact, TypeError):
        return pa.concat_tables([pa.Table.from_batches([r]) for r in rows], promote_options="permissive")


def difference(wanted: pa.Table, found: pa.Table) -> tuple[int, int]:
    """How many rows are missing, and how many should not be there, in any order."""
    want, have = Counter(map(repr, wanted.to_pylist())), Counter(map(repr, found.to_pylist()))
    return sum((want - have).values()), sum((have - want).values())


def _known(schema: pa.Schema) -> str:
    values = [field for field in schema if field.name not in META_FIELDS]
    if any(not _inferred(field.type) for field in values):
        return ""
    return to_text(pa.struct(values))


def _inferred(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return all(_inferred(field.type) for field in kind)
    return _inferred(kind.value_type) if pa.types.is_list(kind) else kind in NAMES
