"""Dead letters in objects below a prefix, as the sink's manifests list them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from s3sink_job.base.errors import FinalError
from s3sink_job.proof.flush_history import PartitionGeneration, WrittenObject
from s3sink_job.proof.letter_contents import record_of_line
from s3sink_job.proof.object_contents import read_rows
from s3sink_job.replay.letters import StoredLetter
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.object_tags import SINK_TAG


def split_missing(
    bucket: Bucket, sink: str, objects: Iterable[WrittenObject]
) -> tuple[list[WrittenObject], list[WrittenObject]]:
    """The objects that are there, and those that are not. Refused if one is not what the sink wrote."""
    there: list[WrittenObject] = []
    missing: list[WrittenObject] = []
    for written in objects:
        found = bucket.head(written.entry.key)
        if found is not None and (found.metadata.get(SINK_TAG, sink) != sink or found.size != written.entry.bytes):
            raise FinalError(
                f"{bucket.url(written.entry.key)} is not the object that the sink wrote there: it has {found.size} "
                f"bytes instead of {written.entry.bytes}, or another sink wrote it. Nothing was replayed. Restore the "
                "object, or delete it to go on without it",
                reason="ForeignLetters",
            )
        (missing if found is None else there).append(written)
    return there, missing


def letters_in(bucket: Bucket, sink: str, written: WrittenObject) -> list[StoredLetter]:
    rows = read_rows(bucket, written.entry, written.encoding)
    if rows is None:
        return []
    return list(_letters(bucket.url(written.entry.key), sink, _documents(rows)))


def _documents(rows: pa.Table) -> list[dict[str, Any]]:
    if rows.schema.names == ["line"]:
        return [_from_line(line) for line in rows.column("line").to_pylist()]
    # Python has no years beyond 9999.
    times = rows.column("timestamp").cast(pa.int64())
    return rows.set_column(rows.schema.get_field_index("timestamp"), "timestamp", times).to_pylist()  # type: ignore[no-any-return]


def _letters(url: str, sink: str, docs: Iterable[dict[str, Any]]) -> Iterator[StoredLetter]:
    for doc in docs:
        if doc["sink"] != sink:
            raise FinalError(f"{url} has dead letters of {doc['sink']}, not of {sink}", reason="ForeignLetters")
        place = PartitionGeneration(doc["topic"], doc["generation"], doc["partition"])
        headers = [(header["key"], header.get("value")) for header in doc["headers"]]
        yield StoredLetter(
            *(place, doc["offset"], doc["timestamp"], doc.get("key"), doc.get("value"), headers, doc["reason"])
        )


def _from_line(line: bytes) -> dict[str, Any]:
    doc: dict[str, Any] = json.loads(line)
    return {**doc, **record_of_line(doc)}
