"""Manifests and reports as text, and as a folder for Kustomize."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml

from s3sink_job.convert.conversion import Conversion, ConvertedSink
from s3sink_job.convert.report import report_text


class _Dumper(yaml.SafeDumper):
    """Lists are indented like in the examples, and short ones stay in one line."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless=False)


def _sequence(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.Node:
    flow = all(isinstance(item, str | int) for item in items) and len(str(items)) < 80
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=flow)


_Dumper.add_representer(list, _sequence)


def yaml_text(document: Mapping[str, Any]) -> str:
    return yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


def manifests_text(sink: ConvertedSink) -> str:
    """The sink, then skeletons of its Secrets: their values are empty."""
    return "---\n".join(yaml_text(document) for document in (sink.manifest, *sink.secrets))


def conversion_text(conversion: Conversion) -> str:
    return "---\n".join(manifests_text(sink) for sink in conversion.sinks)


def reports_text(conversion: Conversion) -> str:
    parts = [report_text(sink.report) for sink in conversion.sinks]
    if conversion.left_alone:
        parts.append(f"left alone: {', '.join(conversion.left_alone)}")
    return "\n\n".join(parts)


def conversion_json(conversion: Conversion) -> str:
    doc = {
        "whole": conversion.whole,
        "sinks": [
            {"manifest": sink.manifest, "secrets": list(sink.secrets), "report": sink.report.to_doc()}
            for sink in conversion.sinks
        ],
        "leftAlone": list(conversion.left_alone),
    }
    return json.dumps(doc, indent=1, ensure_ascii=False)


def folder_of(conversion: Conversion) -> dict[str, str]:
    """Files of a Kustomize folder by their names."""
    files: dict[str, str] = {}
    names = [sink.manifest["metadata"]["name"] for sink in conversion.sinks]
    secrets = [name for name, sink in zip(names, conversion.sinks, strict=True) if sink.secrets]
    for name, sink in zip(names, conversion.sinks, strict=True):
        files[f"{name}.yaml"] = yaml_text(sink.manifest)
        if sink.secrets:
            files[f"{name}-secrets.yaml"] = "---\n".join(yaml_text(document) for document in sink.secrets)
    files["kustomization.yaml"] = _kustomization(names, secrets)
    files["report.txt"] = reports_text(conversion) + "\n"
    return files


def _kustomization(names: list[str], secrets: list[str]) -> str:
    document = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [f"{name}.yaml" for name in names],
    }
    text = yaml_text(document)
    if secrets:
        # Empty Secrets must not replace real ones.
        listed = ", ".join(f"{name}-secrets.yaml" for name in secrets)
        text += f"# Fill in {listed}, or create these Secrets in another way. They are not resources here on purpose:\n"
        text += "# their values are empty, and applying them would replace real ones.\n"
    return text
