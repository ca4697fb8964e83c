"""kubeconform, which compares manifests with JSON schemas."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.parts.cache import build_once
from tools.parts.go import build_with_go
from tools.parts.versions import version


def kubeconform_program() -> Path:
    return build_once(f"kubeconform-{version('kubeconform', 'version')}", _build) / "kubeconform"


def _build(folder: Path) -> None:
    release = version("kubeconform", "version")
    print(f"• building kubeconform {release} with Go: a few seconds, once", file=sys.stderr, flush=True)
    build_with_go(f"github.com/yannh/kubeconform/cmd/kubeconform@v{release}", folder)


if __name__ == "__main__":
    print(kubeconform_program())
