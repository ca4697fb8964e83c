"""Formats, codecs, meta columns and envelopes. Topics of one case differ in format and are routed to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from s3sink_job.driver.driver import Driver
from tests.corpus.recording import Play, Stage
from tests.corpus.records import json_record, order, orders
from tools.parts.kafka import Record

WITH_COLUMNS = ("Parquet", "Avro", "Orc", "Csv")
WITH_FIELDS = (*WITH_COLUMNS, "Json")
ALL = (*WITH_FIELDS, "Text", "Bytes")
Formats = Mapping[str, Mapping[str, Any]]


def formats(types: Iterable[str], **more: Any) -> Formats:
    return {name.lower(): {"type": name, **more} for name in types}


def codecs(type: str, *each: tuple[str, int | None]) -> Formats:
    return {
        f"{codec}-{level}".lower(): {
            "type": type,
            "compression": {"codec": codec} if level is None else {"codec": codec, "level": level},
        }
        for codec, level in each
    }


def route(stage: Stage, each: Formats, **spec: Any) -> Driver:
    """Drains the topics, each in its own format."""
    routes = [{"topics": [stage.topic(part)], "format": dict(format)} for part, format in each.items()]
    source = {**spec.pop("source", {}), "topics": [stage.topic(part) for part in each]}
    return stage.drain(source=source, routes=routes, **spec)


def side_by_side(each: Formats, records: list[Record], **spec: Any) -> Play:
    """A topic for each format, all with the same records."""

    def play(stage: Stage) -> None:
        stage.make(*each)
        for part in each:
            stage.produce(records, part)
        route(stage, each, **spec)

    return play


def alone(records: list[Record], **spec: Any) -> Play:
    """One topic, without routes."""

    def play(stage: Stage) -> None:
        stage.make()
        stage.produce(records)
        stage.drain(**spec)

    return play


def keyed(keys: list[bytes | None], values: list[Any]) -> list[Record]:
    pairs = zip(keys, values, strict=True)
    return [json_record(value, at=n, key=key, headers=[("n", f"{n}")]) for n, (key, value) in enumerate(pairs)]


ORDERS = orders(60)
TEXTS = [b"plain", "grüße 世界".encode(), b"", b'with, comma; and "quotes"', b"  spaces  ", b"\ttab"]
BINARY = [b"\x00\x01\x02", b"\xff\xfe", b"text", b"", bytes(range(256)), b"{}"]
JSON_KEYS: list[bytes | None] = [b'{"id": 5}', b'"text"', b"7", None, b"[1, 2]", b"null"]
BINARY_KEYS: list[bytes | None] = [b"\x00\xff", b"key", b"", None, b"\xc3\x28", b"a\nb"]
TEXT_KEYS: list[bytes | None] = [b"a", "ü".encode(), b"", None, b'with "quotes"', b"a,b"]
KAFKA = {"columns": {"meta": "Kafka"}}
CSV: Formats = {
    "no-header": {"type": "Csv", "csv": {"header": False}},
    "semicolon": {"type": "Csv", "csv": {"delimiter": ";", "quote": "Minimal"}},
    "broken-bar": {"type": "Csv", "csv": {"delimiter": "¦"}},
    "all-quoted": {"type": "Csv", "csv": {"quote": "All"}},
    "tab-meta": {"type": "Csv", "csv": {"delimiter": "\t"}, **KAFKA},
}
PARQUET: Formats = {
    "small-groups": {"type": "Parquet", "parquet": {"rowGroupBytes": 4096}},
    "no-dictionary": {"type": "Parquet", "parquet": {"dictionary": False}},
    "no-statistics": {"type": "Parquet", "parquet": {"statistics": False}},
}
PARTS: Formats = {
    f"{format.lower()}-{'-'.join(off)}": {
        "type": format,
        "envelope": {"enabled": True, **dict.fromkeys(off, False)},
    }
    for format in ("Json", "Parquet", "Avro", "Orc")
    for off in (["headers", "metadata"], ["key", "value"])
}

CASES: dict[str, Play] = {
    **{f"format-{name.lower()}": alone(ORDERS, format={"type": name}) for name in ALL},
    "codecs-parquet": side_by_side(
        codecs("Parquet", ("None", None), ("Gzip", 9), ("Snappy", None), ("Lz4", None), ("Zstd", 19), ("Brotli", 5)),
        ORDERS,
    ),
    "codecs-avro": side_by_side(
        codecs("Avro", ("None", None), ("Snappy", None), ("Zstd", 9), ("Bzip2", 1), ("Deflate", 9), ("Xz", 3)), ORDERS
    ),
    "codecs-orc": side_by_side(
        codecs("Orc", ("None", None), ("Snappy", None), ("Lz4", None), ("Zstd", None), ("Deflate", None)), ORDERS
    ),
    "codecs-json": side_by_side(
        codecs(
            *("Json", ("Gzip", None), ("Gzip", 1), ("Lz4", 9), ("Zstd", 3), ("Zstd", 19)),
            *(("Brotli", 11), ("Bzip2", 9), ("Xz", 6)),
        ),
        ORDERS,
    ),
    "codecs-csv": side_by_side(codecs("Csv", ("Gzip", 9), ("Lz4", None), ("Zstd", None), ("Brotli", None)), ORDERS),
    "codecs-text": side_by_side(codecs("Text", ("Gzip", 6), ("Xz", None), ("Bzip2", None)), ORDERS),
    "codecs-bytes": side_by_side(codecs("Bytes", ("Gzip", None), ("Zstd", 9)), ORDERS[:10]),
    "meta-kafka": side_by_side(formats(WITH_FIELDS, **KAFKA), ORDERS),
    "meta-quix": side_by_side(formats(WITH_FIELDS, columns={"meta": "Quix"}), ORDERS),
    "meta-airbyte": side_by_side(formats(WITH_FIELDS, columns={"meta": "Airbyte"}), ORDERS),
    "meta-airbyte-flatten": side_by_side(formats(WITH_FIELDS, columns={"meta": "Airbyte", "flatten": True}), ORDERS),
    "envelope": side_by_side(formats(("Json", "Parquet", "Avro", "Orc"), envelope={"enabled": True}), ORDERS),
    "envelope-parts": side_by_side(PARTS, orders(12)),
    "csv-options": side_by_side(CSV, ORDERS),
    "csv-unquoted": alone(
        [json_record({"a": n, "b": "plain"}, at=n) for n in range(9)], format={"type": "Csv", "csv": {"quote": "None"}}
    ),
    "parquet-options": side_by_side(PARQUET, orders(300)),
    "values-string": side_by_side(
        formats(ALL), keyed(TEXT_KEYS, TEXTS), source={"value": {"format": "String"}, "key": {"format": "String"}}
    ),
    "values-string-meta": side_by_side(
        {**formats(WITH_FIELDS, **KAFKA), "quix": {"type": "Json", "columns": {"meta": "Quix"}}},
        keyed(BINARY_KEYS, TEXTS),
        source={"value": {"format": "String"}, "key": {"format": "Bytes"}},
    ),
    "values-bytes": side_by_side(
        {**formats((*WITH_FIELDS, "Bytes")), "quix": {"type": "Parquet", "columns": {"meta": "Quix"}}},
        keyed(BINARY_KEYS, BINARY),
        source={"value": {"format": "Bytes"}, "key": {"format": "Bytes"}},
    ),
    "values-bytes-envelope": side_by_side(
        formats(("Json", "Parquet", "Avro", "Orc"), envelope={"enabled": True}),
        keyed(JSON_KEYS, BINARY),
        source={"value": {"format": "Bytes"}, "key": {"format": "Json"}},
    ),
    "keys-json-meta": side_by_side(
        formats(WITH_FIELDS, **KAFKA),
        keyed(JSON_KEYS, [order(n) for n in range(6)]),
        source={"key": {"format": "Json"}},
    ),
}
