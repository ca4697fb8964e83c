from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from s3sink_api.labels import EXECUTOR
from s3sink_operator.decide import operator_error_status
from s3sink_operator.values.objects import Child, ContainerExit, Pod
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
    running,
    status_of,
)


def test_a_driver_that_reports_is_ready() -> None:
    status = status_of(running())
    assert (status["phase"], named(status, "Ready")) == ("Running", ("True", "Running"))
    assert named(status, "Accepted") == ("True", "Valid")
    assert named(status, "CaughtUp") == ("True", "Level")
    assert status["lag"]["records"] == 0
    assert status["driver"] == {"pod": "orders-s3sink-abc", "restarts": 0, "epoch": 2}
    assert status["observedGeneration"] == 3


def test_a_group_in_use_shows_while_the_sink_stays_ready() -> None:
    told = report()
    refused = condition("OffsetsPublished", False, "GroupInUse", "the group orders-s3 has active members: billing")
    told.document["conditions"].append(refused)
    seen = running(report=told)
    status = status_of(seen)
    assert (status["phase"], named(status, "OffsetsPublished")) == ("Running", ("False", "GroupInUse"))
    assert ("Warning", "GroupInUse") in [(e.type, e.reason) for e in decided(seen).events]
    assert "OffsetsPublished" not in [c["type"] for c in status_of(running())["conditions"]]


@pytest.mark.parametrize("age", [46.0, 3600.0])
def test_an_old_report_never_makes_a_sink_ready(age: float) -> None:
    status = status_of(running(report=report(age=age), report_problem="timed out"))
    assert named(status, "Ready") == ("Unknown", "NoReport")
    assert "timed out" in message(status, "Ready")
    assert named(status, "CaughtUp") == ("Unknown", "NotReporting")
    assert "lag" not in status


def test_a_report_that_stopped_changing_is_stale() -> None:
    stuck = replace(report(), changed=NOW - timedelta(minutes=10))
    assert ready(running(report=stuck)) == ("Unknown", "NoReport")


@pytest.mark.parametrize("clock", ["2026-11-16T11:40:00Z", "2026-11-16T12:20:00Z"])
def test_a_wrong_driver_clock_is_tolerated_as_long_as_it_advances(clock: str) -> None:
    assert ready(running(report=report(reportedAt=clock))) == ("True", "Running")
    first = replace(report(reportedAt=clock), changed=None)
    assert ready(running(report=first)) == ("True", "Running")


def test_the_report_of_a_former_pod_is_ignored() -> None:
    former = replace(report(), pod="orders-s3sink-former")
    assert ready(running(report=former)) == ("False", "Starting")
    assert ready(running(report=former, report_problem="timed out")) == ("Unknown", "NoReport")


def test_one_missed_poll_changes_nothing() -> None:
    assert ready(running(report=report(age=20), report_problem="timed out")) == ("True", "Running")


def test_every_mistake_in_the_spec_is_named_with_its_path() -> None:
    status = status_of(observed(resource({"flush": {"interval": 5}, "transform": {"where": "now() > a"}})))
    assert named(status, "Accepted") == ("False", "InvalidSpec")
    assert "spec.flush.interval: must be a duration" in message(status, "Accepted")
    assert "spec.transform.where: 'now()' at position 1 is not allowed" in message(status, "Accepted")
    assert (status["phase"], named(status, "Ready")) == ("Failed", ("False", "SpecRefused"))


def test_a_valid_spec_that_probably_means_something_else_says_so() -> None:
    by_week = {"partitionBy": [{"type": "Time", "source": "Record", "format": "'year'=YYYY/MM"}]}
    status = status_of(observed(resource({"layout": by_week})))
    assert named(status, "Accepted") == ("True", "Valid")
    assert message(status, "Accepted").startswith(
        "the spec is valid, but spec.layout.partitionBy[0].format: YYYY is the year of the week"
    )


def test_a_long_list_of_mistakes_is_cut_between_two_and_counted() -> None:
    wrong = {f"spark.kubernetes.x{number}.{'y' * 50}": "1" for number in range(200)}
    status = status_of(observed(resource({"spark": {"conf": wrong}})))
    text = message(status, "Accepted")
    assert len(text) <= 4096
    assert re.search(r"; and \d+ more$", text)
    one = status_of(observed(resource({"spark": {"conf": {"spark.kubernetes." + "y" * 100_000: "1"}}})))
    assert len(message(one, "Accepted")) <= 4096


