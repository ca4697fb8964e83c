"""`podTemplate`: what a sink's pods may have beside what the operator gives them.

A template may say where pods run, what they are called, and what more they can read. It cannot say what they may do:
with any accepted template a pod still meets the Pod Security Standard "restricted", and what the operator puts into it
stays as it is. Whoever installed the operator may allow the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from posixpath import normpath
from typing import Any

from s3sink_job.spec import FieldError, S3Sink
from s3sink_operator.decide.shapes import at, shape_errors, shown
from s3sink_operator.model import DRIVER, EXECUTOR, Document

_OURS = ("s3sink.dev/", "app.kubernetes.io/")
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
# Said elsewhere in the spec, or by the operator's own flags: two ways of saying one thing would contradict each other.
_SAID_ELSEWHERE = {
    "restartPolicy": "follows from spec.run",
    "serviceAccountName": "is spec.spark.serviceAccountName",
    "serviceAccount": "is spec.spark.serviceAccountName",
    "terminationGracePeriodSeconds": "is set for all sinks, by the operator's --grace",
    "ephemeralContainers": "belongs to a pod that runs",
}
_CONTAINER_SAID_ELSEWHERE = {
    "image": "is spec.spark.image",
    "args": "is the operator's",
    "command": "is the operator's",
}
_OUR_VARIABLES = re.compile(r"SPARK_.*|HOME|PYTHONDONTWRITEBYTECODE")
_SECRET_VARIABLES = re.compile(r"(?!.*_(FILE|PATH|DIR)$)(.*(SECRET|PASSWORD|PASSWD).*|.*(TOKEN|CREDENTIALS?|API_?KEY))")
_USER_INFO = re.compile(r"://[^/\s]*@")
_OUR_VOLUMES = re.compile(r"tmp|spill|config|secret-\d+|spark-local-dir-.*|spark-conf-volume-.*|kube-api-access-.*")
_OUR_FOLDERS = ("/tmp", "/var/spill", "/etc/s3sink", "/var/run/s3sink", "/var/run/secrets", "/dev", "/proc", "/sys")  # noqa: S108
_AMOUNT = re.compile(r"[0-9]{1,18}(\.[0-9]{1,9})?(m|[kMGTPE]|[KMGTPE]i)?")
_LABEL = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
_KEY = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_UNSAFE = "is not for a podTemplate, unless whoever installed the operator allows unsafe ones"


def template_errors(sink: S3Sink, *, allow_unsafe: bool) -> list[FieldError]:
    spark = sink.spec.spark
    places = ((DRIVER, spark.driver.pod_template), (EXECUTOR, spark.executor.pod_template))
    return [error for role, given in places for error in _errors(role, given, allow_unsafe)]


def _errors(role: str, document: Document, allow_unsafe: bool) -> list[FieldError]:
    path = f"spec.spark.{role}.podTemplate"
    errors = list(shape_errors(path, "V1PodTemplateSpec", document))
    if errors:
        return errors
    metadata, spec = document.get("metadata", {}), document.get("spec", {})
    errors += _beyond(f"{path}.metadata", metadata, ("labels", "annotations"), "is the operator's to set")
    errors += _names(f"{path}.metadata", metadata)
    errors += _ours(f"{path}.spec", role, spec)
    if not allow_unsafe:
        errors += _unsafe_annotations(f"{path}.metadata", metadata)
        errors += _unsafe(f"{path}.spec", role, spec)
    return errors


def _beyond(path: str, given: Iterable[str], known: Iterable[str], why: str) -> Iterator[FieldError]:
    return (FieldError(at(path, name), why) for name in given if name not in known)


def _names(path: str, metadata: Document) -> Iterator[FieldError]:
    for section in ("labels", "annotations"):
        for key, value in metadata.get(section, {}).items():
            here = f"{path}.{section}[{shown(key)}]"
            if key.startswith(_OURS):
                yield FieldError(here, "is set by the operator; leave it out")
            elif not _KEY.fullmatch(key):
                yield FieldError(here, "has a name that Kubernetes does not take")
            elif section == "labels" and not _LABEL.fullmatch(value):
                yield FieldError(here, "must be at most 63 letters, digits, '-', '_' and '.'")


def _ours(path: str, role: str, spec: Document) -> Iterator[FieldError]:
    """What no template says, allowed or not."""
    for name, why in _SAID_ELSEWHERE.items():
        if name in spec:
            yield FieldError(f"{path}.{name}", why)
    for section in ("containers", "initContainers", "volumes"):
        yield from _unnamed(f"{path}.{section}", spec.get(section, ()), "name")
    for here, container in _each(f"{path}.containers", spec.get("containers", ())):
        yield from _unnamed(f"{here}.env", container.get("env", ()), "name")
        yield from _unnamed(f"{here}.volumeMounts", container.get("volumeMounts", ()), "mountPath")
        if container.get("name") != role:
            continue
        for name, why in _CONTAINER_SAID_ELSEWHERE.items():
            if name in container:
                yield FieldError(f"{here}.{name}", why)
        for inner, variable in _each(f"{here}.env", container.get("env", ())):
            if variable.get("name", "").startswith("S3SINK_"):
                yield FieldError(f"{inner}.name", "is the operator's to set")


def _unnamed(path: str, items: Iterable[Document], key: str) -> Iterator[FieldError]:
    """Without names, and each of its own, there is no telling what is merged with what."""
    seen = set()
    for here, item in _each(path, items):
        if not item.get(key):
            yield FieldError(f"{here}.{key}", "must be set")
        elif item[key] in seen:
            yield FieldError(f"{here}.{key}", "is there twice")
        seen.add(item.get(key))


def _unsafe_annotations(path: str, metadata: Document) -> Iterator[FieldError]:
    for key in metadata.get("annotations", {}):
        if key.startswith(_WEAKENING_ANNOTATIONS):
            yield FieldError(f"{path}.annotations[{shown(key)}]", _UNSAFE)


def _unsafe(path: str, role: str, spec: Document) -> Iterator[FieldError]:
    yield from _beyond(path, spec, (*_SPEC, *_SAID_ELSEWHERE), f"{_UNSAFE}; it takes {', '.join(_SPEC)}")
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
    yield from _beyond(path, container, (*_CONTAINER, *_CONTAINER_SAID_ELSEWHERE), _UNSAFE)
    for here, variable in _each(f"{path}.env", container.get("env", ())):
        yield from _unsafe_variable(here, variable)
    for here, mount in _each(f"{path}.volumeMounts", container.get("volumeMounts", ())):
        yield from _beyond(here, mount, _MOUNT, _UNSAFE)
        if mount.get("name") not in volumes:
            yield FieldError(f"{here}.name", "must be one of the template's own volumes")
        if _overlaps(mount.get("mountPath", "")):
            yield FieldError(f"{here}.mountPath", f"must be a folder apart from {', '.join(_OUR_FOLDERS)}")
    resources = container.get("resources", {})
    yield from _beyond(f"{path}.resources", resources, _AMOUNTS, _UNSAFE)
    for section, known in _AMOUNTS.items():
        given, here = resources.get(section, {}), f"{path}.resources.{section}"
        others = f"is not for a podTemplate, which takes {', '.join(known)} here; spec.spark has the others"
        yield from _beyond(here, given, known, others)
        yield from (error for name, value in given.items() for error in _amount(at(here, name), value))


def _unsafe_variable(path: str, variable: Document) -> Iterator[FieldError]:
    name, value = variable.get("name", ""), variable.get("value", "")
    if _OUR_VARIABLES.fullmatch(name):
        yield FieldError(f"{path}.name", "is the operator's to set")
    if value and (_SECRET_VARIABLES.fullmatch(name.upper()) or _USER_INFO.search(value)):
        yield FieldError(f"{path}.value", "looks like a secret, which belongs in a Secret that the spec refers to")
    yield from _beyond(f"{path}.valueFrom", variable.get("valueFrom", {}), _SOURCES, _UNSAFE)


def _unsafe_volume(path: str, volume: Document) -> Iterator[FieldError]:
    if _OUR_VOLUMES.fullmatch(volume.get("name", "")):
        yield FieldError(f"{path}.name", "is the name of a volume of the operator's")
    kinds = f"{_UNSAFE}; it takes {', '.join(_VOLUMES)}"
    yield from _beyond(path, volume, ("name", *_VOLUMES), kinds)
    folder = volume.get("emptyDir")
    if folder is not None and "sizeLimit" not in folder:
        yield FieldError(f"{path}.emptyDir.sizeLimit", "must be set: one sink must not fill the disk of a node")
    elif folder is not None:
        yield from _amount(f"{path}.emptyDir.sizeLimit", folder["sizeLimit"])
    for here, source in _each(f"{path}.projected.sources", volume.get("projected", {}).get("sources", ())):
        token = source.get("serviceAccountToken")
        if token is not None and not token.get("audience"):
            why = "must be set: a token for the API server is the operator's to give"
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


def with_template(pod: Mapping[str, Any], template: Document) -> dict[str, Any]:
    """The pod with what a template adds to it, as `kubectl apply` would merge them; names and labels of ours stay."""
    ours, given = pod["metadata"], template.get("metadata", {})
    metadata = {
        section: {**given.get(section, {}), **ours.get(section, {})}
        for section in ("labels", "annotations")
        if given.get(section) or ours.get(section)
    }
    return {**pod, "metadata": metadata, "spec": _merged(pod["spec"], template.get("spec", {}))}


_DEEP = frozenset({"containers", "initContainers"})
_KEYS = {
    **dict.fromkeys(("containers", "initContainers", "volumes", "env", "imagePullSecrets"), "name"),
    "volumeMounts": "mountPath",
    "ports": "containerPort",
}


def _merged(base: Document, over: Document) -> dict[str, Any]:
    merged = dict(base)
    for name, value in over.items():
        before = merged.get(name)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            merged[name] = _merged(before, value)
        elif isinstance(before, list) and isinstance(value, list) and name in _KEYS:
            merged[name] = _merged_items(name, before, value)
        else:
            merged[name] = value
    return merged


def _merged_items(name: str, base: list[Any], over: list[Any]) -> list[Any]:
    key = _KEYS[name]
    items = {item.get(key): item for item in base}
    for item in over:
        before = items.get(item.get(key))
        items[item.get(key)] = _merged(before, item) if before is not None and name in _DEEP else item
    return list(items.values())
