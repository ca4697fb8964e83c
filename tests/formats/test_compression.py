"""Compressed streams: their size and memory are known, and the usual tools read them."""

from __future__ import annotations

import bz2
import io
import json
import random
import shutil
import subprocess
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from s3sink_job.base.spill import Spill, SpillPlace
from s3sink_job.formats.compression import CODEC_EXTENSIONS, PIECE, compressing, decompress
from s3sink_job.formats.settings import Output
from tests.formats.samples import extension_of, open_object

NO_DISK = Spill(SpillPlace("/nowhere", 0))
CODECS = ("None", "Gzip", "Lz4", "Zstd", "Brotli", "Bzip2", "Xz")
TOOLS = {"Gzip": "gzip", "Lz4": "lz4", "Zstd": "zstd", "Bzip2": "bzip2", "Xz": "xz"}
NEARLY = 0.98


def output(codec: str, level: int | None = None) -> Output:
    return Output("Json", codec, level)


def lines(count: int, seed: int = 7) -> list[bytes]:
    chance = random.Random(seed)
    words = ["amber", "birch", "cedar", "dune", "ember"]
    return [
        json.dumps({"n": n, "id": f"{chance.getrandbits(64):x}", "w": " ".join(chance.choices(words, k=6))}).encode()
        for n in range(count)
    ]


def rows(content: list[bytes]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(content, pa.binary())], ["line"])


@pytest.mark.parametrize("codec", CODECS)
def test_the_size_is_known_after_settling(codec: str) -> None:
    sink = io.BytesIO()
    writer = open_object(output(codec), sink, NO_DISK)
    for seed in range(3):
        writer.write(rows(lines(2_000, seed)))
        writer.settle()

    size = writer.size
    assert size == len(sink.getvalue())
    assert writer.held == 0
    writer.close()
    assert len(sink.getvalue()) - size < 32


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("wanted", [100_000, 400_000])
def test_an_object_that_is_closed_when_it_looks_full_has_the_size_asked_for(codec: str, wanted: int) -> None:
    sink = io.BytesIO()
    writer = open_object(output(codec), sink, NO_DISK)
    content = lines(60_000)
    for start in range(0, len(content), 50):
        writer.write(rows(content[start : start + 50]))
        if writer.size >= NEARLY * wanted:
            writer.settle()
            if writer.size >= NEARLY * wanted:
                break
    writer.close()

    assert len(sink.getvalue()) == pytest.approx(wanted, rel=0.1)


@pytest.mark.parametrize("codec", ["Bzip2", "Xz"])
def test_settling_costs_little_where_it_begins_a_new_frame(codec: str) -> None:
    content = lines(20_000)
    settled, whole = io.BytesIO(), io.BytesIO()
    often = open_object(output(codec), settled, NO_DISK)
    once = open_object(output(codec), whole, NO_DISK)
    for start in range(0, len(content), 10_000):
        often.write(rows(content[start : start + 10_000]))
        often.settle()
    once.write(rows(content))
    often.close()
    once.close()

    assert decompress(settled.getvalue(), codec) == decompress(whole.getvalue(), codec)
    assert len(settled.getvalue()) < 1.1 * len(whole.getvalue())


@pytest.mark.parametrize(("codec", "level"), [("Bzip2", None), ("Xz", 9), ("Zstd", 22)])
def test_bytes_that_are_not_compressed_yet_are_counted_and_limited(codec: str, level: int | None) -> None:
    sink = io.BytesIO()
    stream = compressing(sink, codec, level)
    part = b"\n".join(lines(3_000))
    total = 0
    while total <= PIECE:
        stream.write(part)
        total += len(part)
        assert stream.held < PIECE
        if total < PIECE:
            assert stream.held == total
    stream.close()

    assert stream.held == 0
    assert decompress(sink.getvalue(), codec) == part * (total // len(part))


@pytest.mark.parametrize("codec", CODECS)
def test_an_object_without_a_line_is_still_a_file(codec: str) -> None:
    sink = io.BytesIO()
    compressing(sink, codec, None).close()

    assert decompress(sink.getvalue(), codec) == b""


def settled_object(codec: str, content: list[bytes]) -> bytes:
    sink = io.BytesIO()
    writer = open_object(output(codec), sink, NO_DISK)
    for start in range(0, len(content), 1_000):
        writer.write(rows(content[start : start + 1_000]))
        writer.settle()
    writer.close()
    return sink.getvalue()


@pytest.mark.parametrize("codec", TOOLS)
def test_the_usual_tool_unpacks_it_all(codec: str, tmp_path: Path) -> None:
    tool = shutil.which(TOOLS[codec])
    if tool is None:
        pytest.skip(f"{TOOLS[codec]} is not installed")
    content = lines(5_000)
    path = tmp_path / f"object{CODEC_EXTENSIONS[codec]}"
    path.write_bytes(settled_object(codec, content))

    assert subprocess.run([tool, "-dc", str(path)], capture_output=True, check=True).stdout.splitlines() == content


@pytest.mark.parametrize("codec", ["None", "Gzip", "Zstd"])
def test_duckdb_and_polars_read_it_by_its_name(codec: str, tmp_path: Path) -> None:
    content = lines(5_000)
    path = tmp_path / f"object{extension_of(output(codec))}"
    path.write_bytes(settled_object(codec, content))

    expected = [json.loads(line) for line in content]
    assert duckdb.sql(f"SELECT * FROM read_json('{path}')").to_arrow_table().to_pylist() == expected
    assert pl.read_ndjson(path).to_dicts() == expected


def test_arrow_reads_one_bzip2_stream_after_another() -> None:
    content = lines(5_000)
    data = settled_object("Bzip2", content)

    first = bz2.BZ2Decompressor()
    first.decompress(data)
    assert first.unused_data
    with pa.input_stream(io.BytesIO(data), compression="bz2") as stream:
        assert bytes(stream.read()).splitlines() == content
