"""What a driver reports: status, metrics, the terminal line and exit codes."""

from __future__ import annotations

import json
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from s3sink_api.exit_codes import DONE, FAILED, FENCED, FINAL
from s3sink_job.driver import loop
from s3sink_job.driver.driver import Driver
from s3sink_job.driver.loop import Loop
from s3sink_job.report.server import serve
from s3sink_job.report.terminal import status_line
from tests.harness import World
from tools.parts.proxy import FaultProxy, Status, request_is


@pytest.fixture
def drained(world: World) -> Driver:
    world.kafka.create_topic(world.topic, partitions=2)
    world.produce(list(range(30)), partition=0)
    world.produce([b"bad", 1], partition=1)
    return world.drain(flush={"records": 10}, errors={"records": "Skip"})


def get(driver: Driver, path: str, *, healthy: bool = True) -> tuple[int, str]:
    server = serve(driver.reporter, ("127.0.0.1", 0), lambda: healthy)
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}{path}"
        with urllib.request.urlopen(url) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    finally:
        server.shutdown()


def test_status_has_flush_lag_offsets_and_conditions(drained: Driver) -> None:
    code, body = get(drained, "/status")
    status = json.loads(body)
    assert code == 200
    assert status["lag"] == {"records": 0, "recordsToHighWatermark": 0, "seconds": 0.0}
    assert (status["flush"]["records"], status["flush"]["objects"]) == (31, 4)
    assert (status["flush"]["totalRecords"], status["flush"]["totalObjects"]) == (31, 4)
    assert status["flush"]["lastReason"] == "Drain"
    assert {(o["partition"], o["committed"], o["lag"]) for o in status["offsets"]} == {(0, 30, 0), (1, 2, 0)}
    assert status["retry"]["skippedRecords"] == 1
    assert status["driver"]["epoch"] == 1
    kinds = {c["type"]: c["status"] for c in status["conditions"]}
    assert kinds == {
        "Accepted": "True",
        "Ready": "True",
        "ExactlyOnce": "True",
        "CaughtUp": "True",
        "LastFlushSucceeded": "True",
    }


def test_metrics_count_what_was_published(drained: Driver) -> None:
    code, body = get(drained, "/metrics")
    assert code == 200
    found = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(body)
        for sample in family.samples
    }
    topic = drained.spec.source.topics[0]
    first = (("partition", "0"), ("topic", topic))
    second = (("partition", "1"), ("topic", topic))
    assert found["s3sink_records_total", first] == 30
    assert found["s3sink_objects_total", first] == 3
    assert found["s3sink_skipped_records_total", second] == 1
    assert found["s3sink_lag_records", first] == 0
    assert found["s3sink_committed_offset", second] == 2
    assert found["s3sink_flushes_total", (("reason", "Drain"),)] == 2
    assert found["s3sink_epoch", ()] == 1
    assert found["s3sink_up", ()] == 1
    assert found["s3sink_flush_duration_seconds_count", ()] == 1


def test_healthz_reports_the_loop_and_unknown_paths_name_the_known_ones(drained: Driver) -> None:
    assert get(drained, "/healthz")[0] == 200
    assert get(drained, "/healthz", healthy=False)[0] == 503
    assert "/status" in get(drained, "/nothing")[1]


def test_the_terminal_line_shows_totals_and_lag(drained: Driver) -> None:
    assert "31 records in 4 objects" in status_line(drained.reporter, 0.0)
    assert "0 behind" in status_line(drained.reporter, 0.0)


@pytest.fixture
def signals_kept() -> Iterator[None]:
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


RUNS_THAT_END = pytest.mark.parametrize("run", [{"run": "Once"}, {"run": "Scheduled", "schedule": "@hourly"}])


@RUNS_THAT_END
@pytest.mark.usefixtures("signals_kept")
def test_once_ends_with_0_when_everything_is_in_the_bucket(world: World, run: dict[str, str]) -> None:
    world.kafka.create_topic(world.topic)
    world.produce([1])
    driver = world.driver(**run)
    assert Loop(driver, grace=10).run() == DONE
    assert driver.reporter.status()["phase"] == "Completed"


