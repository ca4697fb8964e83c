"""What a driver needs before it starts: its manifest, its account and its rights."""

from __future__ import annotations

from typing import Any

import yaml

from s3sink_api.group import API_VERSION, GROUP, KIND
from s3sink_api.labels import DRIVER, EXECUTOR
from s3sink_api.spec import S3Sink
from s3sink_operator.decide.children.child_names import EXECUTOR_TEMPLATE, MANIFEST, ChildNames, child_names
from s3sink_operator.decide.children.owned_objects import owned_object
from s3sink_operator.decide.children.pods import executor_pod
from s3sink_operator.values.objects import SinkResource

OWN_ANNOTATIONS = f"{GROUP}/"
RBAC = "rbac.authorization.k8s.io"
# The dumper in C is ten times as fast, which counts with thousands of topics.
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def supporting_objects(resource: SinkResource, sink: S3Sink) -> list[dict[str, Any]]:
    names = child_names(sink)
    content = {MANIFEST: _yaml(manifest(resource))}
    cluster = sink.spec.spark.mode == "Cluster"
    if cluster:
        content[EXECUTOR_TEMPLATE] = _yaml(executor_pod(sink))
    made = [owned_object(resource, sink, "v1", "ConfigMap", names.main, {"data": content})]
    if not sink.spec.spark.service_account_name:
        made.append(_account(resource, sink, names.driver_account, DRIVER))
        if cluster:
            made.append(_account(resource, sink, names.executor_account, EXECUTOR))
    if cluster:
        made += _rights(resource, sink, names)
    return made


def manifest(resource: SinkResource) -> dict[str, Any]:
    """The document that the driver reads: the resource without labels, status and other tools' annotations."""
    own = own_annotations(resource)
    metadata: dict[str, Any] = {
        "name": resource.key.name,
        "namespace": resource.key.namespace,
        "uid": resource.uid,
        "generation": resource.generation,
    }
    if resource.created:
        metadata["creationTimestamp"] = resource.created
    if own:
        metadata["annotations"] = own
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": resource.spec}


def own_annotations(resource: SinkResource) -> dict[str, str]:
    return {k: v for k, v in sorted(resource.annotations.items()) if k.startswith(OWN_ANNOTATIONS)}


def _account(resource: SinkResource, sink: S3Sink, name: str, role: str) -> dict[str, Any]:
    annotations = sink.spec.spark.service_account_annotations
    body = {"automountServiceAccountToken": False}
    return owned_object(resource, sink, "v1", "ServiceAccount", name, body, role=role, annotations=annotations)


def _rights(resource: SinkResource, sink: S3Sink, names: ChildNames) -> list[dict[str, Any]]:
    """The driver may create, watch and delete executor pods in its own namespace, and nothing else."""
    verbs = ["create", "get", "list", "watch", "delete", "deletecollection"]
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": verbs}]
    role_ref = {"apiGroup": RBAC, "kind": "Role", "name": names.main}
    subject = {"kind": "ServiceAccount", "name": names.driver_account, "namespace": resource.key.namespace}
    binding = {"roleRef": role_ref, "subjects": [subject]}
    return [
        owned_object(resource, sink, f"{RBAC}/v1", "Role", names.main, {"rules": rules}),
        owned_object(resource, sink, f"{RBAC}/v1", "RoleBinding", names.main, binding),
    ]


def _yaml(document: Any) -> str:
    return str(yaml.dump(document, Dumper=_DUMPER, sort_keys=False, allow_unicode=True))
