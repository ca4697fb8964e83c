from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
import yaml

from s3sink_api.labels import SPEC_HASH
from s3sink_api.spec import parse
from s3sink_operator.decide.children.child_names import child_name
from tests.operator.samples import SETTINGS, SinkKey, children, decided, merged, observed, pod, resource, running

CLUSTER = {"spark": {"mode": "Cluster"}}
ONCE = {"run": "Once"}
HOURLY = {"run": "Scheduled", "schedule": "0 * * * *"}


def made(spec: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    found = decided(observed(resource(spec, **fields)))
    return {f"{d['kind']}/{d['metadata']['name']}": d for d in found.apply}


def workload_of(spec: dict[str, Any]) -> str:
    return {"Once": "Job", "Scheduled": "CronJob"}.get(spec.get("run", ""), "Deployment")


def pod_spec(document: dict[str, Any]) -> dict[str, Any]:
    return document["spec"]["template"]["spec"]


def test_a_local_sink_is_a_deployment_a_config_map_and_an_account() -> None:
    assert set(made()) == {"ConfigMap/orders-s3sink", "ServiceAccount/orders-s3sink", "Deployment/orders-s3sink"}


def test_in_cluster_mode_only_the_driver_has_rights_and_only_on_pods() -> None:
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


def test_run_once_is_a_job_that_does_not_retry_final_exit_codes() -> None:
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


def test_only_a_driver_in_cluster_mode_may_talk_to_the_api_server() -> None:
    assert pod_spec(made()["Deployment/orders-s3sink"])["automountServiceAccountToken"] is False
    found = made(CLUSTER)
    assert pod_spec(found["Deployment/orders-s3sink"])["automountServiceAccountToken"] is True
    executor = yaml.safe_load(found["ConfigMap/orders-s3sink"]["data"]["executor.yaml"])
    assert executor["spec"]["automountServiceAccountToken"] is False


def test_every_secret_of_the_spec_is_mounted_and_optional() -> None:
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


def test_a_named_service_account_is_used_and_none_is_created() -> None:
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


def test_only_a_changed_spec_restarts_the_driver() -> None:
    seen = running()
    assert not decided(seen).apply
    changed = replace(seen, resource=replace(resource({"flush": {"records": 7}}), generation=4))
    found = {d["kind"]: d for d in decided(changed).apply}
    assert set(found) == {"ConfigMap", "Deployment"}
    before = next(c for c in seen.children if c.kind == "Deployment").document
    hashes = [d["spec"]["template"]["metadata"]["annotations"][SPEC_HASH] for d in (before, found["Deployment"])]
    assert hashes[0] != hashes[1]


def test_drift_is_corrected_and_fields_of_others_stay() -> None:
    seen = running()
    deployment = next(c for c in seen.children if c.kind == "Deployment")

    def with_changes(changes: dict[str, Any]) -> Any:
        child = replace(deployment, document=merged(deployment.document, changes))
        rest = tuple(c for c in seen.children if c is not deployment)
        return decided(replace(seen, children=(*rest, child))).apply

    assert [d["kind"] for d in with_changes({"spec": {"replicas": 2}})] == ["Deployment"]
    assert not with_changes({"metadata": {"annotations": {"somebody": "else"}}, "status": {"replicas": 1}})


def test_leaving_cluster_mode_deletes_its_rights() -> None:
    before, after = resource(CLUSTER), resource()
    seen = observed(after, children=children(before), pods=(pod(after),))
    gone = {(c.kind, c.name) for c in decided(seen).delete}
    assert gone == {
        ("ServiceAccount", "orders-s3sink-executor"),
        ("Role", "orders-s3sink"),
        ("RoleBinding", "orders-s3sink"),
    }


def test_an_object_of_another_owner_is_never_taken_over() -> None:
    seen = running()
    foreign = tuple(replace(c, owner="somebody") if c.kind == "ConfigMap" else c for c in seen.children)
    found = decided(replace(seen, children=foreign))
    assert not found.apply
    assert not found.delete
    assert found.status is not None
    assert "ConfigMap orders-s3sink exists" in json.dumps(found.status)


def test_a_deployment_of_another_owner_does_not_block_a_job() -> None:
    (foreign,) = (c for c in children(resource()) if c.kind == "Deployment")
    found = decided(observed(resource({"run": "Once"}), children=(replace(foreign, owner="somebody"),)))
    assert "Job" in {d["kind"] for d in found.apply}
    assert not found.delete


def test_a_new_spec_is_a_new_run_of_a_job_and_a_new_operator_is_not() -> None:
    before, after = resource({"run": "Once"}), replace(resource({"run": "Once", "flush": {"records": 7}}), generation=4)
    seen = observed(before, children=children(before))
    newer = replace(SETTINGS, image="registry.example/s3sink:2")
    assert not decided(seen, newer).apply
    found = decided(replace(seen, resource=after))
    assert [c.kind for c in found.delete] == ["Job"]
    assert "Job" not in {d["kind"] for d in found.apply}


@pytest.mark.parametrize("before", [{}, ONCE, HOURLY])
@pytest.mark.parametrize("after", [{}, ONCE, HOURLY])
def test_a_changed_run_mode_waits_until_the_former_workload_is_gone(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    if before == after:
        return
    sink = resource(after, generation=4)
    seen = observed(sink, children=children(resource(before)))
    found = decided(seen)
    wanted, former = (workload_of(spec) for spec in (after, before))
    assert [c.kind for c in found.delete] == [former]
    assert wanted not in {d["kind"] for d in found.apply}
    going = tuple(replace(c, deleting=c.kind == former) for c in seen.children)
    still = decided(replace(seen, children=going))
    assert not still.delete
    assert wanted not in {d["kind"] for d in still.apply}
    assert still.requeue_after is not None
    gone = decided(replace(seen, children=tuple(c for c in going if not c.deleting)))
    assert wanted in {d["kind"] for d in gone.apply}


@pytest.mark.parametrize("length", [45, 46, 52])
@pytest.mark.parametrize("spec", [CLUSTER, ONCE, HOURLY])
def test_names_of_children_are_valid_for_the_longest_sink_name(length: int, spec: dict[str, Any]) -> None:
    found = decided(observed(resource(spec, key=SinkKey("shop", "x" * length))))
    limits = {"Deployment": 63, "Job": 63, "CronJob": 52}
    assert all(len(d["metadata"]["name"]) <= limits.get(d["kind"], 253) for d in found.apply)
    assert all(re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", d["metadata"]["name"]) for d in found.apply)


def test_two_long_names_with_the_same_start_get_different_children() -> None:
    names = {child_name("x" * 51 + end) for end in "ab"}
    assert len(names) == 2
    assert all(name.endswith("-s3sink") for name in names)
    assert child_name("x" * 45) == "x" * 45 + "-s3sink"


def test_a_new_default_in_the_definition_starts_no_new_run_of_a_job() -> None:
    before = resource(ONCE)
    seen = observed(before, children=children(before))
    richer = replace(before, spec=merged(before.spec, {"errors": {"maxPerFlush": 1000}}))
    found = decided(replace(seen, resource=richer))
    assert [d["kind"] for d in found.apply] == ["ConfigMap"]
    assert not found.delete


def test_no_pod_disruption_budget_blocks_a_node_drain() -> None:
    for spec in ({}, CLUSTER, ONCE, HOURLY):
        assert "PodDisruptionBudget" not in {d["kind"] for d in decided(observed(resource(spec))).apply}


def test_values_that_the_server_rewrites_are_not_drift() -> None:
    template = {
        "spec": {
            "nodeSelector": {},
            "tolerations": [],
            "containers": [
                {"name": "driver", "env": [{"name": "A", "value": ""}], "resources": {"limits": {"cpu": 2}}}
            ],
        }
    }
    sink = resource({"spark": {"driver": {"podTemplate": template}}})
    held = tuple(
        replace(c, document=json.loads(json.dumps(c.document).replace('"cpu": 2', '"cpu": "2000m"')))
        for c in children(sink)
    )
    assert not decided(observed(sink, children=held, pods=(pod(sink),))).apply


def test_an_enabled_service_account_token_is_drift() -> None:
    seen = running()
    held = tuple(
        replace(
            c, document=json.loads(json.dumps(c.document).replace('"automountServiceAccountToken": false', '"x": 1'))
        )
        for c in seen.children
    )
    assert {d["kind"] for d in decided(replace(seen, children=held)).apply} == {"Deployment", "ServiceAccount"}


def test_a_deleted_resource_is_left_to_the_garbage_collector() -> None:
    found = decided(replace(running(), resource=replace(resource(), deleting=True)))
    assert (found.apply, found.delete, found.status) == ((), (), None)


def test_the_manifest_names_uid_generation_and_creation_time() -> None:
    found = made(created="2026-11-01T00:00:00Z")["ConfigMap/orders-s3sink"]["data"]["sink.yaml"]

    metadata = parse(yaml.safe_load(found)).metadata
    assert (metadata.uid, metadata.generation) == ("sink-uid", 3)
    assert metadata.creation_timestamp == "2026-11-01T00:00:00Z"
