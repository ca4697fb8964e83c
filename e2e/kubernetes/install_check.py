"""The check for every way to install the operator: a sink from `kubectl apply` to a clean namespace."""

from __future__ import annotations

from e2e.kubernetes.world import SINK, World, executors
from tools.polling import until

MODES = ("Local", "Cluster")


def copy_every_record_once(world: World, mode: str) -> None:
    """The sink copies every record once, reports it, shows no secret, and leaves nothing when it is deleted."""
    before = world.namespace.left_behind()
    world.make_bucket()
    world.produce(20_000)
    world.apply(spark=executors() if mode == "Cluster" else {})
    world.settle()
    world.produce(4_000)
    world.settle()
    world.prove()
    _check_status(world)
    if mode == "Cluster":
        _check_executors(world)
    _check_secrecy(world)
    assert "finalizers" not in (world.namespace.get("s3sink", SINK) or {})["metadata"]
    world.namespace.kubectl("delete", "s3sink", SINK, "--timeout=60s")
    until("nothing to be left", lambda: world.namespace.left_behind() == before, 90)


def shown(world: World, *question: str) -> str:
    """kubectl's answer, also printed: `pytest -s` makes a transcript."""
    answer = world.namespace.kubectl(*question)
    print(f"\n$ kubectl {' '.join(question)}\n{answer}")
    return answer


def _check_status(world: World) -> None:
    status = world.namespace.status(SINK)
    assert (status["phase"], status["flush"]["totalRecords"]) == ("Running", world.produced)
    header, row = shown(world, "get", "s3s").splitlines()
    for question in (["get", "s3s", "--output", "wide"], ["get", "pods"], ["get", "events"], ["describe", "s3s", SINK]):
        shown(world, *question)
    columns = ["NAME", "STATE", "READY", "ACCEPTED", "LAG", "LAST", "FLUSH", "RETRIES", "RESTARTS", "AGE"]
    assert header.split() == columns
    assert row.split()[:5] == [SINK, "Running", "True", "True", "0"]


def _check_executors(world: World) -> None:
    pods = world.namespace.pods(SINK, "executor")
    assert len(pods) == 2
    for pod in pods:
        (owner,) = pod["metadata"]["ownerReferences"]
        assert owner["uid"] == world.driver()["metadata"]["uid"]
        assert pod["spec"]["serviceAccountName"] == f"{SINK}-s3sink-executor"
        assert pod["spec"]["automountServiceAccountToken"] is False
        assert pod["spec"]["containers"][0]["resources"]["limits"]["memory"] in {"2Gi", "2048Mi"}
    assert world.namespace.status(SINK)["executors"]["replicas"] == 2


def _check_secrecy(world: World) -> None:
    secret = world.plant.s3.secret_key
    everything = world.namespace.kubectl("get", "s3sinks,configmaps,pods,events,deployments", "--output", "yaml")
    assert secret not in everything
    assert secret not in world.namespace.kubectl("logs", world.driver()["metadata"]["name"])
