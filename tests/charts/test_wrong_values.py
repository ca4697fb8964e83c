"""A mistake in the values is refused with its name, before anything is installed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from charts.generate import values
from tests.charts.test_generated import put
from tools.parts.helm import CHART, helm, template
from tools.parts.processes import PartFailed

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"watch": {"namespace": ["shop"]}}, "watch: Additional property namespace is not allowed"),
    ({"imagePullSecret": "registry"}, "Additional property imagePullSecret is not allowed"),
    ({"workers": 0}, "workers: Must be greater than or equal to 1"),
    ({"port": 70000}, "port: Must be less than or equal to 65535"),
    ({"image": {"pullPolicy": "Sometimes"}}, "image.pullPolicy"),
    ({"image": {"repository": "s3sink@sha256:0"}}, "image.repository: Does not match pattern"),
    ({"crds": {"install": "false"}}, "crds.install: Invalid type. Expected: boolean"),
    ({"alerts": {"noFlush": {"for": "5 minutes"}}}, "alerts.noFlush.for: Does not match pattern"),
    ({"alerts": {"noflush": {"enabled": False}}}, "alerts: Additional property noflush is not allowed"),
    ({"imagePullSecrets": ["registry"]}, "imagePullSecrets.0: Invalid type. Expected: object"),
    ({"watch": {"namespaces": ["shop"]}}, "clusterId: must be set with watch.namespaces"),
    (
        {"metrics": {"service": {"enabled": False}, "serviceMonitor": {"enabled": True}}},
        "metrics.serviceMonitor.enabled: needs metrics.service.enabled",
    ),
    (
        {"metrics": {"podMonitor": {"enabled": True}, "serviceMonitor": {"enabled": True}}},
        "metrics.podMonitor.enabled: would scrape the operator a second time",
    ),
]


@pytest.mark.parametrize(("given", "words"), WRONG, ids=lambda part: part if isinstance(part, str) else "")
def test_a_mistake_is_refused_with_its_name(given: dict[str, Any], words: str) -> None:
    with pytest.raises(PartFailed, match=words.replace(".", r"\.")):
        template(given)


@pytest.mark.parametrize("value", values(), ids=lambda value: value.path)
def test_a_value_of_a_wrong_type_is_refused(value: Any) -> None:
    wrong = "words" if isinstance(value.default, dict | list) else {"a": "map"}
    with pytest.raises(PartFailed, match=value.path.replace(".", r"\.")):
        template(put(value.path, wrong))


def objects(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if "properties" in schema:
        yield path, schema
        for name, inner in schema["properties"].items():
            yield from objects(inner, f"{path}.{name}")


def test_every_section_refuses_unknown_names() -> None:
    assert [path for path, schema in objects(SCHEMA) if schema.get("additionalProperties") is not False] == []


def test_the_chart_can_be_a_subchart(tmp_path: Path) -> None:
    """Helm then always passes `global`."""
    shutil.copytree(CHART, tmp_path / "charts" / CHART.name)
    about = {"apiVersion": "v2", "name": "platform", "version": "1.0.0"}
    (tmp_path / "Chart.yaml").write_text(yaml.safe_dump(about))
    (tmp_path / "values.yaml").write_text("global: {region: eu}\ns3sink-operator: {workers: 9}\n")
    made = helm("template", "platform", str(tmp_path), "--namespace", "data")
    assert "name: platform-s3sink-operator\n  namespace: data" in made
    assert 'name: S3SINK_OPERATOR_WORKERS\n              value: "9"' in made
