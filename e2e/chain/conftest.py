"""The node, the image, the operator from its manifest, and Kafka and an S3 server that pods can reach.

A cluster that is up already (`python -m e2e.cluster up`) is used and left as it is.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.chain.sinks import DEFINITION, OPERATOR, SYSTEM, Namespace, install_definition, until
from e2e.chain.world import Plant, World
from e2e.cluster import BareCluster, Cluster
from e2e.image.build import build_image
from e2e.parts.kafka import KafkaBroker
from e2e.parts.proxy import FaultProxy
from e2e.parts.s3 import Versitygw

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def node() -> Iterator[BareCluster]:
    standing = BareCluster()
    if standing.is_up:
        yield standing
        return
    with BareCluster() as own:
        yield own


@pytest.fixture(scope="session")
def plant(node: BareCluster) -> Iterator[Plant]:
    reference = node.load_image(build_image().archive)
    install(node, reference)
    with (
        KafkaBroker(host=node.node_ip) as kafka,
        Versitygw(host=node.node_ip) as s3,
        FaultProxy(node.node_ip, s3.port, host=node.node_ip) as proxy,
    ):
        uid = node.kubectl("get", "namespace", "kube-system", "--output", "jsonpath={.metadata.uid}")
        yield Plant(node, kafka, s3, proxy, reference, uid)
    node.kubectl("delete", "-f", str(OPERATOR), "--ignore-not-found", "--timeout=120s")
    node.kubectl("delete", "-f", str(DEFINITION), "--ignore-not-found", "--timeout=120s")


def install(node: Cluster, reference: str) -> None:
    install_definition(node)
    # Shorter waits, so that tests need not wait for what people would hardly notice.
    manifest = OPERATOR.read_text().replace("s3sink:0.1.0", reference)
    flags = "--poll-interval=3, --figures-interval=5, --grace=20"
    manifest = manifest.replace("args: [s3sink-operator]", f"args: [s3sink-operator, {flags}]")
    node.kubectl("apply", "-f", "-", stdin=manifest)
    node.kubectl("--namespace", SYSTEM, "rollout", "status", "deployment/s3sink-operator", "--timeout=120s")


@pytest.fixture
def world(plant: Plant, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    number = f"{os.getpid()}-{next(_numbers)}"
    namespace = Namespace(plant.cluster, f"chain-{number}")
    plant.cluster.kubectl("create", "namespace", namespace.name)
    plant.cluster.kubectl("label", "namespace", namespace.name, "pod-security.kubernetes.io/enforce=restricted")
    until("its account", lambda: namespace.get("serviceaccount", "default"))
    plant.proxy.clear()
    made = World(plant, namespace, f"lake-{number}", f"orders-{number}", tmp_path)
    yield made
    plant.proxy.clear()
    if request.node.stash.get(FAILED, False):
        print(made.story())
    plant.cluster.kubectl("delete", "namespace", namespace.name, "--wait=false")


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    outcome = yield
    if outcome.get_result().failed:  # type: ignore[attr-defined]
        item.stash[FAILED] = True
