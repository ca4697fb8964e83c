"""Every shape of rows written by the real writers: each row is there again, and a tombstone still is one."""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import product
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from s3sink_job.encoding import Encoding
from s3sink_job.formats import open_object
from s3sink_job.formats.reading import comparable, read_back
from s3sink_job.records.decode import open_decoder
from s3sink_job.spill import Spill, SpillPlace
from tests.records.batches import TOPIC, Record, batch_of, encoding
from tests.records.model import FORMATS, SOURCES, shapes
from tests.records.test_every_shape import RECORDS, name_of

SHAPES = [shape for format in FORMATS for shape in shapes(format)]
CONTENTS = [RECORDS, [Record(b"{}"), Record(None)], [Record(None)]]


def written(wanted: Encoding, folder: Path, batches: list[pa.RecordBatch]) -> bytes:
    sink = io.BytesIO()
    writer = open_object(wanted, sink, Spill(SpillPlace(str(folder), 2**30)))
    for batch in batches:
        writer.write(batch)
    writer.close()
    return sink.getvalue()


@pytest.mark.parametrize("shape", SHAPES, ids=name_of)
def test_what_was_decoded_is_read_back_from_the_object(shape: Encoding, tmp_path: Path) -> None:
    for key, value, content in product(SOURCES, SOURCES, CONTENTS):
        wanted = replace(shape, key=key, value=value)
        decoder = open_decoder(wanted, TOPIC)
        batches = [decoder.decode(batch_of(*content)).rows for _ in range(2)]

        found = read_back(written(wanted, tmp_path, batches), wanted)

        assert found.num_rows == 2 * len(content)
        assert comparable(pa.Table.from_batches(batches), wanted, found.schema).equals(found)


@pytest.mark.parametrize("parts", [("value",), ("key", "value", "headers", "metadata")])
def test_other_readers_tell_an_empty_object_from_a_tombstone(parts: tuple[str, ...], tmp_path: Path) -> None:
    wanted = replace(encoding(format="Parquet"), envelope=parts)
    rows = open_decoder(wanted, TOPIC).decode(batch_of(b"{}", None, b"{}")).rows
    path = tmp_path / "object.parquet"
    path.write_bytes(written(wanted, tmp_path, [rows]))

    found = duckdb.sql(f"SELECT value IS NULL FROM read_parquet('{path}')").fetchall()

    assert found == [(False,), (True,), (False,)]
