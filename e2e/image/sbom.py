"""What the image is made of, as a CycloneDX document: found by Syft in the finished archive, not in our own lists."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from e2e.image.host import SetupFailed, say
from e2e.parts.cache import build_once
from e2e.parts.go import go_program
from e2e.parts.versions import version

RELEASE = version("syft", "version")
_MODULE = "github.com/anchore/syft"
_FORMAT = "cyclonedx-json@1.6"


def sbom(archive: Path, name: str, release: str) -> str:
    """`name` and `release` say in the document what it is about."""
    # Syft would ask the network for a newer version of itself.
    settings = {"SYFT_CHECK_FOR_APP_UPDATE": "false"}
    source = [f"oci-archive:{archive}", "--source-name", name, "--source-version", release]
    return _run([str(syft_program()), "scan", "--quiet", *source, "--output", _FORMAT], **settings)


def syft_program() -> Path:
    return build_once(f"syft-{RELEASE}", _build) / "syft"


def _build(folder: Path) -> None:
    say(f"building Syft {RELEASE} with Go: five to ten minutes on two cores, once")
    module = folder / "module"
    module.mkdir()
    # `go install` would ask which versions there are, and not every proxy says so.
    (module / "go.mod").write_text(f"module s3sink.test/syft\n\ngo 1.26\n\nrequire {_MODULE} v{RELEASE}\n")
    command = [go_program(), "-C", str(module), "build", "-mod=mod", "-trimpath", "-ldflags", "-s -w"]
    _run([*command, "-o", str(folder / "syft"), f"{_MODULE}/cmd/syft"], CGO_ENABLED="0")
    shutil.rmtree(module)


def _run(command: list[str], **env: str) -> str:
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SetupFailed(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
    return done.stdout
