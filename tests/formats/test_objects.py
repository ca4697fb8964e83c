"""Objects of lines: other readers get every line back with every compression."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib

import brotli
import lz4.frame
import pyarrow as pa
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from s3sink_api.spec import LEVELS
from s3sink_job.base.spill import Spill, SpillPlace
from s3sink_job.formats.compression import decompress
from s3sink_job.formats.settings import Output
from tests.formats.samples import extension_of, open_object

NO_DISK = Spill(SpillPlace("/nowhere", 0))
"""Lines are streamed: they need none."""


class Parts(io.BytesIO):
    """A sink that remembers whether anybody closed it: the upload has to stay open."""


def output(codec: str = "None", level: int | None = None, format: str = "Json") -> Output:
    return Output(format, codec, level)


def rows(*lines: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(lines, pa.binary())], ["line"])


def written(wanted: Output, *batches: pa.RecordBatch) -> bytes:
    sink = Parts()
    writer = open_object(wanted, sink, NO_DISK)
    for batch in batches:
        writer.write(batch)
    writer.close()
    return sink.getvalue()


def read_by_others(data: bytes, codec: str) -> bytes:
    match codec:
        case "Gzip":
            return gzip.decompress(data)
        case "Bzip2":
            return bz2.decompress(data)
        case "Xz":
            return lzma.decompress(data)
        case "Zstd" | "Lz4" | "Brotli":
            with pa.input_stream(io.BytesIO(data), compression=codec.lower()) as stream:
                return bytes(stream.read())
        case _:
            return data


CODECS = ("None", "Gzip", "Lz4", "Zstd", "Brotli", "Bzip2", "Xz")
ONE_FRAME = ("None", "Gzip", "Lz4", "Zstd", "Brotli")
BROKEN = (EOFError, ValueError, OSError, RuntimeError, zlib.error, lzma.LZMAError, zstandard.ZstdError, brotli.error)
ALL_LEVELS = [
    (codec, level)
    for codec in CODECS
    for level in (None, *sorted({LEVELS[codec][0], *LEVELS[codec], 3} if codec in LEVELS else ()))
]
lines_drawn = st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"")), min_size=1, max_size=20)


@pytest.mark.parametrize("codec", CODECS)
@given(batches=st.lists(lines_drawn, min_size=1, max_size=4))
def test_every_line_comes_back_in_order(codec: str, batches: list[list[bytes]]) -> None:
    data = written(output(codec), *(rows(*lines) for lines in batches))

    expected = b"".join(line + b"\n" for lines in batches for line in lines)
    assert read_by_others(data, codec) == expected
    assert decompress(data, codec) == expected


@pytest.mark.parametrize(("codec", "level"), ALL_LEVELS)
def test_every_level_that_the_resource_allows_can_be_read(codec: str, level: int | None) -> None:
    lines = [b'{"n":%d,"t":"%s"}' % (n, b"x" * (n % 50)) for n in range(2_000)]

    data = written(output(codec, level), rows(*lines))

    assert read_by_others(data, codec).splitlines() == lines
    if codec != "None" and level != 0:
        assert len(data) < sum(map(len, lines)) / 2


@pytest.mark.parametrize("codec", ONE_FRAME)
def test_an_object_is_one_frame_that_every_reader_accepts(codec: str) -> None:
    sink = Parts()
    writer = open_object(output(codec), sink, NO_DISK)
    for n in range(50):
        writer.write(rows(b"line %d" % n))
        writer.settle()
    writer.close()
    data = sink.getvalue()

    match codec:
        case "Gzip":
            reader = zlib.decompressobj(31)
            reader.decompress(data)
            assert reader.eof
            assert reader.unused_data == b""
        case "Zstd":
            frame = zstandard.ZstdDecompressor().decompressobj()
            frame.decompress(data)
            assert frame.eof
            assert frame.unused_data == b""
        case "Lz4":
            block = lz4.frame.LZ4FrameDecompressor()
            block.decompress(data)
            assert block.eof
            assert not block.unused_data
        case "Brotli":
            assert brotli.decompress(data).count(b"\n") == 50
        case _:
            assert data.count(b"\n") == 50


@pytest.mark.parametrize("codec", CODECS)
@given(lines=lines_drawn, start=st.integers(0, 19), count=st.integers(1, 20))
def test_a_part_of_a_batch_is_written_and_nothing_beside_it(
    codec: str, lines: list[bytes], start: int, count: int
) -> None:
    window = rows(*lines).slice(start, count)
    if not window.num_rows:
        return

    data = written(output(codec), window)

    assert read_by_others(data, codec) == b"".join(line + b"\n" for line in lines[start : start + count])


def test_an_empty_batch_adds_no_line() -> None:
    assert written(output(), rows(b"a"), rows(), rows(b"b")) == b"a\nb\n"


@pytest.mark.parametrize("codec", CODECS[1:])
def test_an_object_cut_short_is_never_taken_for_a_whole_one(codec: str) -> None:
    """`verify` reads objects with this: half an object must be an error."""
    data = written(output(codec), rows(*(b"%d" % (n * n) for n in range(5_000))))

    with pytest.raises(BROKEN):
        decompress(data[: len(data) // 2], codec)


@pytest.mark.parametrize("codec", CODECS)
def test_the_upload_stays_open_when_the_writer_is_closed(codec: str) -> None:
    sink = Parts()
    writer = open_object(output(codec), sink, NO_DISK)
    writer.write(rows(b"a"))
    writer.close()

    assert not sink.closed


@pytest.mark.parametrize(
    ("format", "codec", "extension"),
    [
        ("Json", "None", ".jsonl"),
        ("Json", "Gzip", ".jsonl.gz"),
        ("Json", "Zstd", ".jsonl.zst"),
        ("Json", "Lz4", ".jsonl.lz4"),
        ("Csv", "Bzip2", ".csv.bz2"),
        ("Csv", "Xz", ".csv.xz"),
        ("Csv", "Brotli", ".csv.br"),
        ("Avro", "Xz", ".avro"),
        ("Orc", "Zstd", ".orc"),
        ("Text", "None", ".txt"),
        ("Text", "Gzip", ".txt.gz"),
        ("Text", "Zstd", ".txt.zst"),
    ],
)
def test_the_extension_names_format_and_compression(format: str, codec: str, extension: str) -> None:
    assert extension_of(output(codec, format=format)) == extension


def test_a_format_of_one_record_an_object_opens_no_object_of_several() -> None:
    with pytest.raises(TypeError, match="Bytes"):
        open_object(output(format="Bytes"), Parts(), NO_DISK)


@pytest.mark.parametrize("codec", ["Lzo", "Deflate"])
def test_an_unknown_codec_is_refused_before_anything_is_written(codec: str) -> None:
    with pytest.raises((ValueError, KeyError), match=codec):
        open_object(output(codec), Parts(), NO_DISK)
