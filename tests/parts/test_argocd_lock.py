"""The part of Argo CD is built of the versions that versions.toml tells, each with its hash."""

from __future__ import annotations

import re

from e2e.parts.gitops import locked_files
from e2e.parts.versions import version

TO_DO = "run `make lock`"


def taken() -> dict[str, tuple[str, str]]:
    """By the name that is imported: where it comes from, and its version."""
    found = re.findall(r"^\t(\S+) => (\S+) (\S+)$", locked_files()[0].read_text(), re.MULTILINE)
    return {name: (path, release) for name, path, release in found}


def test_versions_are_those_that_are_told() -> None:
    modules = taken()
    kubernetes = "v0." + version("kubernetes", "version").partition(".")[2]
    wanted = {
        "github.com/argoproj/argo-cd/v3": f"v{version('argocd', 'version')}",
        "github.com/argoproj/argo-cd/gitops-engine": version("argocd", "engine"),
        "k8s.io/client-go": kubernetes,
        "k8s.io/apimachinery": kubernetes,
    }
    assert {name: modules[name][1] for name in wanted} == wanted, TO_DO


def test_each_has_the_hash_of_its_content_and_of_its_requirements() -> None:
    sums = {tuple(line.split()[:2]) for line in locked_files()[1].read_text().splitlines()}
    wanted = {(path, release + part) for path, release in taken().values() for part in ("", "/go.mod")}
    assert sums == wanted, TO_DO
