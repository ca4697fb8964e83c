"""Stores that change ETags, lose metadata, throttle or refuse keys."""

from __future__ import annotations

import json
from typing import Any

import pytest

from s3sink_job.proof.orphaned_uploads import orphaned_uploads
from s3sink_job.stores.request_limit import PARALLEL
from tests.commit.test_store_faults import bucket_of, committed_but_unpublished
from tests.harness import World, failure_of
from tests.proof.test_gc import ANY_AGE
from tools.parts.proxy import ChangeAnswer, FaultProxy, Status, request_is

NO_METADATA = ChangeAnswer(lambda name, value: None if name.startswith("x-amz-meta-") else value)
ANOTHER_ETAG = ChangeAnswer(lambda name, value: f'"{"ab" * 16}"' if name == "etag" else value)
PART = request_is("PUT", path="/raw/", query="partNumber")
BY_NAME = {"partitionBy": [{"type": "Topic"}, {"type": "Field", "path": ["name"]}]}
LONG = "x" * 300


@pytest.fixture
def shaky(world: World, proxy: FaultProxy) -> World:
    """The world with the proxy before its store."""
    world.kafka.create_topic(world.topic)
    world.endpoint = proxy.endpoint
    return world


def names(world: World) -> list[str]:
    return sorted(json.loads(line)["name"] for line in world.lines())


