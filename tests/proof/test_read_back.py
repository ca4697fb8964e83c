"""Every format and codec, with and without envelope and meta columns, read by readers that are not ours.

One sink writes all of them: each topic has a route of its own and the same records. What the readers find is compared
with what an independent consumer saw.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import secrets
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import polars as pl
import pytest
from pyarrow import orc
from pyspark.sql import SparkSession

from s3sink_api.formats import CODECS
from tests.harness import Message, World, produce_large
from tools.parts.decompressors import DECOMPRESS
from tools.parts.kafka import KafkaBroker
from tools.parts.s3 import S3Server

RUN = secrets.token_hex(3)
Row = dict[str, Any]
Reader = Callable[[Path], list[Any]]
ODD = 'a,b;"c"\r\nd\te\'\\ \u2028'
VALUES: list[Row | None] = [
    {
        "id": 0,
        "name": "Grüße, 世界 🚀",
        "big": 2**63 - 1,
        "price": "12345678901234567890.123456789",
        "ratio": 0.1,
        "ok": True,
        "tags": ["a", "", "ü"],
        "who": {"name": "Ünï", "age": 7, "inner": {"x": [1, 2]}},
        "items": [{"sku": "a,1", "qty": 1}, {"sku": '"b"', "qty": None}],
    },
    {
        "id": 1,
        "name": ODD,
        "big": -(2**63),
        "price": "-0.10",
        "ratio": -1.5e300,
        "ok": False,
        "tags": [],
        "who": {"name": ODD, "age": None},
        "items": [],
    },
    {"id": 2, "name": "", "big": 0, "price": None, "ratio": None, "ok": None, "tags": [None, "x"], "who": None},
    {"id": 3, "name": None, "big": 2**53 + 1, "ratio": 3.0},
    {},
    None,
    {"id": 6, "name": "null"},
]
NESTED = ("tags", "who", "items")
COLUMNS = ("id", "name", "big", "price", "ratio", "ok", *NESTED)
HEADERS: list[list[tuple[str, str | bytes | None]] | None] = [
    [("a", "ü"), ("a", b"\xff\x00"), ("none", None)],
    None,
    [("empty", b"")],
]


def only(*parts: str) -> Row:
    """An envelope with these parts."""
    return {"enabled": True} | {part: False for part in PARTS["envelope"] if part not in parts}


PARTS = {"envelope": ("key", "value", "headers", "metadata"), "key-value": ("key", "value"), "headers": ("headers",)}
"""Of complete envelopes and of partial ones."""
SHAPES: dict[str, tuple[tuple[str, ...], Row]] = {
    "plain": (("Parquet", "Avro", "Json", "Csv", "Text", "Bytes", "Orc"), {}),
    "envelope": (("Parquet", "Avro", "Json", "Orc"), {"envelope": {"enabled": True}}),
    "key-value": (("Parquet", "Avro", "Json", "Orc"), {"envelope": only("key", "value")}),
    "headers": (("Parquet", "Avro", "Json", "Orc"), {"envelope": only("headers")}),
    "kafka": (("Parquet", "Avro", "Json", "Csv", "Orc"), {"columns": {"meta": "Kafka"}}),
    "quix": (("Parquet", "Avro", "Json", "Csv", "Orc"), {"columns": {"meta": "Quix"}}),
    "airbyte": (("Parquet", "Avro", "Json", "Csv", "Orc"), {"columns": {"meta": "Airbyte"}}),
    "flat": (("Parquet", "Avro", "Json", "Csv", "Orc"), {"columns": {"meta": "Airbyte", "flatten": True}}),
}


def codecs_of(shape: str, format: str) -> tuple[str, ...]:
    """Meta columns do not depend on the codec: one is enough, for Avro one that every reader here has."""
    if shape in ("plain", "envelope"):
        return CODECS[format]  # type: ignore[index]
    return ("Deflate",) if format == "Avro" else CODECS[format][-1:]  # type: ignore[index]


def cases(*shapes: str, format: str) -> list[tuple[str, str]]:
    return [(shape, codec) for shape in shapes if format in SHAPES[shape][0] for codec in codecs_of(shape, format)]


@dataclass
class Library:
    """What one sink of each shape wrote, as files."""

    kafka: KafkaBroker
    s3: S3Server
    spark: SparkSession
    folder: Path
    worlds: list[World] = field(default_factory=list)
    _shapes: dict[str, dict[tuple[str, str], list[Path]]] = field(default_factory=dict)
    _seen: dict[str, list[Message]] = field(default_factory=dict)

    def files(self, shape: str, format: str, codec: str) -> list[Path]:
        if shape not in self._shapes:
            self._shapes[shape] = self._write(shape)
        return self._shapes[shape][format, codec]

    def file(self, shape: str, format: str, codec: str) -> Path:
        (path,) = self.files(shape, format, codec)
        return path

    def seen(self, shape: str, format: str, codec: str) -> list[Message]:
        """What a consumer sees of the topic that the file was made of."""
        self.files(shape, format, codec)
        topic = topic_of(shape, format, codec)
        if topic not in self._seen:
            self._seen[topic] = self.worlds[0].messages(topic)
        return self._seen[topic]

    def _write(self, shape: str) -> dict[tuple[str, str], list[Path]]:
        formats, wanted = SHAPES[shape]
        pairs = [(format, codec) for format in formats for codec in codecs_of(shape, format)]
        bucket = self.s3.create_bucket(f"read-back-{shape}-{RUN}")
        first = topic_of(shape, *pairs[0])
        world = World(self.kafka, self.s3, self.spark, bucket, first, self.folder / shape, patience=240.0)
        self.worlds.append(world)
        for pair in pairs:
            self.kafka.create_topic(topic_of(shape, *pair))
            self.kafka.produce(topic_of(shape, *pair), records(), 0)
        routes = [
            {
                "topics": [topic_of(shape, format, codec)],
                "format": {"type": format, "compression": {"codec": codec}, **wanted},
            }
            for format, codec in pairs
        ]
        topics = [topic_of(shape, *pair) for pair in pairs]
        driver = world.drain(source={"topics": topics}, routes=routes)
        assert not driver.problems
        report = world.verify(driver)
        assert report.ok, report.to_doc()
        assert report.counts.records == len(pairs) * len(VALUES)
        folder = self.folder / shape / "files"
        return {pair: world.download(folder, f"raw/{topic_of(shape, *pair)}/") for pair in pairs}


def topic_of(shape: str, format: str, codec: str) -> str:
    return f"read-back-{RUN}-{shape}-{format}-{codec}".lower()


def records() -> list[tuple[bytes | None, bytes | None, Any, int]]:
    """Keys, headers and times, some of them missing."""
    return [
        (
            None if number == 2 else f"k{number},ü".encode(),
            None if value is None else json.dumps(value, ensure_ascii=number % 2 == 0).encode(),
            HEADERS[number % len(HEADERS)],
            1_700_000_000_000 + number,
        )
        for number, value in enumerate(VALUES)
    ]


@pytest.fixture(scope="module")
def library(
    kafka: KafkaBroker, s3: S3Server, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Library]:
    made = Library(kafka, s3, spark, tmp_path_factory.mktemp("read-back"))
    yield made
    for world in made.worlds:
        for driver in world.drivers:
            driver.close()


def bare(value: Any) -> Any:
    """Without null fields: in columns they are the same as missing ones."""
    if isinstance(value, dict):
        return {name: bare(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, bytearray):
        return bytes(value)
    return [bare(inner) for inner in value] if isinstance(value, list) else value


def value_of(message: Message) -> Row | None:
    value: Row | None = None if message.value is None else bare(json.loads(message.value))
    return value


def key_of(message: Message) -> str | None:
    return None if message.key is None else message.key.decode()


def airbyte_id(message: Message, topic: str) -> str:
    name = f"{topic}/1/{message.partition}/{message.offset}"
    return str(uuid.uuid3(uuid.uuid3(uuid.NAMESPACE_DNS, "s3sink.dev"), name))


def place_of(message: Message, topic: str) -> Row:
    return {"topic": topic, "partition": message.partition, "offset": message.offset, "timestamp": message.timestamp}


def json_headers(message: Message) -> list[Row]:
    found: list[Row] = []
    for name, value in message.headers:
        try:
            found.append({"key": name, "value": None if value is None else value.decode()})
        except UnicodeDecodeError:
            found.append({"key": name, "base64": base64.b64encode(value or b"").decode()})
    return found


def expected(shape: str, topic: str, seen: list[Message], *, lines: bool = False) -> list[Any]:
    """The rows of a format with columns, or of JSON lines."""
    return [bare(_expected(shape, topic, message, lines)) for message in seen]


def _expected(shape: str, topic: str, message: Message, lines: bool) -> Any:
    value, key = value_of(message), key_of(message)
    headers = json_headers(message) if lines else [{"key": n, "value": v} for n, v in message.headers]
    text = None if message.value is None else message.value.decode()
    own = {"_airbyte_ab_id": airbyte_id(message, topic), "_airbyte_emitted_at": message.timestamp}
    match shape:
        case "plain":
            return value if lines or value else {}
        case "envelope" | "key-value" | "headers":
            whole = {"key": key, "value": value, "headers": headers, "metadata": place_of(message, topic)}
            return {part: whole[part] for part in PARTS[shape]}
        case "kafka":
            meta = {f"_{name}": part for name, part in place_of(message, topic).items()}
            return {"_key": key, **meta, "_headers": headers, **(value or {})}
        case "quix":
            return {"_timestamp": message.timestamp, "_key": key, "_value": value if lines else text}
        case "airbyte":
            return {**own, "_airbyte_data": value if lines else text}
        case _:
            return {**own, **(value or {})}


def as_json(rows: list[Any], *names: str) -> list[Any]:
    """With the JSON text in these columns parsed."""
    for row in rows:
        for name in names:
            if row.get(name) is not None:
                row[name] = bare(json.loads(row[name]))
    return rows


TEXTS = ("_value", "_airbyte_data")
"""Columns of JSON text."""


def by_duckdb(function: str) -> Reader:
    def read(path: Path) -> list[Any]:
        with duckdb.connect() as database:
            # Through Arrow: by itself it would need another package for times.
            rows: list[Any] = database.sql(f"SELECT * FROM {function.format(path)}").to_arrow_table().to_pylist()
            return rows

    return read


def by_polars(path: Path) -> list[Any]:
    return pl.read_parquet(path).to_dicts()


def by_spark(spark: SparkSession, format: str, **options: Any) -> Reader:
    def read(path: Path) -> list[Any]:
        frame = spark.read.format(format).options(**options).load(str(path))
        return [row.asDict(recursive=True) for row in frame.collect()]

    return read


def by_fastavro(path: Path) -> list[Any]:
    with path.open("rb") as file:
        return list(fastavro.reader(file))


TABLE_SHAPES = tuple(SHAPES)


@pytest.mark.parametrize(("shape", "codec"), cases(*TABLE_SHAPES, format="Parquet"))
def test_parquet_is_read_by_duckdb_polars_and_spark(library: Library, shape: str, codec: str) -> None:
    path, seen = library.file(shape, "Parquet", codec), library.seen(shape, "Parquet", codec)
    wanted = as_json(expected(shape, topic_of(shape, "Parquet", codec), seen), *TEXTS)
    readers = [by_duckdb("read_parquet('{}')"), by_polars]
    if codec != "Brotli":
        # Spark brings no codec for it.
        readers.append(by_spark(library.spark, "parquet"))
    for read in readers:
        assert as_json(bare(read(path)), *TEXTS) == wanted


@pytest.mark.parametrize(("shape", "codec"), cases(*TABLE_SHAPES, format="Avro"))
def test_avro_is_read_by_fastavro_and_polars(library: Library, shape: str, codec: str) -> None:
    path, seen = library.file(shape, "Avro", codec), library.seen(shape, "Avro", codec)
    wanted = as_json(expected(shape, topic_of(shape, "Avro", codec), seen), *TEXTS)
    assert as_json(bare(by_fastavro(path)), *TEXTS) == wanted
    if codec in ("None", "Snappy", "Deflate"):
        assert as_json(bare(pl.read_avro(path).to_dicts()), *TEXTS) == wanted


@pytest.mark.parametrize(("shape", "codec"), cases(*TABLE_SHAPES, format="Orc"))
def test_orc_is_read_by_arrow(library: Library, shape: str, codec: str) -> None:
    path, seen = library.file(shape, "Orc", codec), library.seen(shape, "Orc", codec)
    wanted = as_json(expected(shape, topic_of(shape, "Orc", codec), seen), *TEXTS)
    assert as_json(bare(orc.ORCFile(path).read().to_pylist()), *TEXTS) == wanted


@pytest.mark.parametrize(("shape", "codec"), cases(*TABLE_SHAPES, format="Orc"))
def test_orc_is_read_by_spark(library: Library, shape: str, codec: str) -> None:
    path, seen = library.file(shape, "Orc", codec), library.seen(shape, "Orc", codec)
    wanted = as_json(expected(shape, topic_of(shape, "Orc", codec), seen), *TEXTS)
    assert as_json(bare(by_spark(library.spark, "orc")(path)), *TEXTS) == wanted


@pytest.mark.parametrize(("shape", "codec"), cases(*TABLE_SHAPES, format="Json"))
def test_json_lines_are_read_by_every_reader_with_the_codec(library: Library, shape: str, codec: str) -> None:
    path, seen = library.file(shape, "Json", codec), library.seen(shape, "Json", codec)
    wanted = expected(shape, topic_of(shape, "Json", codec), seen, lines=True)
    lines = DECOMPRESS[codec](path.read_bytes())
    assert [bare(json.loads(line)) for line in bytes(lines).split(b"\n")[:-1]] == wanted
    if codec in ("None", "Gzip", "Zstd"):
        found = by_duckdb("read_ndjson_objects('{}')")(path)
        assert [bare(json.loads(row["json"])) for row in found] == wanted
    if codec in ("None", "Gzip", "Bzip2"):
        # A line that says null is no row to Spark.
        rows = by_spark(library.spark, "json", mode="DROPMALFORMED")(path)
        assert bare(rows) == [row for row in wanted if row is not None]


@pytest.mark.parametrize(("shape", "codec"), cases("plain", "kafka", "quix", "airbyte", "flat", format="Csv"))
def test_csv_is_read_by_every_reader_with_the_codec(library: Library, shape: str, codec: str, tmp_path: Path) -> None:
    path, seen = library.file(shape, "Csv", codec), library.seen(shape, "Csv", codec)
    wanted = [_csv_row(row) for row in expected(shape, topic_of(shape, "Csv", codec), seen)]
    content = bytes(DECOMPRESS[codec](path.read_bytes()))
    plain = tmp_path / "plain.csv"
    plain.write_bytes(content)
    settings = "all_varchar=true, header=true, delim=',', quote='\"', escape='\"', allow_quoted_nulls=false"
    packed = path if codec in ("None", "Gzip", "Zstd") else plain
    assert _from_csv(by_duckdb(f"read_csv('{{}}', {settings})")(packed)) == wanted
    with io.StringIO(content.decode(), newline="") as text:
        names = csv.DictReader(text, strict=True).fieldnames
    assert set(names or ()) >= {name for row in wanted for name in row}
    if codec in ("None", "Gzip", "Bzip2"):
        # Unless nulls have another text to it, quoted ones that are empty are null, too.
        options: dict[str, Any] = {"multiLine": True, "escape": '"', "lineSep": "\n", "nullValue": "(null)"}
        read = by_spark(library.spark, "csv", header=True, **options)
        assert _from_csv(read(path)) == wanted
    found = pl.read_csv(plain, infer_schema=False).to_dicts()
    assert _from_csv(found) == wanted


def _csv_row(row: Row) -> Row:
    """As text, except for nested values: those are parsed."""
    shown: Row = {}
    for name, value in row.items():
        match value:
            case bool():
                shown[name] = "true" if value else "false"
            case int() if name == "_timestamp" and "_topic" in row:
                shown[name] = value
            case float():
                shown[name] = value
            case list() if name == "_headers":
                shown[name] = [
                    {**h, "value": base64.b64encode(h["value"]).decode()} if h.get("value") is not None else h
                    for h in value
                ]
            case list() | dict():
                shown[name] = value
            case str() if name in TEXTS:
                shown[name] = bare(json.loads(value))
            case _:
                shown[name] = str(value)
    return shown


def _from_csv(rows: list[Row]) -> list[Row]:
    found = []
    for row in as_json(rows, *NESTED, *TEXTS, "_headers"):
        if row.get("ratio") is not None:
            row["ratio"] = float(row["ratio"])
        if "_topic" in row:
            row["_timestamp"] = datetime.fromisoformat(row["_timestamp"])
        found.append(bare(row))
    return found


@pytest.mark.parametrize("codec", CODECS["Text"])
def test_text_is_a_line_for_each_value(library: Library, codec: str) -> None:
    path, seen = library.file("plain", "Text", codec), library.seen("plain", "Text", codec)
    lines = bytes(DECOMPRESS[codec](path.read_bytes())).split(b"\n")
    assert lines.pop() == b""
    assert lines == [message.value or b"" for message in seen]


@pytest.mark.parametrize("codec", CODECS["Bytes"])
def test_bytes_are_an_object_for_each_value(library: Library, codec: str) -> None:
    paths, seen = library.files("plain", "Bytes", codec), library.seen("plain", "Bytes", codec)
    assert [bytes(DECOMPRESS[codec](path.read_bytes())) for path in paths] == [message.value or b"" for message in seen]


def test_records_of_5_mb_are_read_as_they_were_written(library: Library, tmp_path: Path) -> None:
    """One of text, one of many small numbers, between small ones."""
    small: Row = {"id": 0, "text": "small", "numbers": [1]}
    values = [
        small,
        {"id": 1, "text": 'ü",\n' * 1_000_000, "numbers": []},
        {"id": 2, "text": "", "numbers": list(range(700_000))},
        small,
    ]
    formats = ("Parquet", "Avro", "Json", "Csv", "Orc", "Text", "Bytes")
    topics = {format: f"read-back-{RUN}-large-{format}".lower() for format in formats}
    world = World(
        library.kafka, library.s3, library.spark, f"read-back-large-{RUN}", topics["Json"], tmp_path, patience=240.0
    )
    library.worlds.append(world)
    library.s3.create_bucket(world.bucket)
    for topic in topics.values():
        world.kafka.create_topic(topic, config={"max.message.bytes": "20000000"})
        produce_large(
            world.kafka.bootstrap, topic, [json.dumps(value, ensure_ascii=False).encode() for value in values]
        )
    routes = [{"topics": [topic], "format": {"type": format}} for format, topic in topics.items()]
    driver = world.drain(source={"topics": list(topics.values())}, routes=routes)
    seen = [message.value or b"" for message in world.messages(topics["Json"])]
    assert min(len(value) for value in seen[1:3]) > 4_800_000

    files = {format: world.download(tmp_path, f"raw/{topic}/") for format, topic in topics.items()}
    wanted = [json.loads(value) for value in seen]
    (parquet,), (avro,), (orc_file,), (lines,), (text,) = (files[f] for f in ("Parquet", "Avro", "Orc", "Json", "Text"))
    assert by_duckdb("read_parquet('{}')")(parquet) == wanted
    assert by_fastavro(avro) == wanted
    assert by_spark(library.spark, "orc")(orc_file) == wanted
    assert [json.loads(line) for line in lines.read_bytes().splitlines()] == wanted
    assert text.read_bytes().split(b"\n")[:-1] == seen
    assert [path.read_bytes() for path in files["Bytes"]] == seen
    (table,) = files["Csv"]
    found = pl.read_csv(table, infer_schema=False).to_dicts()
    assert [(row["id"], row["text"] or "", json.loads(row["numbers"])) for row in found] == [
        (str(row["id"]), row["text"], row["numbers"]) for row in wanted
    ]
    report = world.verify(driver)
    assert (report.ok, report.counts.records) == (True, 4 * len(formats)), report.to_doc()
