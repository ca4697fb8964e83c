"""Cluster mode: executors as pods beside the driver's own, made by Spark and owned by the driver's pod.

The driver runs in client mode and binds to its pod's address, so that executors need neither a Service nor DNS.
What only the pod itself can know comes from the operator, by environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from s3sink_job.errors import FinalError
from s3sink_job.report import logs
from s3sink_job.spec import Spark

SINK_LABEL, ROLE_LABEL, EXECUTOR = "s3sink.dev/sink", "s3sink.dev/role", "executor"
TEMPLATE_CONTAINER = "executor"
IDLE_SECONDS = 60
"""How long an executor waits for the next flush before it goes, with scaleToZero."""


@dataclass(frozen=True)
class Place:
    """Where the driver runs, and what its executors are made of."""

    pod: str
    address: str
    namespace: str
    image: str
    pull_policy: str
    account: str
    template: str
    master: str


def place_of(environment: Mapping[str, str] | None = None) -> Place:
    """FinalError outside of a pod that the operator made."""
    env = os.environ if environment is None else environment
    try:
        return Place(
            pod=env["S3SINK_POD_NAME"],
            address=env["S3SINK_POD_IP"],
            namespace=env["S3SINK_NAMESPACE"],
            image=env["S3SINK_IMAGE"],
            pull_policy=env.get("S3SINK_PULL_POLICY", "IfNotPresent"),
            account=env["S3SINK_EXECUTOR_ACCOUNT"],
            template=env["S3SINK_EXECUTOR_TEMPLATE"],
            master=_master(env),
        )
    except KeyError as missing:
        raise FinalError(
            f"spec.spark.mode is Cluster, which runs only in a pod of the operator's ({missing} is not set); use Local",
            reason="NotInCluster",
        ) from missing


def cluster_settings(spark: Spark, place: Place, *, heap: int, java_options: str) -> dict[str, str]:
    executor = spark.executor
    settings = {
        "spark.submit.deployMode": "client",
        "spark.driver.host": place.address,
        "spark.driver.bindAddress": place.address,
        # The secret is Spark's own: made anew by each driver, and handed to its executors alone.
        "spark.authenticate": "true",
        # What driver and executors send each other, and what they keep on disk, is for nobody else's eyes.
        "spark.network.crypto.enabled": "true",
        "spark.network.crypto.cipher": "AES/GCM/NoPadding",
        "spark.network.crypto.saslFallback": "false",
        "spark.io.encryption.enabled": "true",
        "spark.kubernetes.namespace": place.namespace,
        "spark.kubernetes.driver.pod.name": place.pod,
        "spark.kubernetes.container.image": place.image,
        "spark.kubernetes.container.image.pullPolicy": place.pull_policy,
        "spark.kubernetes.authenticate.executor.serviceAccountName": place.account,
        "spark.kubernetes.executor.podTemplateFile": place.template,
        "spark.kubernetes.executor.podTemplateContainerName": TEMPLATE_CONTAINER,
        # Without these the driver would need rights on ConfigMaps and volume claims.
        "spark.kubernetes.executor.disableConfigMap": "true",
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
        "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        "spark.kubernetes.executor.request.cores": executor.cpu_request,
        "spark.executor.cores": str(executor.cores),
        "spark.executor.instances": str(executor.instances),
        # Together the pod's limit; the rest is for Python, as in the driver.
        "spark.executor.memory": f"{heap >> 20}m",
        "spark.executor.memoryOverhead": f"{max(0, executor.memory - heap) >> 20}m",
        "spark.executor.extraJavaOptions": java_options,
        # Lost executors are replaced; only many in a short time end the driver, which Kubernetes then starts again.
        "spark.executor.maxNumFailures": str(max(20, 4 * executor.instances)),
        "spark.executor.failuresValidityInterval": "10m",
    }
    if executor.scale_to_zero:
        settings |= {
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.shuffleTracking.enabled": "true",
            "spark.dynamicAllocation.minExecutors": "0",
            "spark.dynamicAllocation.initialExecutors": "0",
            "spark.dynamicAllocation.maxExecutors": str(executor.instances),
            "spark.dynamicAllocation.executorIdleTimeout": f"{IDLE_SECONDS}s",
        }
        del settings["spark.executor.instances"]
    return settings


def remove_left_overs(session: SparkSession, place: Place, sink: str) -> None:
    """Executors of a driver that died in this very pod: owned by the pod, they would stay as long as it does."""
    try:
        jvm = session.sparkContext._jvm
        assert jvm is not None
        client = jvm.io.fabric8.kubernetes.client.KubernetesClientBuilder().build()
        pods = client.pods().inNamespace(place.namespace).withLabel(SINK_LABEL, sink).withLabel(ROLE_LABEL, EXECUTOR)
        pods.withoutLabel("spark-app-selector", session.sparkContext.applicationId).delete()
        client.close()
    except Exception as error:
        logs.warning("executors of an earlier driver may be left", error=str(error).splitlines()[0])


def _master(env: Mapping[str, str]) -> str:
    host, port = env.get("KUBERNETES_SERVICE_HOST"), env.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        return "k8s://https://kubernetes.default.svc"
    return f"k8s://https://{f'[{host}]' if ':' in host else host}:{port}"
