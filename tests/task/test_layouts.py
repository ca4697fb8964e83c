"""Folders and names: where each record goes, and how readers of tables see it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.commit.test_store_faults import abort_all, committed_but_unpublished
from tests.harness import World
from tools.parts.kafka import Headers, Record

MISSING = "__HIVE_DEFAULT_PARTITION__"
TOPIC, PARTITION = {"type": "Topic"}, {"type": "Partition"}
NAME = f"{0:019d}.jsonl"


@pytest.fixture
def topic(world: World) -> World:
    world.kafka.create_topic(world.topic)
    return world


def by(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"partitionBy": list(items), **more}


def field(*path: str, **more: Any) -> dict[str, Any]:
    return {"type": "Field", "path": list(path), **more}


def time_of(format: str, **more: Any) -> dict[str, Any]:
    return {"type": "Time", "source": "Record", "format": format, **more}


def millis(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def folders(world: World) -> dict[str, list[Any]]:
    """The records by folder below the topic's."""
    found: dict[str, list[Any]] = {}
    for key in world.sizes():
        folder = key.removeprefix(f"raw/{world.topic}/").rpartition("/")[0]
        found.setdefault(folder, []).extend(json.loads(line) for line in world.content(key).splitlines())
    return found


def query(text: str) -> list[Any]:
    with duckdb.connect() as database:
        return database.execute(text).fetchall()


def proved(world: World) -> None:
    report = world.verify(world.drivers[-1])
    assert report.ok, report.to_doc()


RECORD = {"customer": {"country": "DE"}, "a.b": 7, "n": 1.50, "ok": True, "at": 1_700_000_000}
Kind = tuple[dict[str, Any], str, str]
KINDS: dict[str, Kind] = {
    "topic": (TOPIC, "{topic}", "{topic}"),
    "topic by name": ({**TOPIC, "as": "t"}, "t={topic}", "{topic}"),
    "partition": (PARTITION, "partition=0", "0"),
    "field": (field("customer", "country"), "country=DE", "DE"),
    "field with a dot": (field("a.b", **{"as": "ab"}), "ab=7", "7"),
    "number": (field("n"), "n=1.5", "1.5"),
    "truth": (field("ok"), "ok=true", "true"),
    "key": (
        {"type": "Key"},
        "key=%7B%22id%22%3A 5, %22at%22%3A %22x%22%7D",
        "%7B%22id%22%3A 5, %22at%22%3A %22x%22%7D",
    ),
    "header": ({"type": "Header", "name": "region"}, "region=eu", "eu"),
    "record time": (time_of("'year='yyyy/'month='MM"), "year=2023/month=11", "year=2023/month=11"),
    "bare time": (time_of("yyyy/MM/dd/HH"), "2023/11/14/22", "2023/11/14/22"),
    "time in a field": (
        {"type": "Time", "source": "Field", "path": ["at"], "format": "yyyy-MM-dd"},
        "2023-11-14",
        "2023-11-14",
    ),
}


@pytest.mark.parametrize(("hive", "order"), [(True, 1), (False, -1)], ids=["hive", "bare, the other way round"])
def test_items_of_every_kind_in_any_order_name_the_folders(topic: World, hive: bool, order: int) -> None:
    headers: Headers = [("region", "us"), ("region", "eu")]
    record = (b'{"id": 5, "at": "x"}', json.dumps(RECORD).encode(), headers, 1_700_000_000_000)
    topic.kafka.produce(topic.topic, [record], 0)
    chosen: list[Kind] = list(KINDS.values())[::order]
    topic.drain(layout=by(*(kind[0] for kind in chosen), hiveStyle=hive))
    wanted = "/".join((named if hive else bare).format(topic=topic.topic) for _, named, bare in chosen)
    assert topic.objects() == [f"raw/{wanted}/{NAME}"]
    proved(topic)


def test_fields_of_a_json_key_are_told_apart_from_the_whole(topic: World) -> None:
    keys = [b'{"id": 5, "who": {"n": "a"}}', b'{"id": 6}', None, b'{"id": 5, "who": {"n": "b"}}']
    topic.kafka.produce(topic.topic, [(key, b'{"n": %d}' % n, None, None) for n, key in enumerate(keys)], 0)
    items = [TOPIC, {"type": "Key", "path": ["id"]}, {"type": "Key", "path": ["who", "n"], "as": "who"}]
    topic.drain(layout=by(*items, hiveStyle=True), source={"key": {"format": "Json"}})
    assert folders(topic) == {
        "id=5/who=a": [{"n": 0}],
        "id=5/who=b": [{"n": 3}],
        f"id=6/who={MISSING}": [{"n": 1}],
        f"id={MISSING}/who={MISSING}": [{"n": 2}],
    }
    proved(topic)


