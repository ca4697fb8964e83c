"""A problem is reported within a minute, and the sink recovers when it is solved, without a manual restart."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from e2e.kubernetes.world import SINK, World
from tools.cluster import ClusterFailed
from tools.polling import until

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]
MINUTE = 60.0


def reported_within_a_minute(world: World, type: str, reason: str, *documents: Mapping[str, Any]) -> str:
    """Within a minute of `kubectl apply`, including the starts of pod and Spark; the image is on the node."""
    began = time.monotonic()
    world.namespace.apply(*documents)
    message = world.namespace.until_reason(SINK, type, reason, MINUTE)
    print(f"{reason} was reported {time.monotonic() - began:.1f} s after `kubectl apply`")
    return message


def test_a_missing_bucket_is_reported_and_the_sink_recovers(world: World) -> None:
    world.produce(2_000)
    message = reported_within_a_minute(world, "LastFlushSucceeded", "BucketMissing", world.secret(), world.sink())
    assert world.bucket in message
    assert world.namespace.status(SINK)["phase"] == "Failed"
    world.make_bucket()
    world.settle()
    world.prove()


def test_a_wrong_secret_is_reported_and_the_sink_recovers(world: World) -> None:
    world.make_bucket()
    world.produce(2_000)
    wrong = world.secret(AWS_SECRET_ACCESS_KEY="wrong-secret-key")
    reported_within_a_minute(world, "LastFlushSucceeded", "AccessDenied", wrong, world.sink())
    assert "wrong-secret-key" not in json.dumps(world.namespace.status(SINK))
    world.namespace.apply(world.secret())
    # The kubelet takes up to a minute to renew mounted Secrets.
    world.settle(240)
    world.prove()


def test_a_missing_secret_is_reported_and_the_sink_recovers(world: World) -> None:
    world.make_bucket()
    world.produce(2_000)
    message = reported_within_a_minute(world, "LastFlushSucceeded", "SecretMissing", world.sink())
    assert "'s3'" in message
    world.namespace.apply(world.secret())
    world.settle(240)
    world.prove()


def test_a_missing_image_is_reported_and_the_sink_recovers(world: World) -> None:
    world.make_bucket()
    world.produce(2_000)
    elsewhere = world.sink(spark={"image": "localhost/no-such-image:1"})
    message = reported_within_a_minute(world, "Ready", "ImagePullBackOff", world.secret(), elsewhere)
    assert "no-such-image" in message
    world.namespace.patch(SINK, {"spark": {"image": world.plant.image}})
    world.settle()
    world.prove()


def test_a_policy_and_a_quota_are_reported_and_the_sink_recovers(world: World) -> None:
    world.make_bucket()
    world.produce(2_000)
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    world.namespace.apply(quota)
    with denied(world, "deployments", "frozen until Monday"):
        message = reported_within_a_minute(world, "Ready", "Refused", world.secret(), world.sink())
        assert "frozen until Monday" in message
        assert not world.namespace.objects("deployments")
    message = world.namespace.until_reason(SINK, "Ready", "FailedCreate", MINUTE)
    assert "exceeded quota: none" in message
    assert world.namespace.status(SINK)["phase"] == "Pending"
    world.namespace.kubectl("delete", "resourcequota", "none")
    world.settle()
    world.prove()


@contextmanager
def denied(world: World, resources: str, words: str) -> Iterator[None]:
    """An admission policy of the API server: nothing of this kind may be created in the namespace."""
    name = world.namespace.name
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resources]}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "false", "message": words}],
    }
    only_here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}
    binding = {"policyName": name, "validationActions": ["Deny"], "matchResources": only_here}
    kinds: dict[str, dict[str, Any]] = {"ValidatingAdmissionPolicy": spec, "ValidatingAdmissionPolicyBinding": binding}
    world.namespace.apply(*(_registration(kind, name, spec) for kind, spec in kinds.items()))
    try:
        until("the policy to be in force", lambda: _refuses(world), 60)
        yield
    finally:
        for kind in kinds:
            world.namespace.kubectl("delete", kind, name)


def _registration(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": dict(spec),
    }


def _refuses(world: World) -> bool:
    try:
        world.namespace.kubectl("create", "deployment", "probe", "--image=none", "--dry-run=server")
    except ClusterFailed as error:
        return "denied" in str(error)
    return False
