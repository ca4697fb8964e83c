"""Kubernetes, etcd, CoreDNS and the pause program, built from their sources once per version.

The sources come as Go modules, from where this machine's Go gets its modules: no registry, no release download.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.cluster.interface import ClusterFailed
from tools.host import say
from tools.parts.cache import build_once
from tools.parts.go import QUICKLY, go_program
from tools.parts.processes import PartFailed
from tools.parts.versions import version

_SOURCES = Path(__file__).parent / "go"
_PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl")


def build_all() -> None:
    """Builds what is not built yet; starting a cluster does so, too."""
    for build in (kubernetes_dir, coredns, pause):
        build()


def kubernetes_dir() -> Path:
    """A folder for PATH, with `kubectl` and the other programs."""
    release = version("kubernetes", "version")
    return build_once(f"kubernetes-{release}-{_digest('hyperkube')}", lambda into: _build_kubernetes(release, into))


def coredns() -> Path:
    release, libraries = version("kubernetes", "coredns"), version("kubernetes", "version")
    name = f"coredns-{release}-{libraries}-{_digest('coredns')}"
    return build_once(name, lambda into: _build_coredns(release, libraries, into)) / "coredns"


def pause() -> Path:
    return build_once(f"pause-{_digest('pause')}", _build_pause) / "pause"


def _build_kubernetes(release: str, into: Path) -> None:
    say(f"building Kubernetes {release} with Go: 8 to 15 minutes on two cores, once")
    source = _copied("hyperkube", into)
    _write_module(source, _kubernetes_module(release))
    major, minor, _ = release.split(".")
    stamp = {"gitVersion": f"v{release}", "gitMajor": major, "gitMinor": minor}
    stamp |= {"gitTreeState": "clean", "gitCommit": "modproxy"}
    linked = " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in stamp.items())
    _compile(source, into / "hyperkube", linked)
    for program in _PROGRAMS:
        (into / program).symlink_to("hyperkube")


def _kubernetes_module(release: str) -> list[str]:
    """A go.mod that requires exactly what Kubernetes' own go.mod does.

    Kubernetes is not meant to be imported: its go.mod replaces the libraries that are also published as modules by
    folders in its own tree. Version v1.X.Y of Kubernetes is v0.X.Y of each library.
    """
    folder = Path(json.loads(_go(["mod", "download", "-json", f"k8s.io/kubernetes@v{release}"], Path("/")))["Dir"])
    module: dict[str, Any] = json.loads(_go(["mod", "edit", "-json"], folder))
    published = "v0." + release.partition(".")[2]
    staged = [r["Old"]["Path"] for r in module["Replace"] if r["New"]["Path"].startswith("./staging/")]
    lines = ["module s3sink.test/hyperkube", f"go {module['Go']}"]
    lines += [f"require k8s.io/kubernetes v{release}"]
    for required in module["Require"]:
        path = required["Path"]
        lines.append(f"require {path} {published if path in staged else required['Version']}")
    lines += [f"replace {path} => {path} {published}" for path in staged]
    return lines


def _build_coredns(release: str, libraries: str, into: Path) -> None:
    say(f"building CoreDNS {release} with Go: 2 to 4 minutes after Kubernetes, once")
    source = _copied("coredns", into)
    published = "v0." + libraries.partition(".")[2]
    # These libraries of Kubernetes are compiled already; another version would be compiled again.
    same = [f"k8s.io/{name}" for name in ("api", "apimachinery", "client-go")]
    _write_module(
        source,
        [
            "module s3sink.test/coredns",
            f"go {_go_of('github.com/coredns/coredns', release)}",
            f"require github.com/coredns/coredns v{release}",
            *(f"replace {path} => {path} {published}" for path in same),
        ],
    )
    _compile(source, into / "coredns")


def _build_pause(into: Path) -> None:
    source = _copied("pause", into)
    _write_module(source, ["module s3sink.test/pause"])
    _compile(source, into / "pause")


def _go_of(module: str, release: str) -> str:
    described = json.loads(_go(["mod", "download", "-json", f"{module}@v{release}"], Path("/")))
    return str(json.loads(_go(["mod", "edit", "-json", described["GoMod"]], Path("/")))["Go"])


def _copied(name: str, into: Path) -> Path:
    return Path(shutil.copytree(_SOURCES / name, into / "source"))


def _write_module(source: Path, lines: Sequence[str]) -> None:
    (source / "go.mod").write_text("\n".join(lines) + "\n")


def _compile(source: Path, program: Path, linked: str = "") -> None:
    command = ["build", *QUICKLY, "-ldflags", f"-s -w {linked}".rstrip(), "-o", str(program), "."]
    _go(command, source, CGO_ENABLED="0", GOFLAGS="-mod=mod -buildvcs=false")
    shutil.rmtree(source)


def _go(arguments: Sequence[str], folder: Path, **env: str) -> str:
    try:
        go = go_program()
    except PartFailed as failure:
        raise ClusterFailed(f"the cluster is built from source with Go (1.26 or newer): {failure}") from failure
    done = subprocess.run(
        [go, *arguments], cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise ClusterFailed(f"go {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def _digest(name: str) -> str:
    """Our own source decides what an entry holds, too, not only the versions that it links."""
    return hashlib.sha256((_SOURCES / name / "main.go").read_bytes()).hexdigest()[:8]
