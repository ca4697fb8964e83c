"""The bill of materials lists all that runs in the image, in the locked versions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tools.image.build import build_image
from tools.image.sbom import sbom
from tools.parts.jars import connector_dir

# The first run on a machine builds the image, and Syft.
pytestmark = pytest.mark.timeout(1800)

PROJECT = Path(__file__).parents[2]
Versions = Mapping[tuple[str, str], set[str]]


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    image = build_image()
    name, _, release = image.reference.partition(":")
    found: dict[str, Any] = json.loads(sbom(image.archive, name, release))
    return found


@pytest.fixture(scope="module")
def versions(document: dict[str, Any]) -> Versions:
    """By kind (`pypi`, `deb`, `maven`) and name."""
    found: dict[tuple[str, str], set[str]] = {}
    for component in document["components"]:
        kind = re.match(r"pkg:(\w+)/", component.get("purl", ""))
        if kind:
            found.setdefault((kind[1], component["name"]), set()).add(component["version"])
    return found


def locked(name: str) -> str:
    found = re.search(rf"^{name}==([^\s\\;]+)", (PROJECT / "requirements.lock").read_text(), re.MULTILINE)
    assert found, name
    return found[1]


@pytest.mark.parametrize("name", ["kopf", "pyspark", "pyarrow", "boto3", "kubernetes"])
def test_python_packages_are_those_of_the_lock_file(versions: Versions, name: str) -> None:
    assert versions["pypi", name] == {locked(name)}


def test_our_own_package_is_listed(versions: Versions) -> None:
    assert ("pypi", "s3sink") in versions


def test_every_debian_package_of_packages_txt_is_listed(versions: Versions) -> None:
    for package in (PROJECT / "tools/image/packages.txt").read_text().split():
        assert ("deb", package) in versions
    (java,) = versions["deb", "openjdk-17-jre-headless"]
    assert java.startswith("17.")


def test_jars_of_the_connector_are_listed(versions: Versions) -> None:
    (jar,) = connector_dir().glob("*kafka-clients-*.jar")
    (release,) = re.findall(r"kafka-clients-([\d.]+)\.jar", jar.name)
    assert versions["maven", "kafka-clients"] == {release}


def test_jars_of_spark_are_listed(versions: Versions) -> None:
    assert versions["maven", "spark-core_2.13"] == {locked("pyspark")}


def test_the_document_names_the_image(document: dict[str, Any]) -> None:
    assert document["bomFormat"] == "CycloneDX"
    about = document["metadata"]["component"]
    assert about["name"] == "localhost/s3sink"
    assert about["version"] == build_image().reference.partition(":")[2]
