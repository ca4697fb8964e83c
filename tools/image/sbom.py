"""The bill of materials, in CycloneDX: Syft finds it in the finished archive, not in our own lists."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tools.host import SetupFailed, say
from tools.parts.cache import build_once
from tools.parts.go import go_program
from tools.parts.versions import version

RELEASE = version("syft", "version")
_MODULE = "github.com/anchore/syft"
_FORMAT = "cyclonedx-json@1.6"


def sbom(archive: Path, name: str, release: str) -> str:
    """`name` and `release` identify the image in the document."""
    # Syft would look for a newer version of itself on the network.
    settings = {"SYFT_CHECK_FOR_APP_UPDATE": "false"}
    source = [f"oci-archive:{archive}", "--source-name", name, "--source-version", release]
    return _run([str(syft_program()), "scan", "--quiet", *source, "--output", _FORMAT], **settings)


def syft_program() -> Path:
    return build_once(f"syft-{RELEASE}", _build) / "syft"


def _build(folder: Path) -> None:
    say(f"building Syft {RELEASE} with Go: five to ten minutes on two cores, once")
    module = folder / "module"
    module.mkdir()
    # `go install` needs the list of versions, which not every module proxy has.
    (module / "go.mod").write_text(f"module s3sink.test/syft\n\ngo 1.26\n\nrequire {_MODULE} v{RELEASE}\n")
    command = [go_program(), "-C", str(module), "build", "-mod=mod", "-trimpath", "-ldflags", "-s -w"]
    _run([*command, "-o", str(folder / "syft"), f"{_MODULE}/cmd/syft"], CGO_ENABLED="0")
    shutil.rmtree(module)


def _run(command: list[str], **env: str) -> str:
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SetupFailed(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
    return done.stdout