def test_gc_spares_what_a_state_names_though_a_page_of_the_list_fails(
    shaky: World, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    shaky.produce([1])
    driver = committed_but_unpublished(shaky, monkeypatch)
    bucket = bucket_of(driver)
    rule = proxy.on(request_is("GET", query="list-type=2"), Status(503, "SlowDown"), times=1)

    found = list(orphaned_uploads(bucket, driver.routing, [shaky.topic], ANY_AGE))

    assert rule.hits == 1
    assert found == []


@pytest.mark.parametrize("rows", [100, 60_000], ids=["one part", "several parts"])
def test_a_part_with_another_etag_and_the_same_content_is_completed(shaky: World, proxy: FaultProxy, rows: int) -> None:
    """As if the first attempt had timed out and arrived last, on a store whose ETags do not depend on the content."""
    values = [{"n": n, "text": "0123456789" * 10} for n in range(rows)]
    shaky.produce(values)
    rule = proxy.on(PART, ANOTHER_ETAG, times=1)

    driver = shaky.drain(flush={"records": rows}, destination={"partSize": "5Mi"})

    assert rule.hits == 1
    assert shaky.rows() == values
    assert shaky.state()["publishing"] is None
    assert shaky.verify(driver).ok


def test_an_upload_with_other_parts_than_were_sent_is_written_again(
    shaky: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    shaky.produce([1, 2, 3])
    committed_but_unpublished(shaky, monkeypatch)
    client = shaky.client()
    (upload,) = client.list_multipart_uploads(Bucket=shaky.bucket)["Uploads"]
    place = {"Bucket": shaky.bucket, "Key": upload["Key"], "UploadId": upload["UploadId"]}
    client.upload_part(**place, PartNumber=1, Body=b"somebody else's, and longer")

    driver = shaky.drain()

    assert shaky.rows() == [1, 2, 3]
    assert client.list_multipart_uploads(Bucket=shaky.bucket).get("Uploads", []) == []
    assert shaky.verify(driver).ok


@pytest.fixture
def forgets(shaky: World, proxy: FaultProxy) -> World:
    """A store that does not return metadata."""
    proxy.on(request_is("HEAD"), NO_METADATA)
    return shaky


def test_exactly_once_is_refused_on_a_store_that_forgets_metadata(forgets: World) -> None:
    forgets.produce([1])
    error = failure_of(forgets.driver().step)
    assert (error.reason, error.retryable) == ("NoMetadata", False)
    assert "HEAD of the object returned ''" in str(error)
    assert "AtLeastOnce" in str(error)
    assert forgets.objects() == []


def test_at_least_once_goes_on_where_metadata_is_forgotten(
    forgets: World, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upload that was completed before a crash is recognised by its name."""
    forgets.produce(list(range(2500)))
    driver = committed_but_unpublished(forgets, monkeypatch, delivery="AtLeastOnce")
    assert driver.committer is not None
    driver.committer.publish(driver.committer.ledger.manifest(forgets.state()["publishing"]))
    proxy.on(request_is("POST", path="raw/", query="uploadId="), Status(404, "NoSuchUpload"), times=3)

    driver = forgets.drain(delivery="AtLeastOnce")

    assert forgets.rows() == list(range(2500))
    conditions = {c["type"]: c for c in driver.reporter.status()["conditions"]}
    assert conditions["ExactlyOnce"]["reason"] == "NoMetadata"
    assert forgets.verify(driver).ok


@pytest.mark.parametrize("code", ["RequestTimeout", "ThrottlingException", "IncompleteBody", "BadDigest"])
def test_passing_failures_with_status_400_do_not_stop_a_partition(shaky: World, proxy: FaultProxy, code: str) -> None:
    shaky.produce([1, 2])
    rules = [
        proxy.on(PART, Status(400, code), times=1),
        proxy.on(request_is("PUT", path="state.json"), Status(400, code), times=1),
    ]
    driver = shaky.drain()
    assert [rule.hits for rule in rules] == [1, 1]
    assert shaky.rows() == [1, 2]
    assert not driver.problems


def test_a_store_that_throttles_gets_fewer_requests_at_a_time_and_the_driver_says_so(
    shaky: World, proxy: FaultProxy
) -> None:
    """Tasks start with the limit of the last ones. Without throttling it grows again."""
    registry = (driver := shaky.driver(run="Continuous", flush={"records": 1})).reporter.metrics.registry
    proxy.on(PART, Status(503, "SlowDown"), times=2)
    for number, share in enumerate((PARALLEL // 4, PARALLEL // 4 + 1, PARALLEL // 4 + 2)):
        shaky.produce([number])
        while len(shaky.rows()) <= number:
            driver.step()
        assert driver.flush_job.request_limit.now == share
        assert registry.get_sample_value("s3sink_requests_at_a_time") == share
    assert registry.get_sample_value("s3sink_throttled_requests_total") == 2


def record(name: str) -> dict[str, Any]:
    return {"name": name}


def test_a_folder_longer_than_the_store_takes_stops_at_that_record(shaky: World) -> None:
    """versitygw keeps objects as files. It accepts such an upload, but never completes it."""
    shaky.produce([record("a"), record("b"), record(LONG), record("a")])
    driver = shaky.drain(layout=BY_NAME)
    problem = driver.problems[shaky.topic, 0]
    assert problem.reason == "BadRecord"
    assert f"topic {shaky.topic}, partition 0, offset 2: " in problem.message
    assert "300 bytes, and this store takes 255 between slashes" in problem.message
    assert names(shaky) == ["a", "b"]
    assert shaky.state()["publishing"] is None
    assert shaky.verify(driver).ok


@pytest.mark.parametrize("kind", ["Json", "Bytes"])
def test_records_of_a_folder_that_the_store_refuses_are_skipped_and_counted(shaky: World, kind: str) -> None:
    shaky.produce([record("a"), record(LONG), record("b"), record(LONG), record("a")])
    driver = shaky.drain(layout=BY_NAME, errors={"records": "Skip"}, format={"type": kind})
    assert names(shaky) == ["a", "a", "b"]
    assert driver.reporter.status()["retry"]["skippedRecords"] == 2
    report = shaky.verify(driver)
    assert (report.ok, report.skipped) == (True, 2)


@pytest.mark.parametrize("code", ["XMinioInvalidObjectName", "InvalidArgument", "InvalidURI"])
@pytest.mark.parametrize("kind", ["Json", "Bytes"])
def test_a_key_that_the_store_refuses_when_it_is_written_is_blamed_on_its_records(
    shaky: World, proxy: FaultProxy, kind: str, code: str
) -> None:
    shaky.produce([record("a"), record("odd"), record("b"), record("odd"), record("even")])
    odd = request_is("POST", path="odd/", query="uploads") if kind == "Json" else request_is("PUT", path="odd/")
    proxy.on(odd, Status(400, code))

    driver = shaky.drain(layout=BY_NAME, format={"type": kind})

    problem = driver.problems[shaky.topic, 0]
    assert problem.reason == "BadRecord"
    assert "partition 0, offset 1: the store refuses its key: " in problem.message
    assert code in problem.message
    assert shaky.state()["topics"][shaky.topic]["partitions"]["0"]["offset"] == 1
    if kind == "Json":  # objects of single records show before their commit
        assert names(shaky) == ["a"]

    driver = shaky.drain(layout=BY_NAME, format={"type": kind}, errors={"records": "Skip"})
    assert names(shaky) == ["a", "b", "even"]
    assert driver.reporter.status()["retry"]["skippedRecords"] == 2
    assert shaky.verify(driver).ok


def test_a_store_that_refuses_every_key_skips_no_record(shaky: World, proxy: FaultProxy) -> None:
    """For example because it does not know the storage class."""
    shaky.produce([record("a"), record("b")])
    rule = proxy.on(request_is("POST", path="raw/", query="uploads"), Status(400, "InvalidArgument"))
    driver = shaky.drain(layout=BY_NAME, errors={"records": "Skip"})
    assert driver.problems[shaky.topic, 0].reason == "StoreRefused"
    assert names(shaky) == []
    proxy.remove(rule)
    shaky.drain(layout=BY_NAME, errors={"records": "Skip"})
    assert names(shaky) == ["a", "b"]


def test_a_name_too_long_for_the_store_makes_all_records_of_the_slice_bad(shaky: World) -> None:
    """This is known only when the object is written, so the slice is read a second time."""
    shaky.topic = "t" * 240
    shaky.kafka.create_topic(shaky.topic)
    shaky.produce([1, 2])
    layout = {"objectName": "Confluent"}
    driver = shaky.drain(layout=layout, source={"topics": [shaky.topic]})
    problem = driver.problems[shaky.topic, 0]
    assert problem.reason == "BadRecord"
    assert "offset 0: " in problem.message
    assert "and this store takes 255 between slashes" in problem.message
    shaky.drain(layout=layout, source={"topics": [shaky.topic]}, errors={"records": "Skip"})
    assert shaky.state()["totals"]["skipped"] == 2


@pytest.mark.parametrize("kind", ["Json", "Bytes"])
def test_a_key_that_is_refused_only_once_costs_no_record(shaky: World, proxy: FaultProxy, kind: str) -> None:
    """An unknown error code may be transient."""
    shaky.produce([record("a"), record("odd"), record("b")])
    odd = request_is("POST", path="odd/", query="uploads") if kind == "Json" else request_is("PUT", path="odd/")
    proxy.on(odd, Status(400, "KMS.DisabledForAMoment"), times=1)

    driver = shaky.drain(layout=BY_NAME, format={"type": kind}, errors={"records": "Skip"})

    assert names(shaky) == ["a", "b", "odd"]
    assert driver.reporter.status()["retry"]["skippedRecords"] == 0
