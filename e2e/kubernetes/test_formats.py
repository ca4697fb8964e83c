"""Every format and codec, written in the image, which lacks parts of libraries that other tests have complete.

One sink writes all of them, each topic by its own route. Folder names use a time zone and a language, and tables have
times, because the image has neither Debian's time zones nor its languages.
"""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import pytest
from pyarrow import orc

from e2e.kubernetes.world import PREFIX, SINK, World
from s3sink_api.spec import CODECS
from tools.parts.decompressors import DECOMPRESS

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]
Row = dict[str, Any]
PAIRS = [(format, codec) for format, codecs in CODECS.items() for codec in codecs]
RECORDS = 12
# 2023-11-14, a Tuesday, 22:13:20 in UTC.
BEGAN = 1_700_000_000_000
BY_THE_CLOCK = {"type": "Time", "source": "Record", "format": "EEEE/HH-mm", "timezone": "Asia/Kolkata", "locale": "de"}
FOLDER = "Mittwoch/03-43"


def test_other_readers_read_every_format_and_codec_of_the_image(world: World) -> None:
    world.make_bucket()
    for pair in PAIRS:
        topic = topic_of(world, *pair)
        # Otherwise Kafka would soon delete records this old.
        world.plant.kafka.create_topic(topic, config={"retention.ms": "-1"})
        world.plant.kafka.produce(topic, [(b"key", json.dumps(v).encode(), None, BEGAN + v["id"]) for v in values()], 0)
    spec: Row = {
        "run": "Once",
        "source": {"topics": [topic_of(world, *pair) for pair in PAIRS]},
        "layout": {"partitionBy": [{"type": "Topic"}, BY_THE_CLOCK]},
        "routes": [route(world, *pair) for pair in PAIRS],
    }
    world.apply(**spec)
    world.namespace.until_reason(SINK, "Ready", "Completed", 300)
    wrong = {pair: found for pair in PAIRS if (found := read(world, *pair)) != expected(pair[0])}
    assert wrong == {}
    world.verify(len(PAIRS) * RECORDS, **spec)


def topic_of(world: World, format: str, codec: str) -> str:
    return f"{world.topic}-{format}-{codec}".lower()


def values() -> list[Row]:
    return [{"id": n, "name": f"Grüße, 世界 {n}", "price": n / 8} for n in range(RECORDS)]


def route(world: World, format: str, codec: str) -> Row:
    columns = {"meta": "None" if format in ("Text", "Bytes") else "Kafka"}
    written = {"type": format, "compression": {"codec": codec}, "columns": columns}
    return {"topics": [topic_of(world, format, codec)], "format": written}


def expected(format: str) -> list[Row]:
    """With the record's time, if the format has a place for it."""
    times = {} if format in ("Text", "Bytes") else {"_timestamp": BEGAN}
    return [value | {name: began + value["id"] for name, began in times.items()} for value in values()]


def read(world: World, format: str, codec: str) -> list[Row]:
    """What other readers find in the topic's objects, in the order of their names."""
    folder = f"{PREFIX}/{topic_of(world, format, codec)}/{FOLDER}/"
    found = []
    for key in sorted(key for key in world.objects() if key.startswith(folder)):
        path = world.folder / "object"
        path.write_bytes(world.client.get_object(Bucket=world.bucket, Key=key)["Body"].read())
        found += [plain(row) for row in rows(format, codec, path)]
    return found


def rows(format: str, codec: str, path: Path) -> list[Row]:
    match format:
        case "Parquet":
            with duckdb.connect() as database:
                # Through Arrow: DuckDB alone would need another package for times.
                table: list[Row] = database.read_parquet(str(path)).to_arrow_table().to_pylist()
                return table
        case "Avro":
            with path.open("rb") as file:
                return [row for row in fastavro.reader(file) if isinstance(row, dict)]
        case "Orc":
            stripes: list[Row] = orc.ORCFile(path).read().to_pylist()
            return stripes
    text = bytes(DECOMPRESS[codec](path.read_bytes()))
    if format == "Csv":
        with io.StringIO(text.decode(), newline="") as lines:
            return list(csv.DictReader(lines, strict=True))
    return [json.loads(line) for line in text.splitlines()]


def plain(row: Row) -> Row:
    """The value's own fields and the time, the same for all formats."""
    found = {"id": int(row["id"]), "name": row["name"], "price": float(row["price"])}
    return found | ({"_timestamp": moment(row["_timestamp"])} if "_timestamp" in row else {})


def moment(found: Any) -> int:
    """A time in milliseconds; without a time zone it is in UTC."""
    if isinstance(found, int):
        return found
    time = found if isinstance(found, datetime) else datetime.fromisoformat(found)
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
