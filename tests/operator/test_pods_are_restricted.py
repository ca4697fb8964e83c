"""The Pod Security Standard "restricted", control by control, on every pod that a sink may get."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from s3sink_operator.decide.children.workloads import WORKLOADS, pod_template
from tests.operator.samples import SETTINGS, decided, merged, observed, resource

KINDS = {
    "Local": {},
    "Cluster": {"spark": {"mode": "Cluster"}},
    "Once": {"run": "Once"},
    "Scheduled": {"run": "Scheduled", "schedule": "@hourly"},
    "Scheduled in a cluster": {"run": "Scheduled", "schedule": "@hourly", "spark": {"mode": "Cluster"}},
}
# All that a template may have, for both roles.
EVERYTHING = {
    "metadata": {"labels": {"team": "data"}, "annotations": {"sidecar.istio.io/inject": "false"}},
    "spec": {
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
        ],
        "priorityClassName": "low",
        "schedulerName": "volcano",
        "runtimeClassName": "gvisor",
        "imagePullSecrets": [{"name": "registry"}],
        "dnsPolicy": "None",
        "dnsConfig": {"nameservers": ["10.0.0.10"], "options": [{"name": "ndots", "value": "2"}]},
        "hostAliases": [{"ip": "10.1.2.3", "hostnames": ["broker-1"]}],
        "volumes": [
            {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}},
            {"name": "krb", "configMap": {"name": "krb5"}},
            {"name": "keytab", "secret": {"secretName": "keytab"}},
            {
                "name": "me",
                "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]},
            },
            {
                "name": "token",
                "projected": {"sources": [{"serviceAccountToken": {"audience": "sts.amazonaws.com", "path": "token"}}]},
            },
        ],
    },
}
ALLOWED_VOLUMES = {
    *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret")
}


def violations(pod: Mapping[str, Any]) -> Iterator[str]:
    """What https://kubernetes.io/docs/concepts/security/pod-security-standards lists, for Linux."""
    spec, annotations = pod["spec"], pod["metadata"].get("annotations", {})
    security = spec.get("securityContext", {})
    yield from (f"{name} is set" for name in ("hostNetwork", "hostPID", "hostIPC", "hostUsers") if spec.get(name))
    yield from (f"volume {v['name']}" for v in spec.get("volumes", ()) if not set(v) - {"name"} <= ALLOWED_VOLUMES)
    yield from (f"sysctl {s['name']}" for s in security.get("sysctls", ()))
    yield from (f"annotation {key}" for key in annotations if "apparmor" in key or "seccomp" in key)
    if "windowsOptions" in security or "appArmorProfile" in security or "seLinuxOptions" in security:
        yield "the pod's own profile"
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        own = container.get("securityContext", {})
        effective = {**security, **own}
        if effective.get("runAsNonRoot") is not True:
            yield "runAsNonRoot"
        if effective.get("runAsUser") == 0:
            yield "runAsUser"
        if effective.get("seccompProfile", {}).get("type") not in {"RuntimeDefault", "Localhost"}:
            yield "seccompProfile"
        if own.get("allowPrivilegeEscalation") is not False:
            yield "allowPrivilegeEscalation"
        if own.get("capabilities", {}).get("drop") != ["ALL"] or own["capabilities"].get("add", []):
            yield "capabilities"
        if own.get("privileged") or own.get("procMount", "Default") != "Default":
            yield "privileged"
        if {"windowsOptions", "appArmorProfile", "seLinuxOptions"} & set(own):
            yield "the container's own profile"
        yield from (f"port {p}" for p in container.get("ports", ()) if p.get("hostPort"))
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            if container.get(probe, {}).get("httpGet", {}).get("host"):
                yield f"{probe} of another host"


def with_everything(role: str) -> dict[str, Any]:
    container = {
        "name": role,
        "env": [
            {"name": "HTTPS_PROXY", "value": "http://proxy:3128"},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        ],
        "volumeMounts": [{"name": "krb", "mountPath": "/etc/krb5", "readOnly": True}],
        "resources": {"limits": {"cpu": "2", "ephemeral-storage": "12Gi"}, "requests": {"ephemeral-storage": "1Gi"}},
    }
    return merged(EVERYTHING, {"spec": {"containers": [container]}})


TEMPLATES = {"spark": {role: {"podTemplate": with_everything(role)} for role in ("driver", "executor")}}


def pods(spec: dict[str, Any]) -> dict[str, Any]:
    found = decided(observed(resource(spec)))
    assert found.apply, found.status
    (workload,) = (d for d in found.apply if d["kind"] in WORKLOADS.values())
    templates = {"driver": pod_template(workload)}
    data = next(d["data"] for d in found.apply if d["kind"] == "ConfigMap")
    if "executor.yaml" in data:
        templates["executor"] = yaml.safe_load(data["executor.yaml"])
    return templates


@pytest.mark.parametrize("template", [{}, TEMPLATES], ids=["plain", "with a template"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_pod_is_restricted_with_any_template_that_is_accepted(kind: str, template: dict[str, Any]) -> None:
    found = pods(merged(KINDS[kind], template))
    assert set(found) == ({"driver", "executor"} if "luster" in kind else {"driver"})
    for pod in found.values():
        assert list(violations(pod)) == []


@pytest.mark.parametrize("template", [{}, TEMPLATES], ids=["plain", "with a template"])
@pytest.mark.parametrize("kind", KINDS)
def test_pods_can_write_only_to_folders_of_limited_size(kind: str, template: dict[str, Any]) -> None:
    for pod in pods(merged(KINDS[kind], template)).values():
        (container,) = pod["spec"]["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        writable = {m["mountPath"] for m in container["volumeMounts"] if not m.get("readOnly")}
        assert writable == {"/tmp", "/var/spill"}
        assert all(v["emptyDir"]["sizeLimit"] for v in pod["spec"]["volumes"] if "emptyDir" in v)
        assert (pod["spec"]["securityContext"]["runAsUser"], pod["spec"]["enableServiceLinks"]) == (185, False)


@pytest.mark.parametrize("kind", KINDS)
def test_secrets_are_mounted_as_files_only(kind: str) -> None:
    for pod in pods(KINDS[kind]).values():
        (container,) = pod["spec"]["containers"]
        assert "envFrom" not in container
        assert all("secretKeyRef" not in e.get("valueFrom", {}) for e in container["env"])
        assert [v["secret"]["secretName"] for v in pod["spec"]["volumes"] if "secret" in v] == ["s3"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_driver_has_probes_and_a_grace_period(kind: str) -> None:
    driver = pods(KINDS[kind])["driver"]["spec"]
    (container,) = driver["containers"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["path"] == "/healthz"
    env = {e["name"]: e.get("value") for e in container["env"]}
    assert int(env["S3SINK_GRACE"]) == SETTINGS.grace < driver["terminationGracePeriodSeconds"]
    assert driver["restartPolicy"] == ("Always" if "run" not in KINDS[kind] else "Never")


def test_memory_is_limited_and_cpu_only_by_a_template() -> None:
    spec = {"spark": {"driver": {"cores": 4, "cpuRequest": "2", "memory": "3Gi"}}}
    (container,) = pods(spec)["driver"]["spec"]["containers"]
    assert container["resources"] == {"requests": {"cpu": "2", "memory": "3Gi"}, "limits": {"memory": "3Gi"}}
    (container,) = pods(merged(spec, TEMPLATES))["driver"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"memory": "3Gi", "cpu": "2", "ephemeral-storage": "12Gi"}
