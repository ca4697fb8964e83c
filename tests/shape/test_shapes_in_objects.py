"""Every shape of rows written by the real writers: each row is read back, also a tombstone."""

from __future__ import annotations

import io
from itertools import product
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from s3sink_job.base.spill import Spill, SpillPlace
from s3sink_job.task.encoding import Encoding
from tests.decode.batches import TOPIC, Record, batch_of
from tests.encodings import changed, encoding
from tests.formats.samples import comparable, open_object, read_back
from tests.shape.model import FORMATS, SOURCES, shapes
from tests.shape.test_every_shape import RECORDS, name_of

SHAPES = [shape for format in FORMATS for shape in shapes(format)]
CONTENTS = [RECORDS, [Record(b"{}"), Record(None)], [Record(None)]]


def written(wanted: Encoding, folder: Path, batches: list[pa.RecordBatch]) -> bytes:
    sink = io.BytesIO()
    writer = open_object(wanted.output, sink, Spill(SpillPlace(str(folder), 2**30)))
    for batch in batches:
        writer.write(batch)
    writer.close()
    return sink.getvalue()


@pytest.mark.parametrize("shape", SHAPES, ids=name_of)
def test_what_was_decoded_is_read_back_from_the_object(shape: Encoding, tmp_path: Path) -> None:
    for key, value, content in product(SOURCES, SOURCES, CONTENTS):
        wanted = changed(shape, key=key, value=value)
        builder = wanted.row_builder(TOPIC)
        batches = [builder.build(batch_of(*content)).rows for _ in range(2)]

        found = read_back(written(wanted, tmp_path, batches), wanted.output)

        assert found.num_rows == 2 * len(content)
        assert comparable(pa.Table.from_batches(batches), wanted.output, found.schema).equals(found)


@pytest.mark.parametrize("parts", [("value",), ("key", "value", "headers", "metadata")])
def test_other_readers_see_an_empty_object_and_a_tombstone_differently(parts: tuple[str, ...], tmp_path: Path) -> None:
    wanted = changed(encoding(format="Parquet"), envelope=parts)
    rows = wanted.row_builder(TOPIC).build(batch_of(b"{}", None, b"{}")).rows
    path = tmp_path / "object.parquet"
    path.write_bytes(written(wanted, tmp_path, [rows]))

    found = duckdb.sql(f"SELECT value IS NULL FROM read_parquet('{path}')").fetchall()

    assert found == [(False,), (True,), (False,)]
