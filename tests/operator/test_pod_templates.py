"""What a `podTemplate` may set and what not. No template breaks the operator."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3sink_operator.decide.children.workloads import pod_template
from tests.operator.samples import SETTINGS, carried_out, decided, message, named, observed, resource
from tests.operator.test_pods_are_restricted import with_everything

UNSAFE = replace(SETTINGS, allow_unsafe_templates=True)
ROOT = "spec.spark.driver.podTemplate"


def sink_with(template: Any, role: str = "driver") -> Any:
    return resource({"spark": {"mode": "Cluster", role: {"podTemplate": template}}})


def refusal(template: Any, operator: Any = SETTINGS, role: str = "driver") -> str:
    found = decided(observed(sink_with(template, role)), operator)
    assert found.status is not None
    if named(found.status, "Accepted") == ("True", "Valid"):
        return ""
    assert (found.apply, named(found.status, "Accepted")) == ((), ("False", "InvalidSpec"))
    return message(found.status, "Accepted")


def driver_of(template: Any, operator: Any = SETTINGS) -> Any:
    found = decided(observed(sink_with(template)), operator)
    return pod_template(next(d for d in found.apply if d["kind"] == "Deployment"))


def container(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "driver", **fields}]}}


def volume(**fields: Any) -> dict[str, Any]:
    return {"spec": {"volumes": [{"name": "v", **fields}]}}


def test_a_template_sets_placement_labels_and_volumes() -> None:
    pod = driver_of(with_everything("driver"))
    assert pod["metadata"]["labels"]["team"] == "data"
    assert pod["metadata"]["labels"]["s3sink.dev/sink"] == "orders"
    assert pod["metadata"]["annotations"]["sidecar.istio.io/inject"] == "false"
    spec = pod["spec"]
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    assert spec["topologySpreadConstraints"][0]["topologyKey"] == "zone"
    (driver,) = spec["containers"]
    env = {e["name"]: e for e in driver["env"]}
    assert env["HTTPS_PROXY"]["value"] == "http://proxy:3128"
    assert env["S3SINK_CLUSTER"]["value"] == "cluster-uid"
    assert {"/etc/krb5", "/tmp", "/etc/s3sink"} <= {m["mountPath"] for m in driver["volumeMounts"]}
    assert {"krb", "token", "tmp", "spill", "config"} <= {v["name"] for v in spec["volumes"]}


def test_driver_and_executor_have_separate_templates() -> None:
    assert refusal(with_everything("executor"), role="executor") == ""
    path = "spec.spark.executor.podTemplate.spec.containers[0].name: must be executor"
    assert path in refusal(with_everything("driver"), role="executor")


@pytest.mark.parametrize(
    ("template", "path"),
    [
        ({"spec": {"hostNetwork": True}}, "spec.hostNetwork"),
        ({"spec": {"hostPID": True}}, "spec.hostPID"),
        ({"spec": {"securityContext": {}}}, "spec.securityContext"),
        ({"spec": {"shareProcessNamespace": True}}, "spec.shareProcessNamespace"),
        ({"spec": {"initContainers": [{"name": "x", "image": "y"}]}}, "spec.initContainers"),
        ({"spec": {"automountServiceAccountToken": True}}, "spec.automountServiceAccountToken"),
        ({"spec": {"nodeName": "control-plane"}}, "spec.nodeName"),
        ({"spec": {"containers": [{"name": "sidecar", "image": "x"}]}}, "spec.containers[0].name"),
        (container(securityContext={"privileged": True}), "spec.containers[0].securityContext"),
        (container(lifecycle={"postStart": {"exec": {"command": ["sh"]}}}), "spec.containers[0].lifecycle"),
        (container(ports=[{"containerPort": 1, "hostPort": 1}]), "spec.containers[0].ports"),
        (container(envFrom=[{"secretRef": {"name": "x"}}]), "spec.containers[0].envFrom"),
        (
            container(env=[{"name": "X", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]),
            "spec.containers[0].env[0].valueFrom.secretKeyRef",
        ),
        (container(env=[{"name": "AWS_SECRET_ACCESS_KEY", "value": "x"}]), "spec.containers[0].env[0].value"),
        (container(env=[{"name": "HTTP_PROXY", "value": "http://u:p@proxy"}]), "spec.containers[0].env[0].value"),
        (container(env=[{"name": "SPARK_LOCAL_DIRS", "value": "/"}]), "spec.containers[0].env[0].name"),
        (container(resources={"limits": {"memory": "64Gi"}}), "spec.containers[0].resources.limits.memory"),
        (container(resources={"limits": {"nvidia.com/gpu": 1}}), "spec.containers[0].resources.limits[nvidia.com/gpu]"),
        (container(resources={"limits": {"cpu": "lots"}}), "spec.containers[0].resources.limits.cpu"),
        (container(resources={"claims": [{"name": "x"}]}), "spec.containers[0].resources.claims"),
        (container(volumeMounts=[{"name": "tmp", "mountPath": "/x"}]), "spec.containers[0].volumeMounts[0].name"),
        (volume(hostPath={"path": "/"}), "spec.volumes[0].hostPath"),
        (volume(persistentVolumeClaim={"claimName": "theirs"}), "spec.volumes[0].persistentVolumeClaim"),
        (volume(csi={"driver": "x"}), "spec.volumes[0].csi"),
        (volume(emptyDir={}), "spec.volumes[0].emptyDir.sizeLimit"),
        (
            volume(projected={"sources": [{"serviceAccountToken": {"path": "t"}}]}),
            "spec.volumes[0].projected.sources[0].serviceAccountToken.audience",
        ),
        ({"spec": {"volumes": [{"name": "secret-0", "emptyDir": {"sizeLimit": 1}}]}}, "spec.volumes[0].name"),
        (
            {"metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/driver": "unconfined"}}},
            "metadata.annotations[container.apparmor.security.beta.kubernetes.io/driver]",
        ),
    ],
)
def test_unsafe_fields_are_refused_by_path_unless_they_are_allowed(template: dict[str, Any], path: str) -> None:
    assert f"{ROOT}.{path}: " in refusal(template)
    assert refusal(template, UNSAFE) == ""


@pytest.mark.parametrize("folder", ["/", "/tmp", "/tmp/x", "/var", "//var/spill", "/x/../etc/s3sink", "/dev", "x", ""])
def test_no_mount_may_hide_a_folder_of_the_operator(folder: str) -> None:
    template = {
        "spec": {
            "volumes": [{"name": "v", "configMap": {"name": "c"}}],
            "containers": [{"name": "driver", "volumeMounts": [{"name": "v", "mountPath": folder}]}],
        }
    }
    assert f"{ROOT}.spec.containers[0].volumeMounts[0].mountPath: " in refusal(template)


@pytest.mark.parametrize("operator", [SETTINGS, UNSAFE], ids=["safe", "unsafe"])
@pytest.mark.parametrize(
    ("template", "path"),
    [
        ({"metadata": {"labels": {"s3sink.dev/sink": "x"}}}, "metadata.labels[s3sink.dev/sink]"),
        ({"metadata": {"labels": {"team": "a b"}}}, "metadata.labels[team]"),
        ({"metadata": {"labels": {"a b": "x"}}}, "metadata.labels[a b]"),
        ({"metadata": {"name": "x"}}, "metadata.name"),
        ({"metadata": {"finalizers": ["x"]}}, "metadata.finalizers"),
        ({"spec": {"restartPolicy": "OnFailure"}}, "spec.restartPolicy"),
        ({"spec": {"serviceAccountName": "admin"}}, "spec.serviceAccountName"),
        ({"spec": {"terminationGracePeriodSeconds": 1}}, "spec.terminationGracePeriodSeconds"),
        (container(image="x"), "spec.containers[0].image"),
        (container(args=["sh"]), "spec.containers[0].args"),
        (container(env=[{"name": "S3SINK_CLUSTER", "value": "x"}]), "spec.containers[0].env[0].name"),
        (container(env=[{"name": "A"}, {"name": "A"}]), "spec.containers[0].env[1].name"),
        ({"spec": {"containers": [{}]}}, "spec.containers[0].name"),
        # Wrong types and unknown fields.
        ({"spec": {"tolerations": "x"}}, "spec.tolerations"),
        ({"spec": {"tolerations": ["x"]}}, "spec.tolerations[0]"),
        ({"spec": {"tolerations": [{"tolerationSeconds": "5"}]}}, "spec.tolerations[0].tolerationSeconds"),
        ({"spec": {"tolerations": [{"tolerationSeconds": True}]}}, "spec.tolerations[0].tolerationSeconds"),
        ({"spec": {"nodeSelector": {"a": 1}}}, "spec.nodeSelector[a]"),
        ({"spec": {"nodeSelector": None}}, "spec.nodeSelector"),
        ({"spec": {"imagePullSecrets": ["registry"]}}, "spec.imagePullSecrets[0]"),
        ({"spec": {"affinity": {"nodeAfinity": {}}}}, "spec.affinity.nodeAfinity"),
        ({"spec": {"priorityClassName": ["x"]}}, "spec.priorityClassName"),
        ({"spec": {"x": 1}}, "spec.x"),
        ({"spec": []}, "spec"),
        ({"metadata": {"labels": 3}}, "metadata.labels"),
        ({"metadata": {"labels": {"team": 3}}}, "metadata.labels[team]"),
        ({"metadata": "x"}, "metadata"),
        ({"kind": "Pod"}, "kind"),
    ],
)
def test_wrong_types_and_fields_of_the_operator_are_refused_by_path(template: Any, path: str, operator: Any) -> None:
    assert f"{ROOT}.{path}: " in refusal(template, operator)


def test_allowed_templates_are_merged_like_kubectl_apply() -> None:
    template = {
        "spec": {
            "hostNetwork": True,
            "securityContext": {"runAsUser": 1000},
            "initContainers": [{"name": "first", "image": "busybox"}],
            "volumes": [
                {"name": "tmp", "emptyDir": {"sizeLimit": "5Gi"}},
                {"name": "data", "hostPath": {"path": "/d"}},
            ],
            "containers": [
                {
                    "name": "driver",
                    "env": [{"name": "HOME", "value": "/data"}, {"name": "MORE", "value": "1"}],
                    "securityContext": {"readOnlyRootFilesystem": False},
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    "ports": [{"containerPort": 9}, {}],
                },
                {"name": "sidecar", "image": "vector"},
            ],
        }
    }
    spec = driver_of(template, UNSAFE)["spec"]
    assert spec["hostNetwork"] is True
    assert (spec["securityContext"]["runAsUser"], spec["securityContext"]["runAsNonRoot"]) == (1000, True)
    assert [c["name"] for c in spec["containers"]] == ["driver", "sidecar"]
    driver = spec["containers"][0]
    env = {e["name"]: e.get("value") for e in driver["env"]}
    assert (env["HOME"], env["MORE"], env["S3SINK_CLUSTER"]) == ("/data", "1", "cluster-uid")
    assert driver["securityContext"]["readOnlyRootFilesystem"] is False
    assert driver["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert driver["image"] == SETTINGS.image
    assert driver["ports"][0]["name"] == "http"
    volumes = {v["name"]: v for v in spec["volumes"]}
    assert volumes["tmp"] == {"name": "tmp", "emptyDir": {"sizeLimit": "5Gi"}}
    assert "/data" in {m["mountPath"] for m in driver["volumeMounts"]}


values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5) | st.sampled_from(["driver", "tmp", "/tmp"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("metadata", "spec", "labels", "annotations", "containers", "volumes", "name", "env", "value"),
                    *("volumeMounts", "mountPath", "ports", "tolerations", "affinity", "resources", "limits", "cpu"),
                    *(
                        "emptyDir",
                        "sizeLimit",
                        "projected",
                        "sources",
                        "serviceAccountToken",
                        "valueFrom",
                        "initContainers",
                    ),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(["metadata", "spec", "x"]), values, max_size=2), st.booleans())
@settings(max_examples=400, deadline=None)
def test_any_template_is_refused_or_leads_to_a_stable_pod(template: dict[str, Any], unsafe: bool) -> None:
    operator = UNSAFE if unsafe else SETTINGS
    seen = observed(sink_with(template))
    first = decided(seen, operator)
    assert first.status is not None
    if named(first.status, "Accepted")[0] == "False":
        assert ROOT in message(first.status, "Accepted")
        assert not first.apply
        return
    json.dumps(first.apply)
    again = decided(carried_out(seen, first), operator)
    assert (again.apply, again.delete) == ((), ())