ODD_VALUES = ["DE", "a/b", "x=y", "50%", "ü 世界", "q'\"q", "..", "a:b", "back\\slash", "{}[]", "+ &", None, "%2F"]


def test_a_hive_layout_is_queried_by_its_columns(topic: World, tmp_path: Path) -> None:
    """DuckDB and Spark return escaped values as they were."""
    values: list[dict[str, Any]] = [{"n": n, "c": {"country": ODD_VALUES[n % len(ODD_VALUES)]}} for n in range(130)]
    stamps = [millis("2024-02-28") + n * 3_600_000 for n in range(130)]
    records: list[Record] = [(None, json.dumps(v).encode(), None, t) for v, t in zip(values, stamps, strict=True)]
    topic.kafka.produce(topic.topic, records, 0)
    items = [TOPIC, field("c", "country", **{"as": "cc"}), time_of("'day='yyyy-MM-dd"), PARTITION]
    topic.drain(layout=by(*items, hiveStyle=True), format={"type": "Parquet"})
    proved(topic)
    topic.download(tmp_path)
    root = tmp_path / "raw" / topic.topic

    days = [datetime.fromtimestamp(t / 1000, UTC).strftime("%Y-%m-%d") for t in stamps]
    wanted = sorted((v["n"], v["c"]["country"], day, "0") for v, day in zip(values, days, strict=True))
    table = f"read_parquet('{root}/**/*.parquet', hive_partitioning=true, hive_types_autocast=false)"
    assert sorted(query(f"SELECT n, cc, day, partition FROM {table}")) == wanted
    one = f"SELECT count(*) FROM {table} WHERE cc = 'a/b' AND day >= '2024-03-01'"
    assert query(one) == [(sum(c == "a/b" and day >= "2024-03-01" for _, c, day, _ in wanted),)]

    inference = "spark.sql.sources.partitionColumnTypeInference.enabled"
    topic.spark.conf.set(inference, "false")
    try:
        frame = topic.spark.read.parquet(str(root))
        found = [tuple(row) for row in frame.select("n", "cc", "day", "partition").collect()]
        assert sorted(found) == wanted
        assert frame.where("cc IS NULL").count() == 10
        assert frame.where("cc = '50%'").count() == 10
    finally:
        topic.spark.conf.unset(inference)


def test_time_zones_with_daylight_saving_name_folders_by_the_clock_on_the_wall(topic: World) -> None:
    """In autumn an hour comes twice, in spring one is left out."""
    times = {
        "2024-10-26T23:59:59": "2024-10-27/01",
        "2024-10-27T00:30:00": "2024-10-27/02",
        "2024-10-27T01:30:00": "2024-10-27/02",
        "2024-10-27T02:00:00": "2024-10-27/03",
        "2024-03-31T00:59:59": "2024-03-31/01",
        "2024-03-31T01:00:00": "2024-03-31/03",
        "2024-12-31T23:00:00": "2025-01-01/00",
    }
    topic.kafka.produce(topic.topic, [(None, json.dumps(t).encode(), None, millis(t)) for t in times], 0)
    topic.drain(layout=by(TOPIC, PARTITION, time_of("yyyy-MM-dd/HH", timezone="Europe/Berlin")))
    assert {row: folder.removeprefix("0/") for folder, rows in folders(topic).items() for row in rows} == times
    proved(topic)


def test_every_and_locale_make_coarser_folders_in_words(topic: World) -> None:
    times = ["2024-05-01T00:14:59", "2024-05-01T00:15:00", "2024-05-01T00:29:59", "2024-05-01T01:44:00"]
    topic.kafka.produce(topic.topic, [(None, json.dumps(t).encode(), None, millis(t)) for t in times], 0)
    topic.drain(layout=by(TOPIC, PARTITION, time_of("MMMM/HH-mm", locale="de", every="15m")))
    assert folders(topic) == {
        "0/Mai/00-00": times[:1],
        "0/Mai/00-15": times[1:3],
        "0/Mai/01-30": times[3:],
    }
    proved(topic)


