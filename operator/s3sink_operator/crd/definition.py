"""The whole CustomResourceDefinition as a document."""

from __future__ import annotations

from typing import Any

import yaml

from s3sink_job.spec import Spec
from s3sink_operator.crd.checks import rule
from s3sink_operator.crd.schema import section_schema
from s3sink_operator.crd.status import STATUS

GROUP, VERSION, KIND, PLURAL = "s3sink.dev", "v1alpha1", "S3Sink", "s3sinks"
LONGEST_NAME = 52
_HEADER = "# Made by `python -m s3sink_operator.crd`: change the dataclasses in s3sink_job.spec instead.\n"


def definition() -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": ["s3s"],
                "categories": ["all"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": _root()},
                    "subresources": {
                        "status": {},
                        "scale": {
                            "specReplicasPath": ".spec.spark.executor.instances",
                            "statusReplicasPath": ".status.executors.replicas",
                            "labelSelectorPath": ".status.executors.selector",
                        },
                    },
                    "additionalPrinterColumns": [_column(*row) for row in _COLUMNS],
                }
            ],
        },
    }


def to_yaml(document: dict[str, Any]) -> str:
    return _HEADER + yaml.dump(document, Dumper=_Plain, sort_keys=False, width=120, allow_unicode=True)


def _root() -> dict[str, Any]:
    spec = section_schema(Spec)
    spec["description"] = "What to copy, where to, and how."
    return {
        "type": "object",
        "description": "Copies Kafka topics into S3 objects, exactly once.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": "The version of this resource's schema."},
            "kind": {"type": "string", "description": "S3Sink."},
            "metadata": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "description": "The sink's name, which its state and pods bear, too."}
                },
            },
            "spec": spec,
            "status": STATUS,
        },
        "x-kubernetes-validations": [
            rule(
                f"size(self.metadata.name) <= {LONGEST_NAME}",
                f"must have at most {LONGEST_NAME} characters",
                at=".metadata.name",
            ),
            rule(
                "!self.metadata.name.contains('.')",
                "must be lower-case letters, digits and hyphens, without dots",
                at=".metadata.name",
            ),
        ],
    }


_COLUMNS: tuple[tuple[str, str, str, int, str], ...] = (
    ("State", "string", ".status.phase", 0, "What the sink is doing."),
    ("Ready", "string", '.status.conditions[?(@.type=="Ready")].status', 0, "Whether it runs as asked and reports."),
    ("Accepted", "string", '.status.conditions[?(@.type=="Accepted")].status', 0, "Whether the spec is valid."),
    ("Lag", "integer", ".status.lag.records", 0, "Offsets in Kafka that are not in the bucket yet."),
    ("Last Flush", "date", ".status.flush.lastTime", 0, "When the last flush was published."),
    ("Retries", "integer", ".status.retry.attempts", 0, "Failures since the last flush."),
    ("Restarts", "integer", ".status.driver.restarts", 0, "Restarts of the driver."),
    ("Age", "date", ".metadata.creationTimestamp", 0, "When the resource was made."),
    ("Topics", "string", ".spec.source.topics", 1, "The topics it copies."),
    ("Pattern", "string", ".spec.source.topicPattern", 1, "The pattern that names the topics instead."),
    ("Bucket", "string", ".spec.destination.bucket", 1, "The bucket it copies them to."),
    ("Format", "string", ".spec.format.type", 1, "The format of the objects."),
)


def _column(name: str, kind: str, path: str, priority: int, description: str) -> dict[str, Any]:
    column: dict[str, Any] = {"name": name, "type": kind, "jsonPath": path, "description": description}
    return column | {"priority": priority} if priority else column


class _Plain(yaml.SafeDumper):
    """No anchors: the document repeats itself, and readers of it should not have to look elsewhere."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
