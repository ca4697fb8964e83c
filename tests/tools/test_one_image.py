"""The Dockerfile and the builder without Docker make the same image."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tools.host import SetupFailed
from tools.image.archive import Layer
from tools.image.build import fill_step, step_files
from tools.image.dockerfile import image_config, python_version, steps
from tools.image.sizes import Size, table

PROJECT = Path(__file__).parents[2]
STEPS = PROJECT / "tools/image/steps"


@pytest.fixture(scope="module")
def dockerfile() -> str:
    return (PROJECT / "Dockerfile").read_text()


def test_every_layer_is_a_step_of_the_dockerfile_in_the_same_order(dockerfile: str) -> None:
    scripts = {path.stem for path in STEPS.glob("*.sh")} - {"common"}
    assert scripts == set(steps(dockerfile))
    assert list(steps(dockerfile)) == ["base", "packages", "product"]


def test_the_base_is_pinned_by_digest(dockerfile: str) -> None:
    assert re.search(r"^FROM debian:[a-z]+-\d{8}-slim@sha256:[0-9a-f]{64} AS base$", dockerfile, re.MULTILINE)


def test_the_same_python_version_is_named_everywhere(dockerfile: str) -> None:
    named = set(re.findall(r"python(\d\.\d+)", dockerfile))
    assert named == {python_version(dockerfile)}
    for script in STEPS.glob("*.sh"):
        assert not re.search(r"python\d\.\d+", script.read_text()), script.name


def test_labels_match_pyproject_toml(dockerfile: str) -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    prefix = "org.opencontainers.image."
    assert image_config(dockerfile)["Labels"] == {
        f"{prefix}title": project["name"],
        f"{prefix}description": project["description"],
        f"{prefix}version": project["version"],
        f"{prefix}licenses": project["license"],
    }


def test_dockerignore_excludes_no_file_of_a_step(dockerfile: str) -> None:
    """.dockerignore lists what it lets through."""
    through = [
        line.removeprefix("!") for line in (PROJECT / ".dockerignore").read_text().splitlines() if line[:1] == "!"
    ]
    for step in steps(dockerfile):
        for name in step_files(step, dockerfile):
            assert any(name == entry or (entry[-1] == "/" and name.startswith(entry)) for entry in through), name


def test_the_product_step_sees_all_sources_of_our_packages(dockerfile: str) -> None:
    seen = step_files("product", dockerfile)
    command = ["git", "ls-files", "crds/s3sink_api", "sinkjob", "operator", "tools/image/bin"]
    tracked = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    if tracked.returncode != 0:
        pytest.skip("not a git checkout")
    there = {name for name in tracked.stdout.split() if (PROJECT / name).is_file()}
    assert there <= set(seen)
    assert {"pyproject.toml", "README.md", "LICENSE", "requirements.lock"} <= set(seen)


@pytest.mark.slow
def test_a_step_sees_no_other_file_of_the_project(dockerfile: str, tmp_path: Path) -> None:
    blind = dockerfile.replace("COPY README.md LICENSE ./\n", "")
    with pytest.raises(SetupFailed, match=r"README\.md"):
        fill_step("product", blind, tmp_path, {})


@pytest.mark.slow
def test_our_own_layer_is_the_same_each_time(dockerfile: str, tmp_path: Path) -> None:
    digests = set()
    for number in ("first", "second"):
        folder = tmp_path / number
        folder.mkdir()
        fill_step("product", dockerfile, folder, {})
        digests.add(Layer.of(folder / "layer.tar").digest)
    assert len(digests) == 1


def test_sizes_are_shown_by_layer_and_in_total() -> None:
    assert table({"base": Size(300_000_000, 100_000_000), "product": Size(2_000_000, 500_000)}).splitlines() == [
        "layer         unpacked  compressed",
        "base          300.0 MB    100.0 MB",
        "product         2.0 MB      0.5 MB",
        "image         302.0 MB    100.5 MB",
    ]


def test_the_compressed_size_is_that_of_gzip(tmp_path: Path) -> None:
    tar = tmp_path / "layer.tar"
    tar.write_bytes(b"all alike " * 100_000)
    gzip = subprocess.run(["gzip", "-6", "--stdout", "--no-name", str(tar)], capture_output=True, check=True).stdout
    assert abs(Layer.of(tar).packed_size() - len(gzip)) < len(gzip) * 0.05