def test_late_records_go_to_their_own_folder_in_whichever_flush_they_come(topic: World) -> None:
    days = ["2024-05-01", "2024-05-02", "2024-05-01", "2024-05-03"]
    layout = by(TOPIC, PARTITION, time_of("yyyy-MM-dd"))
    for late in (days, ["2024-05-01", "2024-05-03"]):
        topic.kafka.produce(topic.topic, [(None, json.dumps(d).encode(), None, millis(d)) for d in late], 0)
        topic.drain(layout=layout)
    assert folders(topic) == {
        f"0/{day}": [day] * count for day, count in zip(sorted(set(days)), (3, 1, 2), strict=True)
    }
    assert len(topic.sizes()) == 5
    proved(topic)


TIMES = [
    (1_714_521_600, "2024-05-01"),
    (1_714_608_000_000, "2024-05-02"),
    (1_714_694_400_000_000, "2024-05-03"),
    ("2024-05-04T23:30:00-05:00", "2024-05-05"),
    ("2024-05-06T12:00:00Z", "2024-05-06"),
    ("1714953600", "2024-05-06"),
    (None, MISSING),
]


def test_times_in_a_field_may_be_seconds_millis_micros_or_iso_text(topic: World) -> None:
    topic.produce([{"at": at} for at, _ in TIMES])
    driver = topic.drain(layout=by(TOPIC, PARTITION, time_of("yyyy-MM-dd") | {"source": "Field", "path": ["at"]}))
    assert not driver.problems, driver.problems
    found = {json.dumps(row["at"]): folder for folder, rows in folders(topic).items() for row in rows}
    assert found == {json.dumps(at): f"0/{day}" for at, day in TIMES}
    proved(topic)


def test_a_missing_value_has_a_folder_of_its_own_unless_it_is_refused(topic: World) -> None:
    values: list[Any] = [{"c": "x"}, {"c": None}, {}, {"c": ""}, 5, None, {"c": MISSING}]
    topic.produce(values)
    topic.drain(layout=by(TOPIC, field("c"), hiveStyle=True))
    found = folders(topic)
    assert found.pop("c=x") == values[:1]
    assert found.pop(f"c={MISSING}") == values[1:6]
    ((folder, rows),) = found.items()
    assert rows == values[6:], "what only looks like it is told apart"
    assert folder.startswith("c=%5F")
    proved(topic)


def test_a_refused_missing_value_stops_at_its_record(topic: World) -> None:
    topic.produce([{"c": "x"}, {"c": "y"}, {"d": 1}, {"c": "z"}])
    layout = by(TOPIC, field("c"), onMissingValue="Fail")
    driver = topic.drain(layout=layout)
    problem = driver.problems[topic.topic, 0]
    assert problem.reason == "BadRecord"
    assert "offset 2: value field c is missing, and spec.layout.onMissingValue is Fail" in problem.message
    assert topic.state()["topics"][topic.topic]["partitions"]["0"]["offset"] == 2
    assert folders(topic) == {"x": [{"c": "x"}], "y": [{"c": "y"}]}
    proved(topic)
    driver = topic.drain(layout=layout, errors={"records": "Skip"})
    assert not driver.problems
    assert folders(topic)["z"] == [{"c": "z"}]
    assert topic.verify(driver).skipped == 1
    proved(topic)


@pytest.mark.parametrize("odd", [{"x": 1}, [1], []], ids=["object", "list", "empty list"])
def test_a_value_that_is_no_primitive_is_an_error_that_names_the_path(topic: World, odd: Any) -> None:
    values = [{"a": {"b": n if n != 5 else odd}} for n in range(8)]
    topic.produce(values)
    layout = by(TOPIC, field("a", "b"))
    driver = topic.drain(layout=layout)
    message = driver.problems[topic.topic, 0].message
    assert f"topic {topic.topic}, partition 0, offset 5" in message
    assert "value field a.b" in message
    assert {int(folder): rows for folder, rows in folders(topic).items()} == {n: [values[n]] for n in range(5)}
    assert topic.state()["topics"][topic.topic]["partitions"]["0"]["offset"] == 5
    driver = topic.drain(layout=layout, errors={"records": "Skip"})
    assert {int(folder) for folder in folders(topic)} == set(range(8)) - {5}
    assert (topic.verify(driver).ok, topic.verify(driver).skipped) == (True, 1)


