"""Chooses the version of every Go module that the program needs, and writes go.mod and go.sum.

Without them Go would request the requirements of thousands of unused modules from the module proxy, one by one, for
minutes; and it would accept any hash.

    python -m tools.argocd.lock      after a change of main.go's imports, or of Argo CD's or Kubernetes' version
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from tools.argocd.program import MODULE, SOURCE, go, locked_files
from tools.parts.go import required_by
from tools.parts.versions import version

_ENGINE = "github.com/argoproj/argo-cd/gitops-engine"
_NEWER = {"golang.org/x/oauth2"}
"""Modules that Argo CD needs in a newer version than Kubernetes."""
_REPLACED = "{{with .Replace}}{{.Path}} {{.Version}}{{else}}{{.Path}} {{.Version}}{{end}}"
_USED = f"{{{{with .Module}}}}{{{{if not .Main}}}}{{{{.Path}}}} {{{{.Version}}}} {_REPLACED}{{{{end}}}}{{{{end}}}}"
"""For each package: its module, the required version, and the replacement."""


def lock() -> None:
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder)
        shutil.copy(SOURCE, there)
        (there / "go.mod").write_text("\n".join(_loose()) + "\n")
        used = sorted({line for line in go(["list", "-deps", "-f", _USED, "."], there, "mod").splitlines() if line})
        sums = (there / "go.sum").read_text().splitlines()
    module, checked = locked_files()
    module.write_text("\n".join(_strict(used)) + "\n")
    wanted = {(path, release) for _, _, path, release in map(str.split, used)}
    kept = [line for line in sums if (line.split()[0], line.split()[1].removesuffix("/go.mod")) in wanted]
    checked.write_text("\n".join(kept) + "\n")


def _strict(used: list[str]) -> list[str]:
    """A go.mod with every needed module in its final version, so that Go need not resolve anything."""
    lines = ["module s3sink.test/argocd", "", f"go {_argo_cd()['Go']}"]
    places = [line.split() for line in used]
    lines += ["", "require (", *(f"\t{name} {asked}" for name, asked, _, _ in places), ")"]
    return [*lines, "", "replace (", *(f"\t{name} => {path} {release}" for name, _, path, release in places), ")"]


def _loose() -> list[str]:
    """A go.mod with the requirements and replacements of Argo CD's own, which Go ignores in an imported module.

    The libraries of Kubernetes, and their dependencies, have the versions of the test cluster: those are compiled
    already, and one other version among them would mean to compile all of them again.
    """
    module, kubernetes = _argo_cd(), version("kubernetes", "version")
    published = "v0." + kubernetes.partition(".")[2]
    lines = ["module s3sink.test/argocd", f"go {module['Go']}", f"require {MODULE} v{version('argocd', 'version')}"]
    lines += [f"require {required['Path']} {required['Version']}" for required in module["Require"]]
    lines += [f"replace k8s.io/kubernetes => k8s.io/kubernetes v{kubernetes}"]
    for replaced in module["Replace"]:
        old, new = replaced["Old"]["Path"], replaced["New"]
        if old == _ENGINE:
            # A folder in Argo CD's own tree, published with its own versions.
            new = {"Path": _ENGINE, "Version": version("argocd", "engine")}
        elif old.startswith("k8s.io/") and new["Version"].startswith("v0."):
            new = {"Path": old, "Version": published}
        if old != "k8s.io/kubernetes":
            lines.append(f"replace {old} => {new['Path']} {new['Version']}")
    done = {replaced["Old"]["Path"] for replaced in module["Replace"]} | _NEWER
    for path, found in required_by(f"k8s.io/kubernetes@v{kubernetes}").items():
        # Kubernetes' own libraries have no version there.
        if path not in done and found != "v0.0.0":
            lines.append(f"replace {path} => {path} {found}")
    return lines


def _argo_cd() -> dict[str, Any]:
    release = version("argocd", "version")
    described = json.loads(go(["mod", "download", "-json", f"{MODULE}@v{release}"], Path("/"), "mod"))
    found: dict[str, Any] = json.loads(go(["mod", "edit", "-json", described["GoMod"]], Path("/"), "mod"))
    return found


if __name__ == "__main__":
    lock()
