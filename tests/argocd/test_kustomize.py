"""The operator by Kustomize, with the kubectl that people have."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from charts.generate import IMAGE
from deploy.generate import DEFINITION, EXAMPLES, KUSTOMIZE, ROOT, made
from tools.cluster import BareCluster

BASE, NAMESPACED = KUSTOMIZE / "base", KUSTOMIZE / "overlays" / "namespaced"
Documents = dict[tuple[str, str], dict[str, Any]]
OVERLAY = """
resources: [{base}]
images: [{{name: s3sink, newName: registry.example.com/team/s3sink, digest: "sha256:{digest}"}}]
"""


@pytest.mark.parametrize("path", made(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_that_is_made_from_others_is_up_to_date(path: Path) -> None:
    assert path.read_text() == made()[path], "run `python -m deploy.generate`"


def by_name(text: str) -> Documents:
    return {(d["kind"], d["metadata"]["name"]): d for d in yaml.safe_load_all(text) if d}


def installed(example: str, image: str = IMAGE) -> Documents:
    """The definition and one of the examples, for people without Kustomize."""
    text = (EXAMPLES / example).read_text().replace(IMAGE, image)
    return by_name(DEFINITION.read_text()) | by_name(text)


def with_sorted_environment(documents: Documents) -> Documents:
    for (kind, _), document in documents.items():
        if kind == "Deployment":
            document["spec"]["template"]["spec"]["containers"][0]["env"].sort(key=lambda each: each["name"])
    return documents


def test_the_base_is_the_definition_and_the_operator_for_the_whole_cluster(cluster: BareCluster) -> None:
    assert by_name(cluster.kubectl("kustomize", str(BASE))) == installed("operator.yaml")


def test_the_overlay_is_the_operator_for_one_namespace(cluster: BareCluster) -> None:
    found = by_name(cluster.kubectl("kustomize", str(NAMESPACED)))
    expected = installed("operator-namespaced.yaml", f"registry.example.com/{IMAGE}")
    assert with_sorted_environment(found) == with_sorted_environment(expected)


def test_an_overlays_image_is_that_of_drivers_too(cluster: BareCluster, tmp_path: Path) -> None:
    digest = "ab" * 32
    base = os.path.relpath(BASE, tmp_path)
    (tmp_path / "kustomization.yaml").write_text(OVERLAY.format(base=base, digest=digest))
    deployment = by_name(cluster.kubectl("kustomize", str(tmp_path)))["Deployment", "s3sink-operator"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    expected = f"registry.example.com/team/s3sink@sha256:{digest}"
    assert container["image"] == expected
    assert {"name": "S3SINK_IMAGE", "value": expected} in container["env"]


@pytest.mark.parametrize("folder", [BASE, NAMESPACED], ids=["base", "namespaced"])
def test_the_api_server_takes_it(granted: BareCluster, folder: Path) -> None:
    granted.kubectl("apply", "-f", "-", stdin='{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}')
    told = granted.kubectl("apply", "--dry-run=server", "--validate=strict", "-k", str(folder))
    assert len(told.splitlines()) == len(by_name(granted.kubectl("kustomize", str(folder))))