@pytest.mark.parametrize(
    ("layout", "names"),
    [
        ({}, ["{t}/1/0000000000000000000.jsonl", "{t}/1/0000000000000000002.jsonl"]),
        ({"padding": {"offset": 4, "partition": 3}}, ["{t}/1/0000.jsonl", "{t}/1/0002.jsonl"]),
        (
            {"objectName": "Confluent", "hiveStyle": True},
            ["{t}/partition=1/{t}+1+0000000000.jsonl", "{t}/partition=1/{t}+1+0000000002.jsonl"],
        ),
        (
            {"objectName": "Lenses", "padding": {"partition": 2}, "suffix": "-x"},
            ["{t}/1/{t}(01_000000000000)-x.jsonl", "{t}/1/{t}(01_000000000002)-x.jsonl"],
        ),
        (
            {"objectName": "Offset", "partitionBy": [TOPIC], "extension": ".ndjson"},
            ["{t}/{t}+1+0000000000000000000.ndjson", "{t}/{t}+1+0000000000000000002.ndjson"],
        ),
        (
            {"objectName": "Confluent", "partitionBy": [], "padding": {"offset": 0}},
            ["{t}+1+0.jsonl", "{t}+1+2.jsonl"],
        ),
    ],
    ids=["offset", "padded", "confluent", "lenses", "no partition", "no folder"],
)
def test_names_of_each_style(world: World, layout: dict[str, Any], names: list[str]) -> None:
    world.kafka.create_topic(world.topic, partitions=2)
    world.produce([1, 2, 3], partition=1)
    world.drain(layout=layout, flush={"records": 2})
    assert world.objects() == [f"raw/{name.format(t=world.topic)}" for name in names]
    proved(world)


DESCRIBED: list[tuple[dict[str, Any], dict[str, Any], str, str, str]] = [
    ({"type": "Json"}, {}, ".jsonl", "application/x-ndjson", ""),
    ({"type": "Json", "compression": {"codec": "Gzip"}}, {}, ".jsonl.gz", "application/x-ndjson", ""),
    ({"type": "Csv", "compression": {"codec": "Bzip2"}}, {}, ".csv.bz2", "text/csv; charset=utf-8", ""),
    ({"type": "Text"}, {}, ".txt", "text/plain; charset=utf-8", ""),
    ({"type": "Parquet"}, {}, ".parquet", "application/vnd.apache.parquet", ""),
    ({"type": "Avro"}, {}, ".avro", "application/avro", ""),
    ({"type": "Orc"}, {}, ".orc", "application/vnd.apache.orc", ""),
    (
        {"type": "Json", "compression": {"codec": "Gzip"}},
        {"extension": ".json"},
        ".json",
        "application/x-ndjson",
        "gzip",
    ),
    (
        {"type": "Json", "compression": {"codec": "Gzip"}},
        {"extension": ".json.gz"},
        ".json.gz",
        "application/x-ndjson",
        "",
    ),
    ({"type": "Csv", "compression": {"codec": "Zstd"}}, {"extension": ".x"}, ".x", "text/csv; charset=utf-8", "zstd"),
    ({"type": "Json", "compression": {"codec": "Xz"}}, {"extension": ".json"}, ".json", "application/x-ndjson", ""),
    ({"type": "Parquet"}, {"extension": ".pq"}, ".pq", "application/vnd.apache.parquet", ""),
]


def test_objects_say_what_they_are(world: World) -> None:
    """By extension, Content-Type and, if the name does not show the compression, Content-Encoding."""
    topics = [f"{world.topic}-{number}" for number in range(len(DESCRIBED))]
    routes = []
    for name, (format, layout, *_) in zip(topics, DESCRIBED, strict=True):
        world.kafka.create_topic(name)
        world.produce([{"a": 1}], topic=name)
        routes.append({"topics": [name], "format": format, "layout": layout})
    driver = world.drain(source={"topics": topics}, routes=routes)
    for name, (_, _, extension, kind, coding) in zip(topics, DESCRIBED, strict=True):
        (key,) = world.objects(f"raw/{name}/")
        described = world.head(key)
        assert key == f"raw/{name}/0/{0:019d}{extension}"
        assert (described["ContentType"], described.get("ContentEncoding", "")) == (kind, coding)
    assert world.verify(driver).ok


def at(moment: str) -> Callable[[], float]:
    return lambda: millis(moment) / 1000


