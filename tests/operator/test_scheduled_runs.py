"""`run: Scheduled`: a CronJob with the Jobs of `run: Once`; the status keeps the last run."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from s3sink_operator.decide.cron_times import cron_times
from s3sink_operator.decide.status.events import events_between
from s3sink_operator.values.objects import Child, ContainerExit, Pod
from s3sink_operator.values.observation import Observation
from tests.operator.samples import (
    NOW,
    SETTINGS,
    carried_out,
    children,
    condition,
    decided,
    message,
    named,
    observed,
    pod,
    ready,
    report,
    resource,
    run_of,
    status_of,
)

SCHEDULE = {"run": "Scheduled", "schedule": "0 * * * *"}
SINK = resource(SCHEDULE)
COMPLETED = json.dumps({k: v for k, v in report("Completed").document.items() if k != "offsets"})
NO_BUCKET = json.dumps(
    report(
        "Failed",
        conditions=[
            condition("Ready", False, "Failed", "bucket lake does not exist"),
            condition("LastFlushSucceeded", False, "BucketMissing", "bucket lake does not exist"),
        ],
    ).document
)

NO_LUCK = ContainerExit(2, "Error", NO_BUCKET)


def scheduled(*runs: Any, pods: tuple[Pod, ...] = (), **fields: Any) -> Observation:
    return observed(fields.pop("sink", SINK), children=(*children(SINK), *runs), pods=pods, **fields)


def pod_of(number: int, **fields: Any) -> Pod:
    given = {"name": f"orders-s3sink-{number}-abc", "job": f"orders-s3sink-{number}"}
    return pod(SINK, **(given | {"created": f"2026-11-16T11:{number:02}:01Z"} | fields))


def done(number: int, message: str = COMPLETED) -> Pod:
    return pod_of(number, phase="Succeeded", ready=False, ended=ContainerExit(0, "Completed", message))


def broken(number: int, end: ContainerExit = NO_LUCK, **fields: Any) -> Pod:
    return pod_of(number, phase="Failed", ready=False, ended=end, **fields)


def test_the_cron_job_runs_the_same_job_as_once_never_two_at_a_time() -> None:
    once = next(d for d in decided(observed(resource({"run": "Once"}))).apply if d["kind"] == "Job")
    cron = next(d for d in decided(observed(SINK)).apply if d["kind"] == "CronJob")
    spec = cron["spec"]
    assert (spec["schedule"], spec["timeZone"], spec["suspend"]) == ("0 * * * *", "Etc/UTC", False)
    assert spec["concurrencyPolicy"] == "Forbid"
    assert (spec["successfulJobsHistoryLimit"], spec["failedJobsHistoryLimit"]) == (1, 1)
    job = json.loads(json.dumps(spec["jobTemplate"]["spec"]))
    for template in (job, once["spec"]):
        # The hash of the ConfigMap is of another spec.
        template["template"]["metadata"].pop("annotations")
    assert job == once["spec"]


def test_jobs_and_pods_of_a_run_are_found_by_our_labels() -> None:
    cron = next(d for d in decided(observed(SINK)).apply if d["kind"] == "CronJob")
    template = cron["spec"]["jobTemplate"]
    for found in (template["metadata"]["labels"], template["spec"]["template"]["metadata"]["labels"]):
        assert found.items() >= cron["metadata"]["labels"].items()


def test_before_the_first_run_it_waits_for_the_schedule() -> None:
    for seen in (observed(SINK), scheduled()):
        status = status_of(seen)
        assert (status["phase"], named(status, "Ready")) == ("Pending", ("False", "WaitingForSchedule"))
        assert "0 * * * *" in message(status, "Ready")


def test_a_run_under_way_shows_what_its_driver_reports() -> None:
    told = replace(report(), pod="orders-s3sink-1-abc")
    assert ready(scheduled(run_of(SINK), pods=(pod_of(1),), report=told)) == ("True", "Running")
    starting = pod_of(1, phase="Pending", ready=False, created="2026-11-16T11:59:00Z")
    assert ready(scheduled(run_of(SINK), pods=(starting,))) == ("False", "Starting")
    fresh = replace(run_of(SINK), document={**run_of(SINK).document, "metadata": {"uid": "x"}})
    assert ready(scheduled(fresh)) == ("False", "Creating")


def test_between_two_runs_the_report_of_the_last_one_stays() -> None:
    seen = scheduled(run_of(SINK, 1, "Complete"), pods=(done(1),))
    status = status_of(seen)
    assert (status["phase"], named(status, "Ready")) == ("Completed", ("True", "Completed"))
    assert status["flush"]["totalRecords"] == 5
    assert status["lag"]["records"] == 0
    assert message(status, "Ready").endswith("the next run follows the schedule 0 * * * *")
    later = replace(carried_out(seen, decided(seen)), pods=(), now=NOW + timedelta(days=1))
    found = decided(later)
    kept = found.status or later.resource.status
    assert (kept["phase"], kept["flush"]["totalRecords"]) == ("Completed", 5)
    assert named(kept, "CaughtUp") == ("True", "Level")


def test_a_failed_run_shows_until_another_one_succeeds() -> None:
    failed = run_of(SINK, 1, "Failed", "PodFailurePolicy")
    status = status_of(scheduled(failed, pods=(broken(1),)))
    assert (status["phase"], named(status, "Ready")) == ("Failed", ("False", "BucketMissing"))
    assert "bucket lake does not exist; the next run follows" in message(status, "Ready")
    assert named(status, "LastFlushSucceeded") == ("False", "BucketMissing")

    told = replace(report(), pod="orders-s3sink-2-abc")
    status = status_of(scheduled(failed, run_of(SINK, 2), pods=(broken(1), pod_of(2)), report=told))
    assert (status["phase"], named(status, "Ready")) == ("Degraded", ("True", "Running"))
    assert "the previous run failed: bucket lake does not exist" in message(status, "Ready")

    status = status_of(scheduled(failed, run_of(SINK, 2, "Complete"), pods=(broken(1), done(2))))
    assert (status["phase"], named(status, "Ready")) == ("Completed", ("True", "Completed"))
    assert "failed" not in message(status, "Ready")


def test_a_run_without_a_pod_is_not_mistaken_for_the_previous_one() -> None:
    fresh = run_of(SINK, 2)
    fresh = replace(fresh, document={**fresh.document, "metadata": {**fresh.document["metadata"]}})
    fresh.document["metadata"]["creationTimestamp"] = "2026-11-16T11:59:30Z"
    status = status_of(scheduled(run_of(SINK, 1, "Complete"), fresh, pods=(done(1),)))
    assert (status["phase"], named(status, "Ready")) == ("Pending", ("False", "Creating"))


def test_a_failed_attempt_with_retries_left_is_not_a_failed_run() -> None:
    crashed = broken(1, ContainerExit(1, "Error", "boom"))
    status = status_of(scheduled(run_of(SINK, 1), pods=(crashed,)))
    assert (status["phase"], named(status, "Ready")) == ("Degraded", ("False", "TryingAgain"))
    assert "code 1: boom" in message(status, "Ready")
    # The driver has ended, and Kubernetes has not updated the Job yet.
    assert ready(scheduled(run_of(SINK, 1), pods=(done(1),))) == ("True", "Completed")


@pytest.mark.parametrize(
    ("end", "fields", "word", "expected"),
    [
        (ContainerExit(137, "OOMKilled"), {}, "BackoffLimitExceeded", "OOMKilled"),
        (ContainerExit(1, "Error", "boom"), {}, "BackoffLimitExceeded", "DriverFailed"),
        (ContainerExit(143, "Error"), {}, "DeadlineExceeded", "DeadlineExceeded"),
        (ContainerExit(137, "Error"), {"reason": "Evicted", "reason_message": "low on disk"}, "", "Evicted"),
    ],
)
def test_a_failed_run_has_a_reason(end: ContainerExit, fields: dict[str, Any], word: str, expected: str) -> None:
    seen = scheduled(run_of(SINK, 1, "Failed", word), pods=(broken(1, end, **fields),))
    assert ready(seen) == ("False", expected)


def test_a_failed_run_stays_failed_after_its_pods_are_removed() -> None:
    status = status_of(scheduled(run_of(SINK, 1, "Failed", "DeadlineExceeded")))
    assert (status["phase"], named(status, "Ready")) == ("Failed", ("False", "DriverFailed"))


def test_a_new_spec_is_for_the_next_run_only() -> None:
    sink = resource({**SCHEDULE, "flush": {"records": 7}}, generation=4)
    told = replace(report(), pod="orders-s3sink-1-abc")
    seen = scheduled(run_of(SINK, 1), pods=(pod_of(1),), report=told, sink=sink)
    found = decided(seen)
    assert {d["kind"] for d in found.apply} == {"ConfigMap", "CronJob"}
    assert not found.delete
    assert not found.rollout
    assert ready(seen) == ("True", "Running")


def test_paused_starts_no_run_and_ends_the_one_under_way() -> None:
    paused = resource({**SCHEDULE, "state": "Paused"}, generation=4)
    seen = scheduled(run_of(SINK, 1, "Complete"), run_of(SINK, 2), pods=(done(1), pod_of(2)), sink=paused)
    found = decided(seen)
    assert [(c.kind, c.name) for c in found.delete] == [("Job", "orders-s3sink-2")]
    cron = next(d for d in found.apply if d["kind"] == "CronJob")
    assert cron["spec"]["suspend"] is True
    assert (status_of(seen)["phase"], ready(seen)) == ("Paused", ("False", "Pausing"))
    over = replace(carried_out(seen, found), pods=(done(1),))
    assert (status_of(over)["phase"], ready(over)) == ("Paused", ("False", "Paused"))
    assert not decided(over).delete


def test_resuming_a_pause_resumes_the_schedule() -> None:
    paused = resource({**SCHEDULE, "state": "Paused"}, generation=4)
    again = resource(SCHEDULE, generation=5)
    held = carried_out(scheduled(sink=paused), decided(scheduled(sink=paused)))
    found = decided(replace(held, resource=again))
    cron = next(d for d in found.apply if d["kind"] == "CronJob")
    assert cron["spec"]["suspend"] is False


def test_stopped_deletes_the_cron_job_and_its_current_run() -> None:
    stopped = resource({**SCHEDULE, "state": "Stopped"}, generation=4)
    seen = scheduled(run_of(SINK, 1), pods=(pod_of(1),), sink=stopped)
    found = decided(seen)
    # The garbage collector deletes its Jobs and their pods.
    assert [(c.kind, c.name) for c in found.delete] == [("CronJob", "orders-s3sink")]
    assert ready(seen) == ("False", "Stopping")


def test_a_refused_spec_keeps_the_former_schedule() -> None:
    sink = resource({**SCHEDULE, "flush": {"interval": 5}}, generation=4)
    seen = scheduled(sink=sink)
    assert (decided(seen).apply, decided(seen).delete) == ((), ())
    assert "runs stay on the spec of generation 3, not ready (WaitingForSchedule: " in message(status_of(seen), "Ready")
    after = scheduled(run_of(SINK, 1, "Complete"), pods=(done(1),), sink=sink)
    status = status_of(after)
    assert named(status, "Accepted") == ("False", "InvalidSpec")
    assert (status["phase"], named(status, "Ready")) == ("Degraded", ("False", "SpecRefused"))
    assert status["flush"]["totalRecords"] == 5


def test_jobs_of_a_foreign_cron_job_do_not_count() -> None:
    foreign = replace(run_of(SINK, 1, "Failed"), owner="somebody")
    assert ready(scheduled(foreign)) == ("False", "WaitingForSchedule")


def test_a_job_that_gets_no_pod_says_where_to_look() -> None:
    status = status_of(scheduled(run_of(SINK, 1)))
    assert named(status, "Ready") == ("False", "NotStarting")
    assert "`kubectl describe job orders-s3sink-1`" in message(status, "Ready")


def test_a_new_operator_changes_the_next_run_and_restarts_nothing() -> None:
    told = replace(report(), pod="orders-s3sink-1-abc")
    seen = scheduled(run_of(SINK, 1), pods=(pod_of(1),), report=told)
    found = decided(seen, replace(SETTINGS, image="registry.example/s3sink:2"))
    assert [d["kind"] for d in found.apply] == ["CronJob"]
    assert (found.rollout, found.delete) == (False, ())


def test_a_full_refresh_gets_the_uid_of_its_job_as_its_run_and_nothing_else_does() -> None:
    def run_ids(spec: dict[str, Any]) -> list[Any]:
        (workload,) = (d for d in decided(observed(resource(spec))).apply if d["kind"] in {"Job", "CronJob"})
        job = workload["spec"]["jobTemplate"]["spec"] if workload["kind"] == "CronJob" else workload["spec"]
        env = job["template"]["spec"]["containers"][0]["env"]
        return [each["valueFrom"]["fieldRef"]["fieldPath"] for each in env if each["name"] == "S3SINK_RUN_ID"]

    uid = "metadata.labels['batch.kubernetes.io/controller-uid']"
    assert run_ids(SCHEDULE | {"mode": "FullRefresh"}) == [uid]
    assert run_ids({"run": "Once", "mode": "FullRefresh"}) == [uid]
    assert run_ids(SCHEDULE) == run_ids({"run": "Once"}) == []


def test_a_full_refresh_warns_of_what_it_replaces_and_says_when_it_is_current() -> None:
    refresh = {
        "run": "job-1",
        "phase": "Writing",
        "startTime": "2026-11-16T11:00:00Z",
        "records": 0,
        "objects": 0,
        "replacedRecords": 1200,
        "replacedObjects": 3,
        "replacedBytes": 4096,
    }

    def events(before: dict[str, Any], **changed: Any) -> list[tuple[str, str, str]]:
        after = {"conditions": [], "refresh": refresh | changed}
        return [(event.type, event.reason, event.message) for event in events_between(before, after)]

    begun = {"conditions": [], "refresh": refresh}
    (begins,) = events({})
    assert begins[:2] == ("Warning", "FullRefresh")
    assert "job-1 will replace 3 objects with 1,200 records, 4,096 bytes" in begins[2]
    assert events(begun, records=5) == events(begun, phase="Publishing") == []
    (done,) = events(begun, phase="Done", objects=2, records=5)
    assert done == ("Normal", "Refreshed", "run job-1 is current: 2 objects with 5 records")
    (left,) = events(begun, phase="Done", unremovedObjects=1)
    assert (left[0], "refused to delete 1 of the replaced objects" in left[2]) == ("Warning", True)


def on_time(now: str, last: str | None, *runs: Any, created: str = "2026-11-16T00:30:00Z") -> Any:
    seen = scheduled(*runs, now=datetime.fromisoformat(now))
    status = {} if last is None else {"lastScheduleTime": last}

    def made(child: Child) -> Child:
        metadata = child.document["metadata"] | {"creationTimestamp": created}
        return replace(child, document=child.document | {"metadata": metadata, "status": status})

    return replace(seen, children=tuple(made(c) if c.kind == "CronJob" else c for c in seen.children))


def test_a_run_that_did_not_start_at_its_time_is_noticed() -> None:
    """The schedule is hourly."""
    late = on_time("2026-11-16T12:10:00Z", "2026-11-16T11:00:00Z", run_of(SINK))
    status = status_of(late)
    assert named(status, "OnSchedule") == ("False", "RunMissed")
    text = message(status, "OnSchedule")
    assert text == "the run of 2026-11-16T12:00:00Z has not started: run orders-s3sink-1 is still under way"
    assert ("Warning", "RunMissed") in {(event.type, event.reason) for event in decided(late).events}
    for fine in (
        on_time("2026-11-16T12:10:00Z", "2026-11-16T12:00:00Z", run_of(SINK)),
        # It may take a moment.
        on_time("2026-11-16T12:04:00Z", "2026-11-16T11:00:00Z"),
        # Nothing was due since the sink was created.
        on_time("2026-11-16T12:50:00Z", None, created="2026-11-16T12:30:00Z"),
    ):
        assert named(status_of(fine), "OnSchedule") == ("True", "OnTime")
    never = on_time("2026-11-16T12:50:00Z", None)
    assert "see `kubectl describe cronjob orders-s3sink`" in message(status_of(never), "OnSchedule")
    paused = replace(on_time("2026-11-16T12:50:00Z", None), resource=resource(SCHEDULE | {"state": "Paused"}))
    assert not [c for c in status_of(paused)["conditions"] if c["type"] == "OnSchedule"]


def test_a_missed_run_is_looked_for_when_it_would_count_as_missed() -> None:
    seen = on_time("2026-11-16T12:10:00Z", "2026-11-16T12:00:00Z", run_of(SINK, 1, "Complete"))
    settled = carried_out(seen, decided(seen))
    assert decided(settled).requeue_after == pytest.approx(55 * 60 + 1)


@pytest.mark.parametrize(
    ("schedule", "last", "following"),
    [
        ("0 * * * *", "2026-11-18T15:00", "2026-11-18T16:00"),
        ("@daily", "2026-11-18T00:00", "2026-11-19T00:00"),
        ("*/20 9-17/4 * * MON-FRI", "2026-11-18T13:40", "2026-11-18T17:00"),
        ("30 2 1,15 * *", "2026-11-15T02:30", "2026-12-01T02:30"),
        # With both kinds of days one of them is enough: the 13th, and Fridays.
        ("0 0 13 * 5", "2026-11-13T00:00", "2026-11-20T00:00"),
        ("0 0 ? JAN,nov 3", "2026-11-18T00:00", "2026-11-25T00:00"),
        ("0 0 29 2 *", None, "2028-02-29T00:00"),
        ("5/25 15 * * *", "2026-11-18T15:05", "2026-11-18T15:30"),
    ],
)
def test_times_of_a_schedule_are_those_of_cron(schedule: str, last: str | None, following: str) -> None:
    times, now = cron_times(schedule), datetime.fromisoformat("2026-11-18T15:10Z")
    found = times.last(now - timedelta(days=30), now)
    assert found == (datetime.fromisoformat(f"{last}Z") if last else None)
    assert times.next(now) == datetime.fromisoformat(f"{following}Z")
