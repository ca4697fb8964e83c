"""Rules for `podTemplate`.

A template may set where pods run, their labels and annotations, and what more they can read. It cannot add rights:
with any accepted template a pod still meets the Pod Security Standard "restricted", and what the operator sets stays.
The operator's flag --allow-unsafe-templates allows the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from posixpath import normpath
from typing import Any

from s3sink_api import environment
from s3sink_api.group import GROUP
from s3sink_api.labels import DRIVER, EXECUTOR
from s3sink_api.spec import FieldError, S3Sink
from s3sink_operator.decide.children.kubernetes_types import field_path, short_name, type_errors
from s3sink_operator.values.objects import Document

_OPERATOR_PREFIXES = (f"{GROUP}/", "app.kubernetes.io/")
_WEAKENING_ANNOTATIONS = (
    "container.apparmor.security.beta.kubernetes.io/",
    "container.seccomp.security.alpha.kubernetes.io/",
    "seccomp.security.alpha.kubernetes.io/",
)
_SPEC = (
    *("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints", "priorityClassName", "schedulerName"),
    *("runtimeClassName", "imagePullSecrets", "dnsPolicy", "dnsConfig", "hostAliases", "volumes", "containers"),
)
_CONTAINER = ("name", "env", "volumeMounts", "resources")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef")
_VOLUMES = ("emptyDir", "configMap", "secret", "downwardAPI", "projected")
_MOUNT = ("name", "mountPath", "subPath", "readOnly")
_AMOUNTS = {"limits": ("cpu", "ephemeral-storage"), "requests": ("ephemeral-storage",)}
# Set elsewhere in the spec, or by the operator's flags. One setting has one place.
_SET_ELSEWHERE = {
    "restartPolicy": "follows from spec.run",
    "serviceAccountName": "is set by spec.spark.serviceAccountName",
    "serviceAccount": "is set by spec.spark.serviceAccountName",
    "terminationGracePeriodSeconds": "is set for all sinks by the operator's flag --grace",
    "ephemeralContainers": "can only be added to a running pod",
}
_CONTAINER_SET_ELSEWHERE = {
    "image": "is set by spec.spark.image",
    "args": "is set by the operator",
    "command": "is set by the operator",
}
_OUR_VARIABLES = re.compile(r"SPARK_.*|HOME|PYTHONDONTWRITEBYTECODE")
_SECRET_VARIABLES = re.compile(r"(?!.*_(FILE|PATH|DIR)$)(.*(SECRET|PASSWORD|PASSWD).*|.*(TOKEN|CREDENTIALS?|API_?KEY))")
_USER_INFO = re.compile(r"://[^/\s]*@")
_OUR_VOLUMES = re.compile(r"tmp|spill|config|secret-\d+|spark-local-dir-.*|spark-conf-volume-.*|kube-api-access-.*")
_OUR_FOLDERS = ("/tmp", "/var/spill", "/etc/s3sink", "/var/run/s3sink", "/var/run/secrets", "/dev", "/proc", "/sys")  # noqa: S108
_AMOUNT = re.compile(r"[0-9]{1,18}(\.[0-9]{1,9})?(m|[kMGTPE]|[KMGTPE]i)?")
_LABEL = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
_KEY = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_UNSAFE = "is not allowed in a podTemplate unless the operator runs with --allow-unsafe-templates"


def template_errors(sink: S3Sink, *, allow_unsafe: bool) -> list[FieldError]:
    spark = sink.spec.spark
    places = ((DRIVER, spark.driver.pod_template), (EXECUTOR, spark.executor.pod_template))
    return [error for role, given in places for error in _errors(role, given, allow_unsafe)]


def _errors(role: str, document: Document, allow_unsafe: bool) -> list[FieldError]:
    path = f"spec.spark.{role}.podTemplate"
    errors = list(type_errors(path, "V1PodTemplateSpec", document))
    if errors:
        return errors
    metadata, spec = document.get("metadata", {}), document.get("spec", {})
    errors += _unknown(f"{path}.metadata", metadata, ("labels", "annotations"), "is set by the operator")
    errors += _name_errors(f"{path}.metadata", metadata)
    errors += _operator_fields(f"{path}.spec", role, spec)
    if not allow_unsafe:
        errors += _unsafe_annotations(f"{path}.metadata", metadata)
        errors += _unsafe(f"{path}.spec", role, spec)
    return errors


def _unknown(path: str, given: Iterable[str], known: Iterable[str], why: str) -> Iterator[FieldError]:
    return (FieldError(field_path(path, name), why) for name in given if name not in known)


def _name_errors(path: str, metadata: Document) -> Iterator[FieldError]:
    for section in ("labels", "annotations"):
        for key, value in metadata.get(section, {}).items():
            here = f"{path}.{section}[{short_name(key)}]"
            if key.startswith(_OPERATOR_PREFIXES):
                yield FieldError(here, "is set by the operator; leave it out")
            elif not _KEY.fullmatch(key):
                yield FieldError(here, "is not a valid name in Kubernetes")
            elif section == "labels" and not _LABEL.fullmatch(value):
                yield FieldError(here, "must be at most 63 letters, digits, '-', '_' and '.'")


def _operator_fields(path: str, role: str, spec: Document) -> Iterator[FieldError]:
    """What no template may set, with --allow-unsafe-templates or without."""
    for name, why in _SET_ELSEWHERE.items():
        if name in spec:
            yield FieldError(f"{path}.{name}", why)
    for section in ("containers", "initContainers", "volumes"):
        yield from _unnamed_items(f"{path}.{section}", spec.get(section, ()), "name")
    for here, container in _each(f"{path}.containers", spec.get("containers", ())):
        yield from _unnamed_items(f"{here}.env", container.get("env", ()), "name")
        yield from _unnamed_items(f"{here}.volumeMounts", container.get("volumeMounts", ()), "mountPath")
        if container.get("name") != role:
            continue
        for name, why in _CONTAINER_SET_ELSEWHERE.items():
            if name in container:
                yield FieldError(f"{here}.{name}", why)
        for inner, variable in _each(f"{here}.env", container.get("env", ())):
            if variable.get("name", "").startswith(environment.PREFIX):
                yield FieldError(f"{inner}.name", "is set by the operator")


def _unnamed_items(path: str, items: Iterable[Document], key: str) -> Iterator[FieldError]:
    """Items are merged by name, so each needs one of its own."""
    seen = set()
    for here, item in _each(path, items):
        if not item.get(key):
            yield FieldError(f"{here}.{key}", "must be set")
        elif item[key] in seen:
            yield FieldError(f"{here}.{key}", "is a duplicate")
        seen.add(item.get(key))


def _unsafe_annotations(path: str, metadata: Document) -> Iterator[FieldError]:
    for key in metadata.get("annotations", {}):
        if key.startswith(_WEAKENING_ANNOTATIONS):
            yield FieldError(f"{path}.annotations[{short_name(key)}]", _UNSAFE)


def _unsafe(path: str, role: str, spec: Document) -> Iterator[FieldError]:
    yield from _unknown(path, spec, (*_SPEC, *_SET_ELSEWHERE), f"{_UNSAFE}; it takes {', '.join(_SPEC)}")
    volumes = spec.get("volumes", ())
    for here, volume in _each(f"{path}.volumes", volumes):
        yield from _unsafe_volume(here, volume)
    for here, container in _each(f"{path}.containers", spec.get("containers", ())):
        if container.get("name") == role:
            names = {volume.get("name") for volume in volumes}
            yield from _unsafe_container(here, container, names)
        else:
            yield FieldError(f"{here}.name", f"must be {role}: another container {_UNSAFE}")


def _unsafe_container(path: str, container: Document, volumes: set[str | None]) -> Iterator[FieldError]:
    yield from _unknown(path, container, (*_CONTAINER, *_CONTAINER_SET_ELSEWHERE), _UNSAFE)
    for here, variable in _each(f"{path}.env", container.get("env", ())):
        yield from _unsafe_variable(here, variable)
    for here, mount in _each(f"{path}.volumeMounts", container.get("volumeMounts", ())):
        yield from _unknown(here, mount, _MOUNT, _UNSAFE)
        if mount.get("name") not in volumes:
            yield FieldError(f"{here}.name", "must be one of the template's own volumes")
        if _overlaps(mount.get("mountPath", "")):
            yield FieldError(f"{here}.mountPath", f"must be a folder outside of {', '.join(_OUR_FOLDERS)}")
    resources = container.get("resources", {})
    yield from _unknown(f"{path}.resources", resources, _AMOUNTS, _UNSAFE)
    for section, known in _AMOUNTS.items():
        given, here = resources.get(section, {}), f"{path}.resources.{section}"
        others = f"is not allowed in a podTemplate; it takes {', '.join(known)} here, and spec.spark sets the others"
        yield from _unknown(here, given, known, others)
        yield from (error for name, value in given.items() for error in _amount(field_path(here, name), value))


def _unsafe_variable(path: str, variable: Document) -> Iterator[FieldError]:
    name, value = variable.get("name", ""), variable.get("value", "")
    if _OUR_VARIABLES.fullmatch(name):
        yield FieldError(f"{path}.name", "is set by the operator")
    if value and (_SECRET_VARIABLES.fullmatch(name.upper()) or _USER_INFO.search(value)):
        yield FieldError(f"{path}.value", "looks like a secret; put it into a Secret and refer to that in the spec")
    yield from _unknown(f"{path}.valueFrom", variable.get("valueFrom", {}), _SOURCES, _UNSAFE)


def _unsafe_volume(path: str, volume: Document) -> Iterator[FieldError]:
    if _OUR_VOLUMES.fullmatch(volume.get("name", "")):
        yield FieldError(f"{path}.name", "is the name of one of the operator's volumes")
    kinds = f"{_UNSAFE}; it takes {', '.join(_VOLUMES)}"
    yield from _unknown(path, volume, ("name", *_VOLUMES), kinds)
    folder = volume.get("emptyDir")
    if folder is not None and "sizeLimit" not in folder:
        yield FieldError(f"{path}.emptyDir.sizeLimit", "must be set, so that one sink cannot fill the node's disk")
    elif folder is not None:
        yield from _amount(f"{path}.emptyDir.sizeLimit", folder["sizeLimit"])
    for here, source in _each(f"{path}.projected.sources", volume.get("projected", {}).get("sources", ())):
        token = source.get("serviceAccountToken")
        if token is not None and not token.get("audience"):
            why = "must be set; a token for the API server is not allowed"
            yield FieldError(f"{here}.serviceAccountToken.audience", why)


def _amount(path: str, value: Any) -> Iterator[FieldError]:
    if not _AMOUNT.fullmatch(str(value)):
        yield FieldError(path, "must be a quantity, such as 2 or 512Mi")


def _overlaps(folder: str) -> bool:
    if not folder.startswith("/") or ".." in folder.split("/"):
        return True
    path = normpath(folder).rstrip("/").replace("//", "/") + "/"
    return any(path.startswith(f"{ours}/") or f"{ours}/".startswith(path) for ours in _OUR_FOLDERS)


def _each(path: str, items: Iterable[Document]) -> Iterator[tuple[str, Document]]:
    return ((f"{path}[{number}]", item) for number, item in enumerate(items))
