from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import yaml

from s3sink_job.spec import parse
from s3sink_operator.model import SPEC_HASH
from tests.operator.facts import SETTINGS, Key, children, decided, merged, observed, pod, resource, running

CLUSTER = {"spark": {"mode": "Cluster"}}


def made(spec: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    found = decided(observed(resource(spec, **fields)))
    return {f"{d['kind']}/{d['metadata']['name']}": d for d in found.apply}


def pod_spec(document: dict[str, Any]) -> dict[str, Any]:
    return document["spec"]["template"]["spec"]


def test_a_local_sink_is_a_deployment_with_a_manifest_and_an_account_without_rights() -> None:
    assert set(made()) == {"ConfigMap/orders-s3sink", "ServiceAccount/orders-s3sink", "Deployment/orders-s3sink"}


def test_a_cluster_sink_may_make_pods_in_its_namespace_and_its_executors_may_do_nothing() -> None:
    found = made(CLUSTER)
    assert set(found) == {
        "ConfigMap/orders-s3sink",
        "ServiceAccount/orders-s3sink",
        "ServiceAccount/orders-s3sink-executor",
        "Role/orders-s3sink",
        "RoleBinding/orders-s3sink",
        "Deployment/orders-s3sink",
    }
    (rule,) = found["Role/orders-s3sink"]["rules"]
    assert rule["resources"] == ["pods"]
    assert set(rule["verbs"]) == {"create", "get", "list", "watch", "delete", "deletecollection"}
    (subject,) = found["RoleBinding/orders-s3sink"]["subjects"]
    assert (subject["name"], subject["namespace"]) == ("orders-s3sink", "shop")


def test_once_is_a_job_that_gives_up_on_what_trying_again_cannot_mend() -> None:
    job = made({"run": "Once"})["Job/orders-s3sink"]["spec"]
    assert job["template"]["spec"]["restartPolicy"] == "Never"
    assert job["podFailurePolicy"]["rules"][0]["onExitCodes"]["values"] == [2, 3]
    env = {e["name"]: e.get("value") for e in job["template"]["spec"]["containers"][0]["env"]}
    assert (env["S3SINK_STATUS_FILE"], env["S3SINK_STATUS_BYTES"]) == ("/dev/termination-log", "4096")


def test_a_deployment_never_runs_two_drivers() -> None:
    deployment = made()["Deployment/orders-s3sink"]["spec"]
    assert (deployment["strategy"], deployment["replicas"]) == ({"type": "Recreate"}, 1)


def test_the_driver_reads_the_spec_that_was_applied() -> None:
    sink = resource(annotations={"s3sink.dev/adopt-from": "old", "team": "x"})
    found = decided(observed(sink)).apply
    manifest = yaml.safe_load(next(d for d in found if d["kind"] == "ConfigMap")["data"]["sink.yaml"])
    parsed = parse(manifest)
    assert (parsed.metadata.name, parsed.metadata.namespace) == ("orders", "shop")
    assert (parsed.metadata.uid, parsed.metadata.generation) == ("sink-uid", 3)
    assert parsed.metadata.annotations == {"s3sink.dev/adopt-from": "old"}
    assert manifest["spec"] == sink.spec


@pytest.mark.parametrize("spec", [{}, CLUSTER, {"run": "Once"}])
def test_pods_are_restricted(spec: dict[str, Any]) -> None:
    found = made(spec)
    pods = [pod_spec(d) for d in found.values() if d["kind"] in {"Deployment", "Job"}]
    template = found["ConfigMap/orders-s3sink"]["data"].get("executor.yaml")
    pods += [yaml.safe_load(template)["spec"]] if template else []
    for given in pods:
        security = given["securityContext"]
        assert (security["runAsNonRoot"], security["runAsUser"]) == (True, 185)
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        (container,) = given["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        writable = {m["mountPath"] for m in container["volumeMounts"] if not m.get("readOnly")}
        assert writable == {"/tmp", "/var/spill"}
        assert all(v["emptyDir"]["sizeLimit"] for v in given["volumes"] if "emptyDir" in v)


def test_only_a_driver_in_cluster_mode_may_talk_to_the_api_server() -> None:
    assert pod_spec(made()["Deployment/orders-s3sink"])["automountServiceAccountToken"] is False
    found = made(CLUSTER)
    assert pod_spec(found["Deployment/orders-s3sink"])["automountServiceAccountToken"] is True
    executor = yaml.safe_load(found["ConfigMap/orders-s3sink"]["data"]["executor.yaml"])
    assert executor["spec"]["automountServiceAccountToken"] is False


def test_every_secret_the_spec_names_is_mounted_and_a_missing_one_does_not_hold_up_the_pod() -> None:
    spec = {
        "source": {"propertiesFrom": [{"secretRef": {"name": "kafka.auth"}}]},
        "destination": {"caFrom": {"secretRef": {"name": "ca"}}},
        **CLUSTER,
    }
    found = made(spec)
    pods = [pod_spec(found["Deployment/orders-s3sink"])]
    pods.append(yaml.safe_load(found["ConfigMap/orders-s3sink"]["data"]["executor.yaml"])["spec"])
    for given in pods:
        volumes = {v["name"]: v["secret"] for v in given["volumes"] if "secret" in v}
        assert {v["secretName"] for v in volumes.values()} == {"s3", "kafka.auth", "ca"}
        assert all(v["optional"] for v in volumes.values())
        mounts = given["containers"][0]["volumeMounts"]
        paths = {m["mountPath"]: volumes[m["name"]]["secretName"] for m in mounts if m["name"] in volumes}
        assert paths == {f"/var/run/s3sink/secrets/{name}": name for name in ("s3", "kafka.auth", "ca")}
        assert all(m["readOnly"] for m in mounts if m["name"] in volumes)


def test_resources_come_from_the_spec() -> None:
    spec = {"spark": {"driver": {"memory": "3Gi", "cpuRequest": "1.5", "spill": "4Gi"}}}
    given = pod_spec(made(spec)["Deployment/orders-s3sink"])
    assert given["containers"][0]["resources"] == {
        "requests": {"cpu": "1500m", "memory": "3Gi"},
        "limits": {"memory": "3Gi"},
    }
    assert {"name": "spill", "emptyDir": {"sizeLimit": "4Gi"}} in given["volumes"]


def test_an_account_of_ones_own_is_used_and_none_is_made() -> None:
    found = made({"spark": {"mode": "Cluster", "serviceAccountName": "mine"}})
    assert not [name for name in found if name.startswith("ServiceAccount/")]
    assert pod_spec(found["Deployment/orders-s3sink"])["serviceAccountName"] == "mine"
    assert found["RoleBinding/orders-s3sink"]["subjects"][0]["name"] == "mine"
    env = {e["name"]: e.get("value") for e in pod_spec(found["Deployment/orders-s3sink"])["containers"][0]["env"]}
    assert env["S3SINK_EXECUTOR_ACCOUNT"] == "mine"


def test_driver_and_executors_get_the_same_cloud_role() -> None:
    role = {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/sink"}
    found = made({"spark": {"mode": "Cluster", "serviceAccountAnnotations": role}})
    for name in ("orders-s3sink", "orders-s3sink-executor"):
        assert role.items() <= found[f"ServiceAccount/{name}"]["metadata"]["annotations"].items()


def test_a_pod_template_says_where_pods_run() -> None:
    template = {
        "metadata": {"labels": {"team": "data"}, "annotations": {"a": "b"}},
        "spec": {"tolerations": [{"operator": "Exists"}], "imagePullSecrets": [{"name": "registry"}]},
    }
    deployment = made({"spark": {"driver": {"podTemplate": template}}})["Deployment/orders-s3sink"]
    given = deployment["spec"]["template"]
    assert given["metadata"]["labels"]["team"] == "data"
    assert given["metadata"]["annotations"]["a"] == "b"
    assert given["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    assert deployment["spec"]["selector"]["matchLabels"].items() <= given["metadata"]["labels"].items()


@pytest.mark.parametrize(
    ("template", "path"),
    [
        ({"spec": {"hostNetwork": True}}, "spec.spark.driver.podTemplate.spec.hostNetwork"),
        ({"spec": {"containers": []}}, "spec.spark.driver.podTemplate.spec.containers"),
        ({"spec": {"securityContext": {}}}, "spec.spark.driver.podTemplate.spec.securityContext"),
        ({"spec": {"serviceAccountName": "admin"}}, "spec.spark.driver.podTemplate.spec.serviceAccountName"),
        ({"metadata": {"labels": {"s3sink.dev/sink": "x"}}}, "podTemplate.metadata.labels[s3sink.dev/sink]"),
        ({"metadata": {"name": "x"}}, "spec.spark.driver.podTemplate.metadata.name"),
    ],
)
def test_a_pod_template_cannot_weaken_the_pod(template: dict[str, Any], path: str) -> None:
    found = decided(observed(resource({"spark": {"driver": {"podTemplate": template}}})))
    assert not found.apply
    assert found.status is not None
    assert path in found.status["conditions"][0]["message"]


def test_a_changed_spec_rolls_the_driver_and_an_unchanged_one_does_not() -> None:
    facts = running()
    assert not decided(facts).apply
    changed = replace(facts, resource=replace(resource({"flush": {"records": 7}}), generation=4))
    found = {d["kind"]: d for d in decided(changed).apply}
    assert set(found) == {"ConfigMap", "Deployment"}
    before = next(c for c in facts.children if c.kind == "Deployment").document
    hashes = [d["spec"]["template"]["metadata"]["annotations"][SPEC_HASH] for d in (before, found["Deployment"])]
    assert hashes[0] != hashes[1]


def test_drift_is_put_right_and_what_others_add_is_left_alone() -> None:
    facts = running()
    deployment = next(c for c in facts.children if c.kind == "Deployment")

    def with_changes(changes: dict[str, Any]) -> Any:
        child = replace(deployment, document=merged(deployment.document, changes))
        rest = tuple(c for c in facts.children if c is not deployment)
        return decided(replace(facts, children=(*rest, child))).apply

    assert [d["kind"] for d in with_changes({"spec": {"replicas": 2}})] == ["Deployment"]
    assert not with_changes({"metadata": {"annotations": {"somebody": "else"}}, "status": {"replicas": 1}})


def test_a_mode_that_is_left_takes_its_rights_with_it() -> None:
    before, after = resource(CLUSTER), resource()
    facts = observed(after, children=children(before), pods=(pod(after),))
    gone = {(c.kind, c.name) for c in decided(facts).delete}
    assert gone == {
        ("ServiceAccount", "orders-s3sink-executor"),
        ("Role", "orders-s3sink"),
        ("RoleBinding", "orders-s3sink"),
    }


def test_an_object_of_somebody_else_is_never_taken_over() -> None:
    facts = running()
    foreign = tuple(replace(c, owner="somebody") if c.kind == "ConfigMap" else c for c in facts.children)
    found = decided(replace(facts, children=foreign))
    assert not found.apply
    assert not found.delete
    assert found.status is not None
    assert "ConfigMap orders-s3sink exists" in json.dumps(found.status)


def test_a_deployment_of_somebody_else_does_not_hold_up_a_job() -> None:
    (foreign,) = (c for c in children(resource()) if c.kind == "Deployment")
    found = decided(observed(resource({"run": "Once"}), children=(replace(foreign, owner="somebody"),)))
    assert "Job" in {d["kind"] for d in found.apply}
    assert not found.delete


def test_another_spec_is_another_run_of_a_job_and_another_operator_is_not() -> None:
    before, after = resource({"run": "Once"}), replace(resource({"run": "Once", "flush": {"records": 7}}), generation=4)
    facts = observed(before, children=children(before))
    newer = replace(SETTINGS, image="registry.example/s3sink:2")
    assert not decided(facts, newer).apply
    found = decided(replace(facts, resource=after))
    assert [c.kind for c in found.delete] == ["Job"]
    assert "Job" not in {d["kind"] for d in found.apply}


def test_a_deployment_waits_until_the_job_before_it_is_gone() -> None:
    facts = observed(resource(), children=children(resource({"run": "Once"})))
    found = decided(facts)
    assert [c.kind for c in found.delete] == ["Job"]
    assert "Deployment" not in {d["kind"] for d in found.apply}


def test_the_longest_name_makes_names_that_kubernetes_takes() -> None:
    found = decided(observed(resource(CLUSTER, key=Key("shop", "x" * 52))))
    limits = {"Deployment": 63, "Job": 63}
    assert all(len(d["metadata"]["name"]) <= limits.get(d["kind"], 253) for d in found.apply)


def test_a_resource_that_is_being_deleted_is_left_to_the_garbage_collector() -> None:
    found = decided(replace(running(), resource=replace(resource(), deleting=True)))
    assert (found.apply, found.delete, found.status) == ((), (), None)