def test_folders_by_the_wall_clock_tell_when_a_flush_began(topic: World) -> None:
    item = {"type": "Time", "source": "Wallclock", "format": "'day='yyyy-MM-dd/'hour='HH", "timezone": "Asia/Tokyo"}
    moments = ["2026-03-01T10:00:00", "2026-03-01T15:30:00", "2026-03-01T15:30:00"]
    for number, moment in enumerate(moments):
        topic.produce([{"run": number, "n": n} for n in range(3)])
        topic.drain(topic.driver(layout=by(TOPIC, PARTITION, item), clock=at(moment), flush={"records": 2}))
        proved(topic)
    assert {folder: sorted({r["run"] for r in rows}) for folder, rows in folders(topic).items()} == {
        "0/day=2026-03-01/hour=19": [0],
        "0/day=2026-03-02/hour=00": [1, 2],
    }
    assert sum(map(len, folders(topic).values())) == 9


def test_names_by_upload_rise_even_when_the_clock_goes_back(world: World) -> None:
    world.kafka.create_topic(world.topic, partitions=2)
    stamps: list[int] = []
    moments = ["2026-03-02T00:00:00", "2026-03-01T00:00:00", "2026-03-01T00:00:00", "2026-03-03T00:00:00"]
    layout = by(TOPIC, field("v"), objectName="Upload", suffix="-z")
    for number, moment in enumerate(moments):
        for partition in range(2):
            world.produce([{"v": n % 2, "run": number} for n in range(6)], partition=partition)
        world.drain(world.driver(layout=layout, clock=at(moment), flush={"records": 2}))
        stamps.append(world.state()["stamp"])
        proved(world)
    first, last = millis(moments[0]), millis(moments[-1])
    assert stamps == [first, first + 1, first + 2, last]
    names = [key.rsplit("/", 1)[1] for key in world.sizes()]
    # Three records of each value in each of two partitions, two to an object.
    assert len(set(names)) == len(names) == 4 * 2 * 2 * 2
    for stamp, day in zip(stamps, ("02", "02", "02", "03"), strict=True):
        parts = sorted(int(n.split("_")[4].split("-")[0]) for n in names if f"_{stamp}_" in n)
        assert len(parts) == 8
        assert all(n.startswith(f"2026_03_{day}_") and n.endswith("-z.jsonl") for n in names if f"_{stamp}_" in n)


WALLCLOCK = {"type": "Time", "source": "Wallclock", "format": "yyyy-MM-dd-HH-mm-ss"}
REPAIRS: dict[str, dict[str, Any]] = {
    "by field": {"layout": by(TOPIC, field("v"), PARTITION, hiveStyle=True), "format": {"type": "Parquet"}},
    "by time, with windows": {"layout": by(TOPIC, PARTITION, time_of("yyyy/MM/dd")), "flush": {"recordWindow": "1h"}},
    "by the wall clock": {"layout": by(TOPIC, PARTITION, WALLCLOCK, field("v"))},
    "upload names": {"layout": by(TOPIC, field("v"), objectName="Upload"), "format": {"type": "Csv"}},
    "both": {"layout": by(WALLCLOCK, objectName="Upload"), "format": {"type": "Avro"}},
    "tombstones apart": {"layout": by(TOPIC, field("v")), "nullValues": "Separate"},
    "many values": {"layout": by(TOPIC, field("n")), "format": {"type": "Orc"}},
}


@pytest.mark.parametrize("name", REPAIRS)
def test_a_lost_upload_is_written_again_under_the_same_key(
    world: World, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder and name are those of the flush that lost it, not of the repair."""
    world.kafka.create_topic(world.topic, partitions=2)
    values = [{"v": n % 3, "n": n % 12, "more": f"ü{n}"} for n in range(60)]
    start = millis("2024-05-01T22:00:00")
    for partition in range(2):
        records: list[Record] = [
            (None, json.dumps(v).encode(), None, start + n * 240_000) for n, v in enumerate(values)
        ]
        records[7] = (None, None, None, start)
        world.kafka.produce(world.topic, records, partition)
    spec = {"flush": {"records": 1000}, **REPAIRS[name]}
    committed_but_unpublished(world, monkeypatch, **spec)
    client = world.client()
    lost = sorted(upload["Key"] for upload in client.list_multipart_uploads(Bucket=world.bucket)["Uploads"])
    assert abort_all(world) == len(lost) >= 2
    assert not world.sizes()

    driver = world.drain(**spec)
    assert sorted(world.sizes()) == lost
    report = world.verify(driver)
    assert report.ok, report.to_doc()
    assert report.counts.records == 120
