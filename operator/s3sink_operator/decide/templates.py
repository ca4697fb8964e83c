"""`podTemplate`: where pods run and how they are labelled, never what they may do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from s3sink_job.spec import FieldError, S3Sink

_SPEC = (
    *("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints"),
    *("priorityClassName", "imagePullSecrets", "schedulerName"),
)
_OURS = ("s3sink.dev/", "app.kubernetes.io/")


@dataclass(frozen=True)
class Template:
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)


def template_of(document: Mapping[str, Any]) -> Template:
    metadata, spec = document.get("metadata", {}), document.get("spec", {})
    return Template(metadata.get("labels", {}), metadata.get("annotations", {}), spec)


def template_errors(sink: S3Sink) -> list[FieldError]:
    spark = sink.spec.spark
    places = (("driver", spark.driver.pod_template), ("executor", spark.executor.pod_template))
    return [error for role, given in places for error in _errors(f"spec.spark.{role}.podTemplate", given)]


def _errors(path: str, document: Any) -> list[FieldError]:
    errors = _unknown(path, document, ("metadata", "spec"))
    if errors:
        return errors
    metadata, spec = document.get("metadata", {}), document.get("spec", {})
    errors += _unknown(f"{path}.metadata", metadata, ("labels", "annotations"))
    errors += _unknown(f"{path}.spec", spec, _SPEC)
    if errors:
        return errors
    for section in ("labels", "annotations"):
        for key, value in metadata.get(section, {}).items():
            if not isinstance(value, str):
                errors.append(FieldError(f"{path}.metadata.{section}[{key}]", "must be text"))
            if key.startswith(_OURS):
                errors.append(FieldError(f"{path}.metadata.{section}[{key}]", "is set by the operator; leave it out"))
    return errors


def _unknown(path: str, document: Any, known: tuple[str, ...]) -> list[FieldError]:
    if not isinstance(document, Mapping):
        return [FieldError(path, "must be a mapping")]
    message = f"is not for a podTemplate, which takes {', '.join(known)}"
    return [FieldError(f"{path}.{name}", message) for name in document if name not in known]
