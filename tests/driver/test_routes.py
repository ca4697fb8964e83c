"""Routes: other buckets, prefixes, formats and rules in one sink, and what is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import duckdb
import fastavro
import pytest

from s3sink_job.driver.flusher import Flusher
from tests.harness import World, failure_of


@dataclass(frozen=True)
class Shop:
    """A world with several topics and a second bucket."""

    world: World
    orders: str
    payments: str
    clicks: str
    other: str

    @property
    def source(self) -> dict[str, Any]:
        return {"topics": [self.orders, self.payments, self.clicks]}


@pytest.fixture
def shop(world: World) -> Shop:
    names = (world.topic, f"{world.topic}-pay", f"{world.topic}-clicks")
    for name in names:
        world.kafka.create_topic(name)
        world.produce([{"n": n, "of": name} for n in range(25)], topic=name)
    other = f"{world.bucket}-b"
    world.client().create_bucket(Bucket=other)
    return Shop(world, *names, other)


def test_topics_take_their_own_bucket_prefix_format_layout_and_flush(shop: Shop, tmp_path: Any) -> None:
    world = shop.world
    routes = [
        {
            "topics": [shop.payments],
            "destination": {"bucket": shop.other, "prefix": "pay"},
            "format": {"type": "Avro", "compression": {"codec": "Deflate"}},
            "layout": {"objectName": "Confluent", "hiveStyle": True},
        },
        {"topics": [shop.clicks], "destination": {"prefix": ""}, "format": {"type": "Csv"}, "flush": {"records": 10}},
    ]
    driver = world.drain(source=shop.source, routes=routes)

    assert world.objects() == [f"raw/{shop.orders}/0/{0:019d}.jsonl"], "the others inherit nothing of it"
    assert list(world.sizes("", shop.other)) == [f"pay/{shop.payments}/partition=0/{shop.payments}+0+0000000000.avro"]
    assert world.objects(f"{shop.clicks}/") == [f"{shop.clicks}/0/{n:019d}.csv" for n in (0, 10, 20)]

    (avro,) = world.download(tmp_path, "pay/", shop.other)
    tables = world.download(tmp_path, f"{shop.clicks}/")
    with avro.open("rb") as file:
        assert list(fastavro.reader(file)) == [{"n": n, "of": shop.payments} for n in range(25)]
    query = f"SELECT count(*), sum(n), max(of) FROM read_csv({[str(t) for t in tables]})"
    found = duckdb.connect().execute(query).fetchall()
    assert found == [(25, 300, shop.clicks)]

    report = world.verify(driver)
    assert report.ok, report.to_doc()
    assert (report.objects, report.counts.records) == (5, 75)
    (key,) = world.sizes("", shop.other)
    world.client().delete_object(Bucket=shop.other, Key=key)
    report = world.verify(driver)
    assert (report.ok, report.counts.missing) == (False, 25), "it looks into the other bucket, too"


def test_a_flush_rule_of_a_route_is_its_topics_own(shop: Shop) -> None:
    world = shop.world
    routes = [{"topics": [shop.payments], "flush": {"records": 20}}]
    driver = world.driver(source=shop.source, routes=routes, run="Continuous")
    driver.step()
    driver.step()
    assert [len(world.lines(topic=topic)) for topic in (shop.orders, shop.payments, shop.clicks)] == [0, 20, 0]


def test_a_pattern_routes_topics_that_are_made_later(shop: Shop) -> None:
    world = shop.world
    spec: dict[str, Any] = {
        "source": {"topics": [], "topicPattern": f"{world.topic}.*"},
        "routes": [{"topicPattern": ".*-(pay|late)", "destination": {"bucket": shop.other}}],
    }
    world.drain(**spec)
    late = f"{world.topic}-late"
    world.kafka.create_topic(late)
    world.produce([{"late": True}], topic=late)
    driver = world.drain(**spec)

    assert sorted(world.objects()) == sorted(f"raw/{t}/0/{0:019d}.jsonl" for t in (shop.orders, shop.clicks))
    assert list(world.sizes("", shop.other)) == sorted(f"raw/{t}/0/{0:019d}.jsonl" for t in (late, shop.payments))
    report = world.verify(driver)
    assert report.ok, report.to_doc()
    assert report.counts.records == 76


def test_a_topic_that_two_routes_match_waits_while_the_others_go_on(shop: Shop) -> None:
    world = shop.world
    routes = [
        {"topicPattern": ".*-pay", "destination": {"prefix": "one"}},
        {"topicPattern": ".*-p.*", "destination": {"prefix": "two"}},
    ]
    driver = world.drain(source=shop.source, routes=routes)
    problem = driver.problems[shop.payments, 0]
    assert problem.reason == "RoutesOverlap"
    assert f"topic {shop.payments} matches spec.routes[0] and spec.routes[1]" in problem.message
    assert len(world.lines(topic=shop.orders)) == len(world.lines(topic=shop.clicks)) == 25
    assert not world.objects("one/")
    assert not world.objects("two/")
    assert driver.reporter.status()["lag"]["records"] >= 0

    driver = world.drain(source=shop.source, routes=routes[:1])
    assert not driver.problems
    assert len(world.content(world.objects("one/")[0]).splitlines()) == 25, "from its start, as soon as one is meant"
    assert world.verify(driver).ok


def test_another_bucket_that_is_missing_is_named_before_anything_is_read(shop: Shop) -> None:
    world = shop.world
    routes = [{"topics": [shop.payments], "destination": {"bucket": "no-such-bucket"}}]
    error = failure_of(world.driver(source=shop.source, routes=routes).step)
    assert (error.reason, error.retryable) == ("BucketMissing", False)
    assert "no-such-bucket" in str(error)
    assert not world.objects("")


def test_an_object_lost_in_another_bucket_is_written_there_again(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    world = shop.world
    routes = [{"topics": [shop.payments], "destination": {"bucket": shop.other}, "format": {"type": "Parquet"}}]
    driver = world.driver(source=shop.source, routes=routes)
    with monkeypatch.context() as patch:
        patch.setattr(Flusher, "publish", lambda self, committer, manifest: None)
        driver.step()
    client = world.client()
    (upload,) = client.list_multipart_uploads(Bucket=shop.other)["Uploads"]
    client.abort_multipart_upload(Bucket=shop.other, Key=upload["Key"], UploadId=upload["UploadId"])

    # The route is gone, but what was committed still belongs to that bucket.
    driver = world.drain(source=shop.source)
    assert list(world.sizes("", shop.other)) == [upload["Key"]]
    report = world.verify(driver)
    assert report.ok, report.to_doc()
    assert report.counts.records == 75


def test_a_layout_that_changed_between_runs_is_verified_as_it_was(shop: Shop) -> None:
    """Each object is verified with the folders, names, format, bucket and route that it was written with."""
    world = shop.world
    by_parity = {"partitionBy": [{"type": "Topic"}, {"type": "Field", "path": ["n"], "as": "n"}], "hiveStyle": True}
    runs: list[dict[str, Any]] = [
        {},
        {"layout": by_parity},
        {"layout": {**by_parity, "objectName": "Lenses"}, "format": {"type": "Parquet"}},
        {"layout": {**by_parity, "hiveStyle": False}, "routes": [{"topics": [shop.clicks], "format": {"type": "Csv"}}]},
        {"routes": [{"topics": [shop.clicks], "destination": {"bucket": shop.other}}]},
        {},
    ]
    for number, run in enumerate(runs):
        driver = world.drain(source=shop.source, **run)
        assert not driver.problems, (number, driver.problems)
        for topic in (shop.orders, shop.clicks):
            world.produce([{"n": n % 2, "run": number} for n in range(6)], topic=topic)
    report = world.verify(driver)
    assert report.ok, report.to_doc()
    assert report.counts.records == 75 + 5 * 12
    assert len([k for k in world.sizes() if "/n=1/" in k and k.endswith(".jsonl")]) == 2
    assert len([k for k in world.sizes() if "/n=1/" in k and k.endswith(".parquet")]) == 2
    client = world.client()
    (key,) = world.sizes("", shop.other)
    lines = client.get_object(Bucket=shop.other, Key=key)["Body"].read().splitlines()
    assert [json.loads(line)["run"] for line in lines] == [3] * 6