def test_a_mistake_does_not_stop_the_driver_of_the_previous_spec() -> None:
    seen = running()
    broken = replace(seen, resource=replace(resource({"flush": {"interval": 5}}), generation=4))
    found = decided(broken)
    assert not found.apply
    assert not found.delete
    status = status_of(broken)
    assert named(status, "Accepted")[0] == "False"
    assert named(status, "Ready") == ("False", "SpecRefused")


def test_a_sink_is_not_ready_while_an_earlier_spec_runs() -> None:
    sink = replace(resource({"flush": {"records": 7}}), generation=4)
    seen = observed(sink, children=children(sink), pods=(pod(resource()),), report=report())
    assert ready(seen) == ("False", "Updating")


@pytest.mark.parametrize("told", [2, 4, None])
@pytest.mark.parametrize("run", ["Continuous", "Once"])
def test_a_report_about_another_generation_is_not_ready(run: str, told: int | None) -> None:
    """A node may give a new pod an older copy of the ConfigMap."""
    said = report()
    document = {**said.document, "observedGeneration": told} if told else {**said.document}
    if told is None:
        del document["observedGeneration"]
    status = status_of(running({"run": run}, report=replace(said, document=document)))
    assert (status["phase"], named(status, "Ready")) == ("Starting", ("False", "Updating"))
    assert f"generation {told or 'unknown'} of the spec, not 3" in message(status, "Ready")
    assert status["lag"]["records"] == 0


def test_problems_of_an_earlier_spec_are_not_hidden_by_the_update() -> None:
    assert ready(running(report=report("Failed", generation=2))) == ("False", "Failed")


TERMINATED = ContainerExit(1, "Error", 'starting\n{"level": "error", "message": "no such topic"}\n')


@pytest.mark.parametrize(
    ("fields", "expected", "said"),
    [
        (
            {"waiting": "ImagePullBackOff", "waiting_message": 'Back-off pulling image "x:1"'},
            ("False", "ImagePullBackOff"),
            'Back-off pulling image "x:1"',
        ),
        ({"waiting": "ErrImagePull", "waiting_message": "not found"}, ("False", "ImagePullBackOff"), "not found"),
        (
            {"waiting": "CreateContainerConfigError", "waiting_message": 'secret "s3" not found'},
            ("False", "SecretMissing"),
            'secret "s3" not found',
        ),
        (
            {"waiting": "CreateContainerConfigError", "waiting_message": 'configmap "x" not found'},
            ("False", "CreateContainerConfigError"),
            'configmap "x" not found',
        ),
        (
            {"waiting": "CrashLoopBackOff", "last_exit": TERMINATED, "restarts": 3},
            ("False", "CrashLoopBackOff"),
            "code 1: ",
        ),
        (
            {"last_exit": ContainerExit(137, "OOMKilled"), "restarts": 1},
            ("False", "OOMKilled"),
            "raise spec.spark.driver.memory",
        ),
        (
            {"waiting": "CrashLoopBackOff", "last_exit": ContainerExit(137, "OOMKilled"), "restarts": 9},
            ("False", "OOMKilled"),
            "raise spec.spark.driver.memory",
        ),
        (
            {"phase": "Failed", "reason": "Evicted", "reason_message": "The node was low on resource: memory."},
            ("False", "Evicted"),
            "low on resource: memory",
        ),
        (
            {
                "phase": "Failed",
                "reason": "Evicted",
                "ended": ContainerExit(137, "Error"),
                "reason_message": "volume spill",
            },
            ("False", "Evicted"),
            "volume spill",
        ),
        ({"phase": "Failed", "reason": "OutOfcpu"}, ("False", "PodFailed"), "OutOfcpu"),
        ({"phase": "Failed", "reason": "NodeShutdown"}, ("False", "NodeLost"), "a replacement follows"),
        (
            {"phase": "Pending", "unschedulable": "0/3 nodes are available: insufficient memory"},
            ("False", "FailedScheduling"),
            "insufficient memory",
        ),
        ({"phase": "Pending", "created": "2026-11-16T11:59:00Z"}, ("False", "Starting"), "is starting"),
        (
            {"phase": "Pending", "waiting": "ContainerCreating", "created": "2026-11-16T11:50:00Z"},
            ("False", "NotStarting"),
            "kubectl describe pod orders-s3sink-abc",
        ),
    ],
)
def test_why_a_pod_does_not_run_is_named(fields: dict[str, Any], expected: tuple[str, str], said: str) -> None:
    seen = running(pods=(pod(ready=False, **fields),), report=None)
    status = status_of(seen)
    assert named(status, "Ready") == expected
    assert said in message(status, "Ready")


