"""`s3sink gc` with all kinds of layouts: it finds orphaned uploads, and never those that a sink will complete."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from s3sink_job.driver.driver import Driver
from s3sink_job.proof.orphaned_uploads import known_topics, orphaned_uploads
from tests.commit.test_store_faults import bucket_of, committed_but_unpublished
from tests.harness import World, failure_of

ANY_AGE = timedelta(seconds=-5)
STATE = ".s3sink/default/sink/"
BY_COUNTRY_AND_DAY = [
    {"type": "Topic"},
    {"type": "Field", "path": ["country"]},
    {"type": "Time", "source": "Record", "format": "'day='yyyy-MM-dd/HH"},
]
VALUES = [{"country": "DE"}, {"country": "a/b c"}, None, {}]


@pytest.fixture
def shop(world: World) -> World:
    """Three topics and a second bucket."""
    for name in topics(world):
        world.kafka.create_topic(name)
        world.produce(VALUES, topic=name)
    world.client().create_bucket(Bucket=elsewhere(world))
    return world


def topics(world: World) -> list[str]:
    return [world.topic, f"{world.topic}-pay", f"{world.topic}.log"]


def elsewhere(world: World) -> str:
    return f"{world.bucket}-b"


def spread(world: World) -> dict[str, Any]:
    """Folders by field and time, separate tombstones, one topic in another bucket, one without its name in keys."""
    _, payments, logs = topics(world)
    return {
        "source": {"topics": topics(world)},
        "nullValues": "Separate",
        "layout": {"partitionBy": BY_COUNTRY_AND_DAY, "hiveStyle": True},
        "routes": [
            {
                "topics": [payments],
                "destination": {"bucket": elsewhere(world), "prefix": "pay"},
                "layout": {"partitionBy": [*BY_COUNTRY_AND_DAY[1:]], "hiveStyle": False, "objectName": "Lenses"},
            },
            {
                "topics": [logs],
                "destination": {"prefix": "logs/all"},
                "layout": {
                    "partitionBy": [{"type": "Time", "source": "Wallclock", "format": "yyyy"}, {"type": "Topic"}],
                    "objectName": "Upload",
                },
            },
        ],
    }


def everything(world: World) -> set[tuple[str, str]]:
    """Data objects of both buckets."""
    names = (world.bucket, elsewhere(world))
    return {(name, key) for name in names for key in world.sizes("", name) if not key.startswith(".s3sink/")}


def begin(world: World, bucket: str, key: str) -> str:
    upload: str = world.client().create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
    return upload


def uploads(world: World, bucket: str) -> set[str]:
    found = world.client().list_multipart_uploads(Bucket=bucket).get("Uploads", [])
    return {upload["UploadId"] for upload in found}


def left_behind(driver: Driver) -> set[str]:
    """Upload ids that gc would abort."""
    bucket = bucket_of(driver)
    names = known_topics(bucket, STATE.rstrip("/"), driver.spec.source.topics)
    return {upload.upload_id for _, upload in orphaned_uploads(bucket, driver.routing, names, ANY_AGE)}


def test_gc_finds_uploads_of_every_layout_and_bucket_and_no_foreign_ones(
    shop: World,
) -> None:
    driver = shop.drain(**spread(shop))
    written = everything(shop)
    assert {bucket for bucket, _ in written} == {shop.bucket, elsewhere(shop)}
    assert sum("_tombstones/" in key for _, key in written) == 3
    ours = {begin(shop, bucket, key) for bucket, key in written}

    alike = next(key for _, key in written if key.startswith("raw/") and "country=DE" in key)
    foreign = [
        (shop.bucket, alike.replace(shop.topic, "another-sinks-topic")),
        (shop.bucket, alike.replace(f"raw/{shop.topic}/", f"raw/{shop.topic}/deeper/")),
        (shop.bucket, alike.replace("raw/", "raw-too/")),
        (shop.bucket, alike.replace("day=", "date=")),
        (shop.bucket, f"{alike.rpartition('/')[0]}/notes.txt"),
        (elsewhere(shop), alike),
        *((shop.bucket, key) for bucket, key in written if bucket != shop.bucket),
    ]
    theirs = {begin(shop, bucket, key) for bucket, key in foreign}

    assert left_behind(driver) == ours
    assert (uploads(shop, shop.bucket) | uploads(shop, elsewhere(shop))) - ours == theirs


def test_gc_keeps_uploads_that_any_sink_is_about_to_publish(shop: World, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = committed_but_unpublished(shop, monkeypatch, **spread(shop))
    committed = uploads(shop, shop.bucket) | uploads(shop, elsewhere(shop))
    assert len(committed) == 10
    orphan = begin(shop, elsewhere(shop), f"pay/DE/day=2026-01-15/09/{topics(shop)[1]}(0_000000000000).jsonl")
    assert left_behind(driver) == {orphan}

    for key in shop.sizes(STATE):
        body = shop.client().get_object(Bucket=shop.bucket, Key=key)["Body"].read()
        shop.client().put_object(Bucket=shop.bucket, Key=key.replace("default/sink", "team/other"), Body=body)
        shop.client().delete_object(Bucket=shop.bucket, Key=key)
    assert left_behind(driver) == {orphan}, "another sink's state names them now"


def test_gc_aborts_nothing_while_a_manifest_is_missing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1])
    driver = committed_but_unpublished(world, monkeypatch)
    name = f"{STATE}flushes/{world.state()['publishing']}.json"
    world.client().delete_object(Bucket=world.bucket, Key=name)

    error = failure_of(lambda: left_behind(driver))

    assert (error.reason, error.retryable) == ("StateLost", False)
    assert name in str(error)
    assert len(uploads(world, world.bucket)) == 1
