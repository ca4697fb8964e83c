"""Argo CD's code is built with the versions of versions.toml, each with its hash."""

from __future__ import annotations

import re

from tools.argocd.program import locked_files
from tools.parts.versions import version

TO_DO = "run `make lock`"


def taken() -> dict[str, tuple[str, str]]:
    """By import path: the module that is used, and its version."""
    found = re.findall(r"^\t(\S+) => (\S+) (\S+)$", locked_files()[0].read_text(), re.MULTILINE)
    return {name: (path, release) for name, path, release in found}


def test_go_mod_has_the_versions_of_versions_toml() -> None:
    modules = taken()
    kubernetes = "v0." + version("kubernetes", "version").partition(".")[2]
    wanted = {
        "github.com/argoproj/argo-cd/v3": f"v{version('argocd', 'version')}",
        "github.com/argoproj/argo-cd/gitops-engine": version("argocd", "engine"),
        "k8s.io/client-go": kubernetes,
        "k8s.io/apimachinery": kubernetes,
    }
    assert {name: modules[name][1] for name in wanted} == wanted, TO_DO


def test_every_module_has_both_of_its_hashes() -> None:
    sums = {tuple(line.split()[:2]) for line in locked_files()[1].read_text().splitlines()}
    wanted = {(path, release + part) for path, release in taken().values() for part in ("", "/go.mod")}
    assert sums == wanted, TO_DO