@pytest.mark.parametrize("word", ["NodeLost", "DeletionByTaintManager", "DeletionByPodGC"])
def test_a_driver_on_a_lost_node_is_named_node_lost(word: str) -> None:
    lost = pod(reason=word, reason_message="node gone", deleting=NOW + timedelta(minutes=1))
    seen = running(pods=(lost,), report=None, report_problem="no route to host")
    assert ready(seen) == ("False", "NodeLost")
    # As long as it answers, it is Ready.
    assert ready(running(pods=(lost,))) == ("True", "Running")


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ('{"level": "warning", "message": "no such topic", "reason": "TopicMissing"}', "no such topic"),
        (
            '{"message": "crashed", "exception": "Traceback:\\n  File x\\nValueError: boom"}',
            "crashed: ValueError: boom",
        ),
        ('{"message": "the Spark JVM is gone", "error": "EOFError"}', "the Spark JVM is gone: EOFError"),
        ('ceback (most recent call last):\\n  File x\\nValueError: boom"}', "code 1: ValueError: boom"),
        ("Traceback:\n  File x\nValueError: boom\n", "code 1: ValueError: boom"),
        ("[" * 4096, "code 1: [["),
        ("", "exit code 1"),
    ],
)
def test_the_last_log_line_of_a_crash_is_parsed(log: str, said: str) -> None:
    crashed = pod(ready=False, waiting="CrashLoopBackOff", last_exit=ContainerExit(1, "Error", log), restarts=3)
    assert said in message(status_of(running(pods=(crashed,), report=None)), "Ready")


def test_a_crash_shows_its_exit_code_and_its_last_line() -> None:
    seen = running(pods=(pod(ready=False, waiting="CrashLoopBackOff", last_exit=TERMINATED, restarts=3),), report=None)
    status = status_of(seen)
    assert "no such topic" in message(status, "Ready")
    assert status["driver"]["restarts"] == 3
    assert status["driver"]["lastExit"]["code"] == 1
    assert "no such topic" in status["driver"]["lastExit"]["message"]


def test_a_quota_that_forbids_the_pod_is_named() -> None:
    sink = resource()
    failed = {"conditions": [{"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: pods"}]}
    held = tuple(
        replace(c, document={**c.document, "status": failed}) if c.kind == "Deployment" else c for c in children(sink)
    )
    status = status_of(observed(sink, children=held))
    assert named(status, "Ready") == ("False", "FailedCreate")
    assert "exceeded quota" in message(status, "Ready")


def test_a_pod_without_a_node_for_minutes_is_degraded() -> None:
    lost = {"phase": "Pending", "ready": False, "unschedulable": "0/3 nodes are available"}
    for created, phase in (("2026-11-16T11:59:00Z", "Pending"), ("2026-11-16T11:50:00Z", "Degraded")):
        status = status_of(running(pods=(pod(created=created, **lost),), report=None))
        assert (status["phase"], named(status, "Ready")) == (phase, ("False", "FailedScheduling"))


def test_a_job_without_a_pod_for_minutes_says_where_to_look() -> None:
    sink = resource({"run": "Once"})
    early = observed(sink, children=children(sink), now=NOW - timedelta(minutes=59))
    assert ready(early) == ("False", "Creating")
    status = status_of(observed(sink, children=children(sink)))
    assert (status["phase"], named(status, "Ready")) == ("Degraded", ("False", "NotStarting"))
    assert "`kubectl describe job orders-s3sink`" in message(status, "Ready")


def test_a_slow_start_is_reconciled_again_at_its_deadline() -> None:
    fresh = pod(phase="Pending", ready=False, created="2026-11-16T11:59:00Z")
    seen = carried_out(running(pods=(fresh,), report=None), decided(running(pods=(fresh,), report=None)))
    again = decided(seen).requeue_after
    assert again is not None
    later = replace(seen, now=NOW + timedelta(seconds=again))
    assert named(decided(later).status or {}, "Ready") == ("False", "NotStarting")
    assert decided(carried_out(later, decided(later))).requeue_after is None


