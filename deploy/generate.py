"""`python -m deploy.generate` writes the files here that are made from others. Tests fail when one is stale."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
ARGOCD, KUSTOMIZE = ROOT / "deploy" / "argocd", ROOT / "deploy" / "kustomize"
DEFINITION = ROOT / "crds" / "s3sinks.s3sink.dev.yaml"
EXAMPLES = ROOT / "examples" / "kubernetes"
ACTIONS = ("pause", "resume", "stop", "restart", "reset")
_MADE = "# Made by `python -m deploy.generate` from {}: change that instead.\n"
_RIGHTS = ("Role", "RoleBinding")


def made() -> Mapping[Path, str]:
    """Every generated file with its text. Kustomize reads no file outside of its folder, so some are copies."""
    return {
        ARGOCD / "argocd-cm.yaml": settings(),
        KUSTOMIZE / "base" / "s3sinks.s3sink.dev.yaml": _copy(DEFINITION),
        KUSTOMIZE / "base" / "operator.yaml": _copy(EXAMPLES / "operator.yaml"),
        KUSTOMIZE / "overlays" / "namespaced" / "rights.yaml": _rights(EXAMPLES / "operator-namespaced.yaml"),
    }


def settings() -> str:
    """A patch of the ConfigMap with Argo CD's settings."""
    key = "resource.customizations.{}.s3sink.dev_S3Sink"
    health, discovery = ((ARGOCD / name).read_text() for name in ("health.lua", "actions/discovery.lua"))
    definitions = "".join(
        f"- name: {name}\n" + _indented(_block("action.lua", (ARGOCD / "actions" / name / "action.lua").read_text()))
        for name in ACTIONS
    )
    actions = _block("discovery.lua", discovery) + "definitions:\n" + definitions
    data = _block(key.format("health"), health) + _block(key.format("actions"), actions)
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: argocd-cm\ndata:\n"
    return _MADE.format("the scripts beside it") + head + _indented(data)


def _block(key: str, text: str) -> str:
    return f"{key}: |\n{_indented(text)}"


def _indented(text: str) -> str:
    return textwrap.indent(text, "  ")


def _copy(source: Path) -> str:
    return _MADE.format(source.relative_to(ROOT)) + source.read_text()


def _rights(source: Path) -> str:
    """The operator's rights in a namespace of sinks, without the operator itself."""
    documents = source.read_text().split("---\n")
    kept = [text for text in documents if any(f"\nkind: {kind}\n" in text for kind in _RIGHTS)]
    return _MADE.format(source.relative_to(ROOT)) + "---\n".join(kept)


def main() -> None:
    for path, text in made().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
