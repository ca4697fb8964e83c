"""Cluster mode: Spark creates executor pods, which the driver's pod owns.

The driver runs in client mode and binds to the address of its pod, so that executors need neither a Service nor DNS.
The operator passes what a driver has to know about its pod in the environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from s3sink_api import environment as names
from s3sink_api.labels import EXECUTOR, ROLE_LABEL, SINK_LABEL
from s3sink_api.spec import Spark
from s3sink_job.base.errors import FinalError
from s3sink_job.report import logs

IDLE_SECONDS = 60
"""How long an idle executor lives with scaleToZero."""


@dataclass(frozen=True)
class DriverPod:
    """The pod that the driver runs in, and how its executors are made."""

    name: str
    address: str
    namespace: str
    image: str
    pull_policy: str
    account: str
    template: str
    master: str


def driver_pod(environment: Mapping[str, str] | None = None) -> DriverPod:
    """Raises FinalError outside of a pod that the operator created."""
    env = os.environ if environment is None else environment
    try:
        return DriverPod(
            name=env[names.POD_NAME],
            address=env[names.POD_IP],
            namespace=env[names.NAMESPACE],
            image=env[names.IMAGE],
            pull_policy=env.get(names.PULL_POLICY, "IfNotPresent"),
            account=env[names.EXECUTOR_ACCOUNT],
            template=env[names.EXECUTOR_TEMPLATE],
            master=_master(env),
        )
    except KeyError as missing:
        raise FinalError(
            f"spec.spark.mode is Cluster, which only works in a pod of the operator ({missing} is not set): use Local",
            reason="NotInCluster",
        ) from missing


def cluster_settings(spark: Spark, pod: DriverPod, *, heap: int, java_options: str) -> dict[str, str]:
    executor = spark.executor
    settings = {
        "spark.submit.deployMode": "client",
        "spark.driver.host": pod.address,
        "spark.driver.bindAddress": pod.address,
        # Each driver makes a secret of its own and passes it only to its executors.
        "spark.authenticate": "true",
        # Encrypts the traffic between driver and executors, and what they spill to disk.
        "spark.network.crypto.enabled": "true",
        "spark.network.crypto.cipher": "AES/GCM/NoPadding",
        "spark.network.crypto.saslFallback": "false",
        "spark.io.encryption.enabled": "true",
        "spark.kubernetes.namespace": pod.namespace,
        "spark.kubernetes.driver.pod.name": pod.name,
        "spark.kubernetes.container.image": pod.image,
        "spark.kubernetes.container.image.pullPolicy": pod.pull_policy,
        "spark.kubernetes.authenticate.executor.serviceAccountName": pod.account,
        "spark.kubernetes.executor.podTemplateFile": pod.template,
        "spark.kubernetes.executor.podTemplateContainerName": EXECUTOR,
        # Without these the driver would need rights on ConfigMaps and volume claims.
        "spark.kubernetes.executor.disableConfigMap": "true",
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
        "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        "spark.kubernetes.executor.request.cores": executor.cpu_request,
        "spark.executor.cores": str(executor.cores),
        "spark.executor.instances": str(executor.instances),
        # Together the limit of the pod. The overhead is for Python, as in the driver.
        "spark.executor.memory": f"{heap >> 20}m",
        "spark.executor.memoryOverhead": f"{max(0, executor.memory - heap) >> 20}m",
        "spark.executor.extraJavaOptions": java_options,
        # Lost executors are replaced. Only many losses in a short time end the driver; Kubernetes restarts it.
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


def remove_old_executors(session: SparkSession, pod: DriverPod, sink: str) -> None:
    """Executors of a driver that died in this same pod. The pod owns them, so they would stay as long as it does."""
    try:
        jvm = session.sparkContext._jvm
        assert jvm is not None
        client = jvm.io.fabric8.kubernetes.client.KubernetesClientBuilder().build()
        pods = client.pods().inNamespace(pod.namespace).withLabel(SINK_LABEL, sink).withLabel(ROLE_LABEL, EXECUTOR)
        pods.withoutLabel("spark-app-selector", session.sparkContext.applicationId).delete()
        client.close()
    except Exception as error:
        logs.warning("could not remove executors of an earlier driver", error=str(error).splitlines()[0])


def _master(env: Mapping[str, str]) -> str:
    host, port = env.get("KUBERNETES_SERVICE_HOST"), env.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        return "k8s://https://kubernetes.default.svc"
    return f"k8s://https://{f'[{host}]' if ':' in host else host}:{port}"