def test_what_the_api_server_refuses_is_named() -> None:
    status = status_of(observed(refused='deployments "orders-s3sink" is forbidden'))
    assert named(status, "Ready") == ("False", "Refused")
    assert "is forbidden" in message(status, "Ready")


def test_a_missing_bucket_is_named() -> None:
    conditions = [
        condition("Ready", False, "Failed", "bucket lake does not exist"),
        condition("LastFlushSucceeded", False, "BucketMissing", "bucket lake does not exist"),
    ]
    found = decided(running(report=report("Failed", conditions=conditions)))
    assert found.status is not None
    assert found.status["phase"] == "Failed"
    assert named(found.status, "LastFlushSucceeded") == ("False", "BucketMissing")
    assert ("Warning", "BucketMissing") in {(e.type, e.reason) for e in found.events}


def executor(**fields: Any) -> Pod:
    return Pod(**({"name": "exec-1", "role": EXECUTOR, "phase": "Running", "ready": True} | fields))


def test_executors_that_cannot_start_show_only_if_none_runs() -> None:
    seen = running({"spark": {"mode": "Cluster"}})
    stuck = executor(name="exec-2", phase="Pending", ready=False, unschedulable="insufficient memory")
    alone = replace(seen, pods=(*seen.pods, stuck))
    assert ready(alone) == ("False", "ExecutorFailedScheduling")
    assert ready(replace(seen, pods=(*seen.pods, stuck, executor()))) == ("True", "Running")
    assert ready(seen) == ("True", "Running")


def test_executors_that_run_out_of_memory_are_named_with_what_to_raise() -> None:
    seen = running({"spark": {"mode": "Cluster"}})
    killed = executor(phase="Failed", ready=False, ended=ContainerExit(137, "OOMKilled"))
    status = status_of(replace(seen, pods=(*seen.pods, killed)))
    assert (status["phase"], named(status, "Ready")) == ("Degraded", ("False", "ExecutorOOMKilled"))
    assert "raise spec.spark.executor.memory" in message(status, "Ready")


@pytest.mark.parametrize(
    ("type", "reason", "text"),
    [
        ("LastFlushSucceeded", "SecretMissing", "Secret s3 is not there"),
        ("LastFlushSucceeded", "AccessDenied", "PutObject: 403"),
        ("CaughtUp", "DataLoss", "orders-0: offsets 5 to 9 are gone"),
        ("CaughtUp", "Throttled", "more than a few seconds of work"),
        ("CaughtUp", "OpenTransaction", "producer 7 holds orders-0"),
    ],
)
def test_causes_that_the_driver_reports_are_passed_on(type: str, reason: str, text: str) -> None:
    conditions = [condition("Ready", False, "Degraded", text), condition(type, False, reason, text)]
    status = status_of(running(report=report("Degraded", conditions=conditions)))
    assert (named(status, type), message(status, type)) == (("False", reason), text)
    assert (status["phase"], message(status, "Ready")) == ("Degraded", text)


def test_executors_are_counted_for_kubectl_scale() -> None:
    seen = running({"spark": {"mode": "Cluster"}})
    status = status_of(replace(seen, pods=(*seen.pods, executor(), executor(name="exec-2"))))
    assert status["executors"]["replicas"] == 2
    assert "s3sink.dev/role=executor" in status["executors"]["selector"]
    assert "executors" not in status_of(running())


def test_figures_of_the_last_flush_survive_a_restart() -> None:
    before = carried_out(running(), decided(running()))
    restarted = replace(before, report=report(flush={}, lag={"records": 0}), pods=(pod(),))
    status = decided(replace(restarted, written=None)).status or before.resource.status
    assert status["flush"]["lastTime"] == "2026-11-16T11:59:00Z"


def finished(kind: str, end: ContainerExit) -> Any:
    sink = resource({"run": "Once"})
    job = next(c for c in children(sink) if c.kind == "Job")
    done = Child(
        job.kind,
        job.name,
        {**job.document, "status": {"conditions": [{"type": kind, "status": "True"}]}},
        job.owner,
    )
    rest = tuple(c for c in children(sink) if c.kind != "Job")
    phase = "Succeeded" if kind == "Complete" else "Failed"
    return observed(sink, children=(*rest, done), pods=(pod(sink, phase=phase, ready=False, ended=end),))


