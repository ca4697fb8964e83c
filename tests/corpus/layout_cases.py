"""Folders, names, routes, and where objects end."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.corpus.format_cases import alone, formats
from tests.corpus.recording import Play, Stage
from tests.corpus.records import json_record, orders, values
from tools.parts.kafka import Record

TOPIC, PARTITION = {"type": "Topic"}, {"type": "Partition"}
ODD_VALUES = ["DE", "a/b", "x=y", "50%", "ü 世界", "q'\"q", "..", "a:b", "back\\slash", "{}[]", "+ &", None, "%2F", ""]


def by(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"partitionBy": list(items), **more}


def field(*path: str, **more: Any) -> dict[str, Any]:
    return {"type": "Field", "path": list(path), **more}


def time_of(format: str, source: str = "Record", **more: Any) -> dict[str, Any]:
    return {"type": "Time", "source": source, "format": format, **more}


def at_times(*texts: str) -> list[Record]:
    """A record at each time in UTC. Kafka takes none of the future, and 0 would mean now."""
    millis = [int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000) for text in texts]
    return [(None, b'{"n": %d}' % n, None, at) for n, at in enumerate(millis)]


BERLIN = at_times(
    *("2024-03-31T00:59:59", "2024-03-31T01:00:00", "2024-10-27T00:30:00", "2024-10-27T01:30:00"),
    *("2024-12-31T23:30:00", "1970-01-01T00:00:01", "2026-01-01T00:00:00"),
)
"""Around both changes of the clock there, and of the year."""
TIMES_IN_FIELDS = values(
    {"at": 1_767_225_600},
    {"at": 1_767_225_600_000},
    {"at": 1_767_225_600_000_000},
    {"at": "2026-01-01T00:00:00+02:00"},
    {"at": "2026-06-30"},
    {"at": None},
    {},
)
GROUPS = [
    json_record({"n": n, "city": f"city-{(n * 7) % 12}", **({"late": n} if n > 4500 else {})}, at=n)
    for n in range(6000)
]
"""More cities than a task keeps open at a time, and a field that the first batch of records does not have."""
BY_CITY = by(TOPIC, field("city"), hiveStyle=True)
NAMES: dict[str, dict[str, Any]] = {
    "offset": {"layout": {"objectName": "Offset"}},
    "bare": {"layout": by(objectName="Offset")},
    "confluent": {"layout": {"objectName": "Confluent", "hiveStyle": True}},
    "lenses": {"layout": {"objectName": "Lenses"}},
    "upload": {"layout": {"objectName": "Upload"}},
    "padded": {"layout": {"objectName": "Confluent", "padding": {"offset": 4, "partition": 3}}},
    "unpadded": {"layout": {"objectName": "Lenses", "padding": {"offset": 0}}},
    "suffix": {"layout": {"suffix": "-part.final", "extension": ".json"}},
    "coded": {"layout": {"extension": ".json"}, "format": {"compression": {"codec": "Gzip"}}},
    "coded-by-name": {"layout": {"extension": ".json.zst"}, "format": {"compression": {"codec": "Zstd"}}},
}


def names(stage: Stage) -> None:
    """Each style of names, in two flushes."""
    topics = stage.make(*NAMES, partitions=2)
    routes = [
        {"topics": [stage.topic(part)], "destination": {"prefix": f"by-{part}"}, **own} for part, own in NAMES.items()
    ]
    for first in (0, 30):
        for part in NAMES:
            for partition in range(2):
                stage.produce(orders(30, first), part, partition)
        stage.drain(source={"topics": topics}, routes=routes, flush={"records": 20})


def wall_clock(stage: Stage) -> None:
    """Two flushes, an hour between them."""
    stage.make()
    items = (TOPIC, time_of("yyyy-MM-dd/HH", "Wallclock", timezone="America/New_York"))
    for first in (0, 10):
        stage.produce(orders(10, first))
        stage.drain(layout=by(*items, objectName="Upload"), flush={"records": 4})


def partitions_and_topics(stage: Stage) -> None:
    topics = stage.make("one", "two", partitions=3)
    for number, part in enumerate(("one", "two")):
        for partition in range(3):
            stage.produce(orders(5 + 10 * partition + number), part, partition)
    stage.drain(source={"topics": topics}, format={"type": "Parquet"}, flush={"records": 10})


def topic_pattern(stage: Stage) -> None:
    """A topic appears between two runs."""
    stage.make("orders", "payments", "other")
    spec: dict[str, Any] = {
        "source": {"topics": [], "topicPattern": f"{stage.topic()}-(orders|payments|late)"},
        "routes": [{"topicPattern": ".*-(payments|late)", "format": {"type": "Csv"}}],
    }
    for part in ("orders", "payments", "other"):
        stage.produce(orders(8), part)
    stage.drain(**spec)
    stage.make("late")
    stage.produce(orders(3), "late")
    stage.produce(orders(3, 8), "orders")
    stage.drain(**spec)


def routes(stage: Stage) -> None:
    """Other prefixes, buckets, formats, layouts and rules."""
    other = stage.other_bucket()
    topics = stage.make("orders", "payments", "clicks", "audit")
    for part in ("orders", "payments", "clicks", "audit"):
        stage.produce(orders(25), part)
    stage.drain(
        source={"topics": topics},
        layout={"hiveStyle": True},
        routes=[
            {
                "topics": [stage.topic("payments")],
                "destination": {"bucket": other, "prefix": "pay"},
                "format": {"type": "Avro", "compression": {"codec": "Deflate"}},
                "layout": {"objectName": "Confluent"},
            },
            {"topics": [stage.topic("clicks")], "destination": {"prefix": ""}, "flush": {"records": 10}},
            {
                "topicPattern": ".*-audit",
                "destination": {"bucket": other, "prefix": "audit"},
                "layout": by(TOPIC, time_of("yyyy/MM/dd/HH/mm", every="10m")),
                "format": {"type": "Parquet", "columns": {"meta": "Kafka"}},
            },
        ],
    )


def flush_bytes(stage: Stage) -> None:
    """The first flush measures, the others are cut by it."""
    each = formats(("Json", "Parquet", "Avro"))
    topics = stage.make(*each)
    for first in (0, 400, 1200):
        for part in each:
            stage.produce(orders(400, first), part)
        stage.drain(
            source={"topics": topics},
            flush={"bytes": 16384},
            routes=[{"topics": [stage.topic(part)], "format": dict(own)} for part, own in each.items()],
        )


def flush_rules(stage: Stage) -> None:
    """A lasting driver: whole objects by the records rule, the rest by the interval, then by the aligned clock."""
    stage.make()
    stage.produce(orders(25))
    spec: dict[str, Any] = {"run": "Continuous", "flush": {"records": 10, "interval": "10m"}}
    driver = stage.driver(**spec)
    for _ in range(3):
        driver.step()
    stage.note(driver)
    stage.clock.pass_time(601)
    for _ in range(2):
        driver.step()
    stage.note(driver)
    stage.produce(orders(3, 25))
    driver.step()
    driver.close()
    aligned = stage.driver(run="Continuous", flush={"records": 10, "interval": "5h", "aligned": "15m"})
    aligned.step()
    stage.clock.pass_time(900)
    for _ in range(2):
        aligned.step()
    stage.note(aligned)


def many_folders(stage: Stage) -> None:
    """Rows of many groups are staged, in each format in its own way; objects are cut within groups."""
    each = {**formats(("Json", "Parquet", "Avro")), "kafka": {"type": "Csv", "columns": {"meta": "Kafka"}}}
    topics = stage.make(*each)
    for part in each:
        stage.produce(GROUPS[:600], part)
    stage.drain(
        source={"topics": topics},
        layout=BY_CITY,
        flush={"records": 20},
        routes=[{"topics": [stage.topic(part)], "format": dict(own)} for part, own in each.items()],
    )


def spilled_folders(stage: Stage) -> None:
    """More rows than are staged in memory, and little room to spill: objects are closed early."""
    stage.make()
    fill = "0123456789abcdef" * 240
    stage.produce(json_record({"n": n, "city": f"city-{n % 12}", "fill": fill}, at=n) for n in range(20_000))
    stage.drain(
        layout=BY_CITY,
        format={"type": "Json", "compression": {"codec": "Zstd"}},
        flush={"records": 100_000},
        spark={"driver": {"cores": 1, "spill": "64Mi"}},
    )


def tagged(stage: Stage) -> None:
    stage.make()
    stage.produce(orders(5))
    stage.drain(destination={"prefix": "", "tags": {"team": "shop", "kind": "raw"}, "statePrefix": ".s3sink"})


CASES: dict[str, Play] = {
    "names": names,
    "folders-by-fields": alone(
        orders(40), layout=by(TOPIC, field("country"), field("customer", "name", **{"as": "who"}), hiveStyle=True)
    ),
    "folders-bare": alone(orders(20), layout=by(PARTITION, field("paid"), field("price"), TOPIC)),
    "folders-by-key": alone(orders(20), layout=by({**TOPIC, "as": "t"}, {"type": "Key"}, hiveStyle=True)),
    "folders-by-key-field": alone(
        [
            json_record({"n": n}, at=n, key=key)
            for n, key in enumerate(['{"id": 5, "who": {"n": "a"}}', '{"id": 6}', None, '{"id": 5, "who": {}}'])
        ],
        layout=by(TOPIC, {"type": "Key", "path": ["id"]}, {"type": "Key", "path": ["who", "n"]}, hiveStyle=True),
        source={"key": {"format": "Json"}},
    ),
    "folders-by-header": alone(
        orders(20),
        layout=by(TOPIC, {"type": "Header", "name": "trace"}, {"type": "Header", "name": "empty"}, hiveStyle=True),
    ),
    "folders-by-odd-values": alone(
        [json_record({"v": value, "n": n}, at=n) for n, value in enumerate(ODD_VALUES)],
        layout=by(TOPIC, field("v"), hiveStyle=True),
        format={"type": "Parquet"},
    ),
    "folders-missing-fail": alone(
        values({"v": "a"}, {"v": "b"}, {}, {"v": "a"}), layout=by(TOPIC, field("v"), onMissingValue="Fail")
    ),
    "folders-bad-value-skip": alone(
        values({"v": "a"}, {"v": {}}, {"v": [1]}, {"v": "a"}), layout=by(field("v")), errors={"records": "Skip"}
    ),
    "folders-by-time": alone(
        BERLIN, layout=by(TOPIC, time_of("'year='yyyy/'month='MM/'day='dd/'hour='HH", timezone="Europe/Berlin"))
    ),
    "folders-by-time-in-words": alone(
        BERLIN, layout=by(TOPIC, time_of("EEEE d MMMM yyyy/h a/QQQ", locale="de", every="6h"))
    ),
    "folders-by-time-in-a-field": alone(
        TIMES_IN_FIELDS, layout=by(TOPIC, time_of("yyyy-MM-dd'T'HH:mm", "Field", path=["at"]))
    ),
    "folders-by-wall-clock": wall_clock,
    "folders-by-time-single-records": alone(
        orders(12), layout=by(TOPIC, time_of("HH/mm", every="5m")), format={"type": "Bytes"}
    ),
    "folders-many": many_folders,
    "folders-many-staged": alone(GROUPS, layout=BY_CITY, format={"type": "Orc"}, flush={"records": 100_000}),
    "folders-many-spilled": spilled_folders,
    "tombstones-apart-in-folders": alone(
        [json_record(None if n % 4 == 3 else {"c": n % 3}, at=n * 600, key=f"k{n}") for n in range(20)],
        layout=by(TOPIC, field("c"), time_of("'hour='HH"), hiveStyle=True),
        nullValues="Separate",
        format={"type": "Parquet", "columns": {"meta": "Kafka"}},
    ),
    "record-window": alone(orders(200), format={"type": "Avro"}, flush={"recordWindow": "1h", "records": 1000}),
    "record-window-in-folders": alone(
        orders(100), layout=by(TOPIC, field("country")), flush={"recordWindow": "15m", "records": 5}
    ),
    "flush-records": alone(orders(100), format={"type": "Parquet"}, flush={"records": 7}),
    "flush-bytes": flush_bytes,
    "flush-rules": flush_rules,
    "partitions-and-topics": partitions_and_topics,
    "topic-pattern": topic_pattern,
    "routes": routes,
    "tags": tagged,
}