@RUNS_THAT_END
@pytest.mark.usefixtures("signals_kept")
def test_once_ends_with_2_when_a_person_must_act(world: World, run: dict[str, str]) -> None:
    driver = world.driver(destination={"bucket": "no-such-bucket"}, **run)
    assert Loop(driver, grace=10).run() == FINAL
    status = driver.reporter.status()
    assert status["phase"] == "Failed"
    assert "BucketMissing" in status["retry"]["lastError"]


@pytest.mark.usefixtures("signals_kept")
def test_once_ends_with_2_when_a_bad_record_stopped_a_partition(world: World) -> None:
    world.kafka.create_topic(world.topic, partitions=2)
    world.produce([b"bad"], partition=0)
    world.produce([1], partition=1)
    assert Loop(world.driver(), grace=10).run() == FINAL
    assert world.rows(1) == [1]


@pytest.mark.usefixtures("signals_kept")
def test_once_ends_with_1_when_retries_are_used_up(world: World) -> None:
    driver = world.driver(
        source={
            "bootstrapServers": "127.0.0.1:9",
            "properties": {"default.api.timeout.ms": "500", "request.timeout.ms": "300"},
        },
        errors={"retries": {"max": 1, "backoff": "10ms"}},
    )
    assert Loop(driver, grace=10).run() == FAILED


@pytest.mark.usefixtures("signals_kept")
@pytest.mark.parametrize(("method", "query"), [("PUT", "partNumber"), ("POST", "uploadId")], ids=["write", "publish"])
def test_an_object_that_keeps_failing_is_named_in_the_status(
    world: World, proxy: FaultProxy, method: str, query: str
) -> None:
    world.kafka.create_topic(world.topic, partitions=2)
    world.produce([1], partition=0)
    world.produce([2], partition=1)
    world.endpoint = proxy.endpoint
    key = f"raw/{world.topic}/1/{0:019d}.jsonl"
    proxy.on(request_is(method, path=key, query=query), Status(503, "ServiceUnavailable"))
    driver = world.driver(errors={"retries": {"max": 2, "backoff": "10ms"}})
    assert Loop(driver, grace=10).run() == FAILED
    status = driver.reporter.status()
    messages = {c["type"]: c["message"] for c in status["conditions"]}
    for text in (status["retry"]["lastError"], messages["LastFlushSucceeded"], messages["Ready"]):
        assert f"s3://{world.bucket}/{key}" in text
        assert "503 ServiceUnavailable" in text
    assert status["retry"]["attempts"] >= 2, "since the last flush, and the other partition may have had one"
    assert world.rows(0) == [1]
    proxy.clear()
    world.drain()
    assert world.rows(1) == [2]


@pytest.mark.usefixtures("signals_kept")
def test_a_fenced_driver_ends_with_3(world: World) -> None:
    world.kafka.create_topic(world.topic)
    old = world.driver(run="Continuous", flush={"interval": "1s"})
    old.step()
    world.drain()
    world.produce([1])
    assert Loop(old, grace=10).run() == FENCED


@pytest.mark.usefixtures("signals_kept")
def test_continuous_stays_up_on_a_final_error_and_resumes_when_it_is_fixed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "RECHECK_AFTER", 0.5)
    world.kafka.create_topic(world.topic)
    world.produce([1])
    later = world.bucket + "-later"
    driver = world.driver(run="Continuous", flush={"interval": "1s"}, destination={"bucket": later})
    seen: list[str] = []

    def mend() -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and driver.reporter.status()["phase"] != "Failed":
            time.sleep(0.05)
        seen.append(driver.reporter.status()["phase"])
        world.s3.create_bucket(later)
        while time.monotonic() < deadline and not world.client().list_objects_v2(Bucket=later, Prefix="raw/").get(
            "KeyCount"
        ):
            time.sleep(0.1)
        time.sleep(1)
        seen.append(driver.reporter.status()["phase"])
        driver.stop.set()

    helper = threading.Thread(target=mend)
    helper.start()
    assert Loop(driver, grace=30).run() == DONE
    helper.join()
    assert seen == ["Failed", "Running"]
