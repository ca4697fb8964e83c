"""Spark's settings in Cluster mode, and the status that a finished driver leaves behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from s3sink_api.spec import ExecutorPod, Spark
from s3sink_job.base.errors import FinalError
from s3sink_job.cli.status_file import status_text
from s3sink_job.spark.cluster_mode import DriverPod, cluster_settings
from s3sink_job.spark.cluster_mode import driver_pod as pod_of
from s3sink_operator.decide.children.child_names import child_names
from s3sink_operator.decide.children.pods import driver_pod, executor_pod
from s3sink_operator.decide.validation import validate
from tests.operator.samples import SETTINGS, report, resource

POD = DriverPod(
    "driver-1", "10.0.0.9", "shop", "image:1", "IfNotPresent", "x-executor", "/etc/t.yaml", "k8s://https://a"
)


def environment() -> dict[str, str]:
    """What the operator gives to a driver, as the kubelet would fill it in."""
    sink, _ = validate(resource({"spark": {"mode": "Cluster"}}))
    assert sink is not None
    pod = driver_pod(sink, SETTINGS, child_names(sink))
    env = pod["spec"]["containers"][0]["env"]
    return {e["name"]: e.get("value", "filled-in") for e in env}


def test_the_operator_sets_every_variable_that_cluster_mode_needs() -> None:
    given = environment() | {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    place = pod_of(given)
    assert (place.namespace, place.account, place.image) == ("shop", "orders-s3sink-executor", SETTINGS.image)
    assert place.master == "k8s://https://10.96.0.1:443"
    assert place.template == "/etc/s3sink/executor.yaml"


def test_an_ipv6_address_is_written_in_brackets() -> None:
    assert pod_of(environment() | {"KUBERNETES_SERVICE_HOST": "fd00::1"}).master == "k8s://https://[fd00::1]:443"


def test_cluster_mode_outside_of_a_pod_is_refused_with_advice() -> None:
    with pytest.raises(FinalError, match="use Local"):
        pod_of({})


@pytest.mark.parametrize(("memory", "heap", "overhead"), [(2 << 30, 512, 1536), (8 << 30, 2048, 6144)])
def test_heap_and_overhead_add_up_to_the_memory_limit_of_the_pod(memory: int, heap: int, overhead: int) -> None:
    spark = Spark(executor=ExecutorPod(memory=memory))
    settings = cluster_settings(spark, POD, heap=heap << 20, java_options="")
    assert settings["spark.executor.memory"] == f"{heap}m"
    assert settings["spark.executor.memoryOverhead"] == f"{overhead}m"


def test_executors_scale_to_zero_or_stay() -> None:
    spark = Spark(executor=ExecutorPod(instances=5))
    settings = cluster_settings(spark, POD, heap=1 << 29, java_options="")
    assert settings["spark.dynamicAllocation.maxExecutors"] == "5"
    assert settings["spark.dynamicAllocation.minExecutors"] == "0"
    assert "spark.executor.instances" not in settings
    spark = Spark(executor=ExecutorPod(instances=5, scale_to_zero=False))
    settings = cluster_settings(spark, POD, heap=1 << 29, java_options="")
    assert settings["spark.executor.instances"] == "5"
    assert "spark.dynamicAllocation.enabled" not in settings


def test_spark_authenticates_and_needs_rights_only_on_pods() -> None:
    settings = cluster_settings(Spark(), POD, heap=1 << 29, java_options="")
    assert settings["spark.authenticate"] == "true"
    assert settings["spark.kubernetes.executor.disableConfigMap"] == "true"
    assert not [key for key in settings if "secret" in key.lower()]


def test_traffic_between_driver_and_executors_is_encrypted() -> None:
    settings = cluster_settings(Spark(), POD, heap=1 << 29, java_options="")
    assert settings["spark.network.crypto.enabled"] == "true"
    assert settings["spark.network.crypto.cipher"] == "AES/GCM/NoPadding"
    assert settings["spark.network.crypto.saslFallback"] == "false"
    assert settings["spark.io.encryption.enabled"] == "true"


def test_executors_mount_secrets_at_the_same_paths_as_the_driver() -> None:
    spec = {"spark": {"mode": "Cluster"}, "source": {"propertiesFrom": [{"secretRef": {"name": "kafka-auth"}}]}}
    sink, _ = validate(resource(spec))
    assert sink is not None
    folder = environment()["S3SINK_SECRETS"]
    for pod in (driver_pod(sink, SETTINGS, child_names(sink)), executor_pod(sink)):
        (container,) = pod["spec"]["containers"]
        assert f"{folder}/kafka-auth" in [mount["mountPath"] for mount in container["volumeMounts"]]


def last_status(partitions: int, error: str = "") -> dict[str, Any]:
    row = {"topic": "t" * 200, "partition": 1, "committed": 10**12, "end": 10**12, "lag": 0}
    gap = {"topic": "t" * 200, "partition": 1, "from": 1, "to": 2, "reason": "Retention"}
    gaps = {"count": 20, "records": 20, "recent": [gap] * 20}
    return {**report("Completed").document, "offsets": [row] * partitions, "gaps": gaps} | {
        "retry": {"attempts": 1, "lastError": error}
    }


@pytest.mark.parametrize("partitions", [0, 1, 7, 50])
@pytest.mark.parametrize("error", ["", "x" * 5000])
def test_the_last_status_fits_into_a_termination_message(partitions: int, error: str, tmp_path: Path) -> None:
    text = status_text(last_status(partitions, error), 4096)
    assert len(text.encode()) <= 4096
    document = json.loads(text)
    assert document["phase"] == "Completed"
    assert document["flush"]["totalRecords"] == 5


def test_a_status_file_without_a_limit_holds_the_whole_status() -> None:
    assert json.loads(status_text(last_status(50))) == last_status(50)
