"""The product's version. It stands in pyproject.toml; `make generate` copies it to the files that must repeat it.

python -m tools.product_version     writes the copies; tests fail when one is stale
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
_COPIES = {
    "Dockerfile": r'(?<=org\.opencontainers\.image\.version=")[^"]+',
    "charts/s3sink-operator/Chart.yaml": r"(?m)(?<=^version: ).+|(?<=^appVersion: ).+",
    "deploy/kustomize/overlays/namespaced/kustomization.yaml": r"(?<=newTag: ).+",
}
"""Files with a copy, and a pattern for the version in each."""


def product_version() -> str:
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def copies() -> dict[Path, str]:
    """Every file with a copy, and its text with the present version."""
    present = product_version()
    return {ROOT / name: re.sub(pattern, present, (ROOT / name).read_text()) for name, pattern in _COPIES.items()}


def main() -> None:
    for path, text in copies().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
