"""Argo CD's own code in one program, built once: the health of an object, its actions, and its drift.

    with ArgoCD(cluster.kubeconfig) as argocd:
        (desired,) = argocd.read(manifest, namespace)
        argocd.apply(desired)
        argocd.diff(live, desired).modified

Nothing of Argo CD runs on the cluster. Its settings are read from the ConfigMap argocd-cm in the namespace argocd.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tools.parts.cache import build_once
from tools.parts.go import QUICKLY, go_program
from tools.parts.processes import PartFailed
from tools.parts.versions import version

NAMESPACE = "argocd"
MANAGER = "argocd-controller"
SOURCE = Path(__file__).with_name("main.go")
_APPLICATIONS = "application-crd.yaml"
MODULE = "github.com/argoproj/argo-cd/v3"
Document = dict[str, Any]


@dataclass(frozen=True)
class Health:
    status: str
    message: str = ""


@dataclass(frozen=True)
class Way:
    """How an Application compares: by a three-way diff, unless its options say otherwise."""

    server: bool = False
    """With the sync option ServerSideApply=true."""
    serverDiff: bool = False
    """With the compare option ServerSideDiff=true."""
    webhooks: bool = False
    """With the compare option IncludeMutationWebhook=true, which goes with ServerSideDiff."""


@dataclass(frozen=True)
class Diff:
    modified: bool
    live: Document
    predicted: Document
    """The object as it would be after a sync."""


class ArgoCD:
    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig

    def __enter__(self) -> Self:
        self._log = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            [argocd_dir() / "argocd", str(self._kubeconfig)],
            env={**os.environ, "no_proxy": "*", "NO_PROXY": "*"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def read(self, manifest: str, namespace: str, *, tracking: str = "annotation") -> list[Document]:
        """The objects of a file in git, as Argo CD compares and applies them: with their tracking mark."""
        found: list[Document] = self._ask("read", manifest=manifest, namespace=namespace, tracking=tracking)
        return found

    def apply(self, desired: Document, *, server: bool = False) -> None:
        """Applies an object like a sync, with or without the option ServerSideApply=true."""
        self._ask("apply", desired=desired, server=server)

    def diff(self, live: Document, desired: Document, way: Way = Way()) -> Diff:  # noqa: B008 - a value
        """What a sync would change in an object."""
        return Diff(**self._ask("diff", live=live, desired=desired, tracking="annotation", **asdict(way)))

    def health(self, live: Document) -> Health:
        return Health(**self._ask("health", live=live))

    def actions(self, live: Document) -> dict[str, Document]:
        """The actions for an object, by name."""
        found: list[Document] = self._ask("actions", live=live)
        return {action["name"]: action for action in found}

    def act(self, live: Document, action: str) -> Document:
        """The merge patch that an action sends to the API server."""
        patch: Document = self._ask("act", live=live, action=action)
        return patch

    def _ask(self, what: str, **about: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"ask": what, **about}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            raise PartFailed(f"Argo CD's code ended during the request {what}:\n{self._log.read()[-4000:]}")
        said = json.loads(line)
        if said["error"]:
            raise PartFailed(f"Argo CD's code failed in {what}: {said['error']}")
        return said["answer"]


def argocd_dir() -> Path:
    """A folder with the program `argocd`, and the definition of Applications."""
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in (SOURCE, *locked_files()))).hexdigest()[:8]
    return build_once(f"argocd-{version('argocd', 'version')}-{digest}", _build)


def applications() -> Path:
    """The definition of Argo CD's own resource."""
    return argocd_dir() / _APPLICATIONS


def locked_files() -> tuple[Path, Path]:
    """The versions and hashes of all modules (`tools.argocd.lock`)."""
    return SOURCE.with_name("go.mod"), SOURCE.with_name("go.sum")


def _build(folder: Path) -> None:
    release = version("argocd", "version")
    print(f"• building a part of Argo CD {release} with Go: some minutes, once", file=sys.stderr, flush=True)
    source = folder / "source"
    source.mkdir()
    for file in (SOURCE, *locked_files()):
        shutil.copy(file, source)
    go(["build", *QUICKLY, "-ldflags", "-s -w", "-o", str(folder / "argocd"), "."], source)
    # By a package: for a module Go would request the requirements of all others.
    sources = go(["list", "-f", "{{.Module.Dir}}", f"{MODULE}/common"], source).strip()
    shutil.copy(Path(sources, "manifests", "crds", _APPLICATIONS), folder)
    shutil.rmtree(source)


def go(arguments: Sequence[str], folder: Path, modules: str = "readonly") -> str:
    env = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": f"-mod={modules} -buildvcs=false"}
    command = [go_program(), *arguments]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PartFailed(f"go {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    print(argocd_dir())