def test_a_finished_job_keeps_its_last_report() -> None:
    last = json.dumps({k: v for k, v in report("Completed").document.items() if k != "offsets"})
    seen = finished("Complete", ContainerExit(0, "Completed", last))
    status = status_of(seen)
    assert (status["phase"], named(status, "Ready")) == ("Completed", ("True", "Completed"))
    assert status["flush"]["totalRecords"] == 5
    assert status["lag"]["records"] == 0
    later = replace(carried_out(seen, decided(seen)), pods=(), now=NOW + timedelta(days=1))
    found = decided(later)
    assert not found.apply
    assert found.status is not None
    assert (found.status["phase"], found.status["lag"]["records"]) == ("Completed", 0)
    assert named(found.status, "CaughtUp") == ("True", "Level")


def test_a_failed_job_says_why() -> None:
    conditions = [
        condition("Ready", False, "Failed", "bucket lake does not exist"),
        condition("LastFlushSucceeded", False, "BucketMissing", "bucket lake does not exist"),
    ]
    last = json.dumps(dict(report("Failed", conditions=conditions).document))
    status = status_of(finished("Failed", ContainerExit(2, "Error", last)))
    assert (status["phase"], named(status, "Ready")) == ("Failed", ("False", "BucketMissing"))
    assert status["driver"]["lastExit"]["code"] == 2


def test_a_run_whose_pod_was_removed_has_still_ended() -> None:
    for kind, phase in (("Complete", "Completed"), ("Failed", "Failed")):
        assert status_of(replace(finished(kind, ContainerExit(0)), pods=()))["phase"] == phase


def test_conditions_are_written_at_once_and_figures_when_due() -> None:
    seen = carried_out(running(), decided(running()))
    assert decided(seen).status is None
    more = report(lag={"records": 9, "recordsToHighWatermark": 9, "seconds": 1.0})
    moved = replace(seen, report=more)
    assert decided(replace(moved, now=NOW + timedelta(seconds=30))).status is None
    received = NOW + timedelta(seconds=61)
    later = replace(report(lag={"records": 9}), received=received, changed=received)
    figures = decided(replace(seen, now=NOW + timedelta(seconds=61), report=later))
    assert figures.status is not None
    assert figures.status["lag"]["records"] == 9
    assert figures.events == ()
    failing = [condition("Ready", False, "Degraded", "no luck")]
    assert decided(replace(seen, report=report("Degraded", conditions=failing))).status is not None


def test_nothing_is_written_while_nothing_changes() -> None:
    seen = carried_out(running(), decided(running()))
    for minutes in (1, 10, 1000):
        at = NOW + timedelta(minutes=minutes)
        found = decided(replace(seen, now=at, report=replace(report(), received=at, changed=at)))
        assert (found.status, found.apply, found.delete, found.events) == (None, (), (), ())


def test_transition_times_change_only_with_the_status() -> None:
    seen = carried_out(running(), decided(running()))
    worse = replace(seen, now=NOW + timedelta(minutes=5), report=None, report_problem="timed out")
    found = decided(worse).status
    assert found is not None
    times = {c["type"]: c["lastTransitionTime"] for c in found["conditions"]}
    assert times["Ready"] == "2026-11-16T12:05:00Z"
    assert times["Accepted"] == "2026-11-16T12:00:00Z"


def test_each_transition_is_one_event() -> None:
    first = decided(running())
    assert [(e.type, e.reason) for e in first.events] == [("Normal", "Running")]
    seen = carried_out(running(), first)
    crashed = pod(ready=False, waiting="CrashLoopBackOff", last_exit=TERMINATED, restarts=1)
    worse = replace(seen, pods=(crashed,), report=None)
    events = decided(worse).events
    assert [(e.type, e.reason) for e in events] == [("Warning", "CrashLoopBackOff"), ("Warning", "DriverRestarted")]
    assert decided(carried_out(worse, decided(worse)), SETTINGS).events == ()


def test_an_operator_error_shows_in_the_status_and_keeps_the_rest() -> None:
    before = status_of(running())
    found = resource(status=before)
    said = operator_error_status(found, ZeroDivisionError("x" * 9000), NOW)
    assert (said["phase"], named(said, "Ready")) == ("Degraded", ("Unknown", "OperatorError"))
    assert "ZeroDivisionError" in message(said, "Ready")
    assert len(message(said, "Ready")) <= 500
    assert said["flush"] == before["flush"]
    # The status does not change when it happens again.
    assert operator_error_status(resource(status=said), ZeroDivisionError("x" * 9000), NOW + timedelta(hours=1)) == said
