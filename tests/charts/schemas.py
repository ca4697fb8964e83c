"""JSON schemas for kubeconform, from the API server's OpenAPI documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tools.cluster.client import Client

_NUMBERS_TOO = ("io.k8s.apimachinery.pkg.util.intstr.IntOrString", "io.k8s.apimachinery.pkg.api.resource.Quantity")
_ANYTHING = ("JSON", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrArray", "JSONSchemaPropsOrStringArray")
LOCATION = "{{ .ResourceKind }}{{ .KindSuffix }}.json"


def write_schemas(api: Client, folder: Path) -> None:
    """One file per kind, named as kubeconform expects, and one with the shared definitions."""
    found = {name: _strict(name, schema) for name, schema in api.get("/openapi/v2")["definitions"].items()}
    (folder / "all.json").write_text(json.dumps({"definitions": found}))
    for name, schema in found.items():
        for kind in schema.get("x-kubernetes-group-version-kind", ()):
            parts = [kind["kind"].lower(), kind["group"].partition(".")[0], kind["version"]]
            file = folder / f"{'-'.join(part for part in parts if part)}.json"
            file.write_text(json.dumps({"$ref": f"all.json#/definitions/{name}"}))


def _strict(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    if name in _NUMBERS_TOO:
        return {"type": ["string", "number"]}
    if name.rpartition(".")[2] in _ANYTHING:
        return {}
    return _closed(schema)


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """Refuses unknown fields, at any depth."""
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["string", "integer"]}
    closed = dict(schema)
    if "properties" in schema:
        closed["properties"] = {name: _closed(inner) for name, inner in schema["properties"].items()}
        closed["additionalProperties"] = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    for inside in ("items", "additionalProperties"):
        if isinstance(schema.get(inside), dict):
            closed[inside] = _closed(schema[inside])
    return closed
