"""The version is in pyproject.toml; `make generate` writes it to every other place."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from charts.generate import files as chart_files
from deploy.generate import made as deploy_files
from tools.product_version import ROOT, copies, product_version

SOURCE = "pyproject.toml"
OTHER_VERSIONS = {"CHANGELOG.md", "requirements.lock", "tools/argocd/go.mod", "tools/argocd/go.sum"}
"""Files with older releases, and with versions of other packages."""


@pytest.mark.parametrize("path", copies(), ids=lambda path: path.name)
def test_a_copy_of_the_version_is_up_to_date(path: Path) -> None:
    assert path.read_text() == copies()[path], "run `make generate`"
    assert product_version() in path.read_text()


def test_no_other_file_names_the_version() -> None:
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tracked.returncode != 0:
        pytest.skip("not a git checkout")
    written = {path.relative_to(ROOT) for path in (*copies(), *chart_files(), *deploy_files())}
    version = re.compile(rf"(?<![\w.]){re.escape(product_version())}(?![\w.]*\d)")
    found = []
    for name in set(tracked.stdout.split("\0")) - OTHER_VERSIONS - {SOURCE, ""}:
        path = ROOT / name
        if path.relative_to(ROOT) in written or not path.is_file():
            continue
        for number, line in enumerate(path.read_text(errors="ignore").splitlines(), 1):
            if version.search(line):
                found.append(f"{name}:{number}: {line.strip()}")
    listed = "\n".join(found)
    assert not found, f"{SOURCE} is the only place for the version; read it from there, or generate these:\n{listed}"
