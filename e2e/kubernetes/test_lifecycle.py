"""What people do to a sink and its namespace while records flow. Most tests use one sink."""

from __future__ import annotations

import pytest

from e2e.kubernetes.world import SINK, World
from tools.polling import until

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def flowing(shared: World) -> World:
    shared.flow(4_000)
    return shared


def test_a_changed_spec_waits_for_the_old_driver_to_end(flowing: World) -> None:
    namespace, epoch = flowing.namespace, flowing.namespace.status(SINK)["driver"]["epoch"]
    first = flowing.driver()["metadata"]["name"]
    with flowing.held():
        namespace.patch(SINK, {"flush": {"records": 1_000}})
        until("the driver to stop", lambda: not namespace.pods(SINK), 30)
        assert namespace.running(SINK) == [first]

    def rolled() -> bool:
        running = namespace.running(SINK)
        assert len(running) <= 1, running
        return namespace.condition(SINK, "Ready")[0] == "True" and running != [first]

    until("the new spec to run", rolled, 120)
    flowing.settle()
    flowing.prove()
    status = namespace.status(SINK)
    assert status["driver"]["epoch"] == epoch + 1
    assert status["observedGeneration"] == (namespace.get("s3sink", SINK) or {})["metadata"]["generation"]


def test_a_single_pod_deleted_during_a_flush_loses_nothing(flowing: World) -> None:
    with flowing.held():
        flowing.end(flowing.driver()["metadata"]["name"])
    flowing.settle()
    flowing.prove()


def test_a_namespace_deleted_during_a_flush_leaves_nothing(flowing: World) -> None:
    namespace = flowing.namespace.name
    with flowing.held():
        flowing.plant.cluster.kubectl("delete", "namespace", namespace, "--timeout=90s")
    assert namespace not in flowing.plant.cluster.kubectl("get", "namespaces", "--output", "name")
    said = flowing.plant.release.home.kubectl("logs", "deployment/s3sink-operator", "--tail=80")
    assert "Traceback" not in said


def test_each_scheduled_run_copies_the_records_since_the_last(world: World) -> None:
    world.make_bucket()
    world.produce(2_000)
    world.apply(run="Scheduled", schedule="* * * * *")
    jobs = set()
    for records in (2_000, 0):
        world.arrive(150)
        world.namespace.until_reason(SINK, "Ready", "Completed")
        jobs |= {job["metadata"]["uid"] for job in world.namespace.objects("jobs")}
        world.produce(records)
    world.namespace.patch(SINK, {"state": "Stopped"})
    until("no runs", lambda: not world.namespace.kubectl("get", "cronjobs,jobs,pods", "--output", "name"), 60)
    world.prove()
    assert len(jobs) >= 2
