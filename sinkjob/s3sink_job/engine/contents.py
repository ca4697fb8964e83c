"""What is in an object, as rows, beside what Kafka says should be."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from s3sink_job.encoding import Encoding
from s3sink_job.errors import S3SinkError
from s3sink_job.flush.manifest import ObjectEntry
from s3sink_job.formats.compression import decompress
from s3sink_job.formats.pending import Pending
from s3sink_job.formats.reading import comparable, read_back
from s3sink_job.records.decode import open_decoder
from s3sink_job.records.tables import known_of
from s3sink_job.schema.cast import Inexact
from s3sink_job.schema.text import number_text
from s3sink_job.stores.bucket import Bucket


class Unreadable(S3SinkError):
    """An object whose bytes are not what its name says."""


def read_rows(bucket: Bucket, entry: ObjectEntry, encoding: Encoding) -> pa.Table | None:
    """The rows of an object, None if it is not there. Lines are rows of one column."""
    found = bucket.get(entry.key)
    if found is None:
        return None
    try:
        if encoding.format == "Bytes":
            value = decompress(found[0], encoding.codec)
            return pa.table({"value": pa.array([value], pa.binary())})
        return read_back(found[0], encoding)
    except Exception as error:
        raise Unreadable(f"{entry.key}: cannot be read as {encoding.format}, {encoding.codec}: {error}") from error


def rows_as(
    found: pa.Table, batches: list[pa.RecordBatch], encoding: Encoding, entry: ObjectEntry, known: str = ""
) -> pa.Table:
    """Kafka's records as rows of the schema that the object has; as they are, where they do not fit it."""
    known = known or known_of(found.schema, encoding)
    decoder = open_decoder(encoding, entry.topic, known, generation=entry.generation)
    pending = Pending()
    for batch in batches:
        pending.add(decoder.decode(batch).rows)
    rows = pending.take()
    try:
        return comparable(rows, encoding, found.schema)
    except (Inexact, TypeError):
        return rows


@dataclass(frozen=True)
class Difference:
    missing: int
    extra: int
    """Rows that should not be there."""
    in_order: bool

    def __bool__(self) -> bool:
        return bool(self.missing or self.extra or not self.in_order)


def difference(wanted: pa.Table, found: pa.Table) -> Difference:
    want, have = ([repr(_canonical(row)) for row in table.to_pylist()] for table in (wanted, found))
    missing, extra = Counter(want) - Counter(have), Counter(have) - Counter(want)
    return Difference(missing.total(), extra.total(), want == have)


def _canonical(value: Any) -> Any:
    """What nests and became text may have its fields in any order, and those that are null or not.

    A number that was a double before it became text has lost the digits that no double holds.
    """
    match value:
        case dict():
            return {name: _canonical(inner) for name, inner in value.items()}
        case list():
            return [_canonical(item) for item in value]
        case str() if value[:1] and value[:1] in "{[-0123456789":
            try:
                return json.dumps(_without_nulls(json.loads(value, parse_float=_real, parse_int=str)), sort_keys=True)
            except (ValueError, ArithmeticError, RecursionError):
                return value
        case _:
            return value


def _real(text: str) -> str:
    """As it is, unless no double holds it: then the double's text."""
    number = float(text)
    short = number_text(number) if math.isfinite(number) else text
    return text if Decimal(short) == Decimal(text) else short


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
